"""Plan the documents of `stats` with other strategies: which ones are asked for, and what each makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.engines import Engine
from packtool.options.declare import declared
from packtool.options.documents import DocumentOptions
from packtool.options.plans import PackOptions
from packtool.options.stats import StatsArguments
from packtool.planning.document_loss import DocumentLoss
from packtool.planning.metrics.ledger import ChosenText
from packtool.planning.metrics.lengths import LengthCounts
from packtool.planning.plan import Ints
from packtool.report.compare import Candidate, PlannedDocuments, candidates, compare
from packtool.report.types import Comparison
from packtool.support.progress import Progress

_OF_PLANS = tuple(
    name
    for name in declared(PackOptions)
    if name in declared(StatsArguments) and name not in ("sequence_length", "seed")
)
"""Options of plans that strategies are compared with, other than the sequence length and the seed."""
CHOOSING = tuple(name for name in declared(DocumentOptions) if name != "seed")
"""Options that choose the documents."""


def strategies_tried(options: StatsArguments) -> list[Candidate]:
    """List every strategy to try, at each row length, with the options given."""
    if options.compare is None:
        return []
    chosen = {name: getattr(options, name) for name in _OF_PLANS}
    asked = {name: value for name, value in chosen.items() if value is not None}
    lengths: Any = options.sequence_length or ()  # whole numbers, since they were parsed
    tried = candidates(options.compare, lengths, asked)
    return [replace(candidate, options=replace(candidate.options, seed=options.seed)) for candidate in tried]


def comparison_of(
    lengths: Ints,
    counts: LengthCounts,
    tried: Sequence[Candidate],
    command: str,
    options: StatsArguments,
    engine: Engine,
    conversations: npt.NDArray[np.bool_] | None = None,
    passes: PlannedDocuments | None = None,
    chosen: ChosenText | None = None,
    loss: Callable[[], DocumentLoss] | None = None,
) -> Comparison | None:
    """Compare the rows that each candidate would make of the documents that `command` would pack."""
    if not tried:
        return None
    with Progress(len(tried), "compare", unit=" plans", quiet=options.quiet) as progress:
        return compare(
            lengths,
            tried,
            counts,
            options.batch_size,
            command=command,
            conversations=conversations,
            too_long=options.too_long,
            passes=passes,
            chosen=chosen,
            loss=loss,
            exact=options.exact,
            advance=progress.advance,
            engine=engine,
        )
