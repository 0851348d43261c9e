"""Measure what a packing does to a corpus, from its rows: accounts, metrics, lengths. NumPy only, no I/O.

rows of segments ─Tally.add─▶ Tally ─measure─▶ Metrics (one tally, or one for each bucket)
document lengths ─LengthCounts.of─▶ LengthCounts (quantiles, histogram)
"""
