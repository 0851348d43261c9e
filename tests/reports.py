"""Reports to draw: of documents of given lengths, and of rows."""

from collections.abc import Sequence

import msgspec
import numpy as np

from packtool.planning.metrics.ledger import Ledger, balance
from packtool.planning.metrics.lengths import LengthCounts
from packtool.planning.metrics.mixing import PairDistances
from packtool.planning.metrics.tally import Tally
from packtool.planning.plan import Ints
from packtool.report.compare import candidates, compare
from packtool.report.dataset_report import counted_report, lengths_of
from packtool.report.types import MeasuredReport, PackedReport, StoreReport
from tests.stores import TOKENIZER

NOTHING = balance(0, 0, [], [])
"""The ledger of no rows."""


def rows_report(
    tallies: Sequence[Tally], ledger: Ledger, strategy: str = "concat", options: dict[str, int] | None = None
) -> PackedReport:
    """The report of rows that are tallied."""
    known = PackedReport(
        strategy=strategy,
        options=options or {},
        shuffle=None,
        batch_size=None,
        ledger=ledger,
        lengths=None,
        metrics=None,
        buckets=[],
        documents_per_row=[],
        sliding=None,
    )
    return counted_report(known, tallies)


def unknown_rows(tallies: Sequence[Tally] = (), **counts: int) -> PackedReport:
    """The report of rows of which a ledger is known, and no more than is tallied."""
    return rows_report(tallies, msgspec.structs.replace(NOTHING, **counts))


NO_DOCUMENTS = [Tally(np.zeros(0, np.uint32), 8)]


def store_report(
    lengths: Ints, names: Sequence[str] = (), sizes: Sequence[int] = (), buckets: Sequence[int] | None = None
) -> StoreReport:
    """The report of a store of such documents, with these strategies compared."""
    counts = LengthCounts.of(np.asarray(lengths))
    tried = candidates(names, sizes, {"buckets": tuple(buckets)} if buckets else None)
    return StoreReport(
        path="<store> & more",
        tokenizer=TOKENIZER,
        dtype="<u2",
        counts={"documents": len(lengths), "tokens": int(np.sum(lengths))},
        sources=[],
        batch_size=4,
        lengths=lengths_of(counts),
        comparison=compare(lengths, tried, counts, 4) if names else None,
    )


def measured(report: PackedReport, mixing: Sequence[PairDistances] = ()) -> MeasuredReport:
    """A packed dataset's report as `stats` gives it."""
    return MeasuredReport(
        **msgspec.structs.asdict(report),
        path="packed",
        tokenizer=TOKENIZER,
        mixing=list(mixing),
        sample_rows=[],
    )
