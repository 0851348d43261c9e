"""What a packing does to a corpus, counted from its rows: accounts, metrics, lengths. NumPy only, no I/O.

rows of segments ─Tally.add─▶ Tally ─measure─▶ Metrics (one tally, or one for each bucket)
document lengths ─LengthCounts.of─▶ LengthCounts (quantiles, histogram)
"""

from packtool.metrics.ledger import ChosenText, Ledger, Trained, balance, require_balance, require_counted
from packtool.metrics.lengths import LengthCounts
from packtool.metrics.mixing import BatchMix, Mixed, Mixing, RowsMix, SourceMixing, Spread
from packtool.metrics.sliding import Sliding
from packtool.metrics.summary import DocumentsPerRow, Metrics, measure
from packtool.metrics.tally import Accounts, Tally, TallyCounts

__all__ = [
    "Accounts",
    "BatchMix",
    "ChosenText",
    "DocumentsPerRow",
    "Ledger",
    "LengthCounts",
    "Metrics",
    "Mixed",
    "Mixing",
    "RowsMix",
    "Sliding",
    "SourceMixing",
    "Spread",
    "Tally",
    "TallyCounts",
    "Trained",
    "balance",
    "measure",
    "require_balance",
    "require_counted",
]
