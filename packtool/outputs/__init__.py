"""Outputs: how a dataset comes to lie in a place, whole or not at all. `output.py` has the order of events."""
