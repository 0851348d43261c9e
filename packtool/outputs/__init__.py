"""Outputs: how a dataset is written to a place, whole or not at all. `output.py` has the order of events."""
