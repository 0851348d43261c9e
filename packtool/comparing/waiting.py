"""How long ranks would wait for each other in the rows of a candidate, from a plan of the first documents alone."""

from __future__ import annotations

from packtool import packing
from packtool.comparing.candidates import Candidate
from packtool.comparing.trial import DEFAULT_SEED
from packtool.plan import Ints
from packtool.shuffling.atom import atom_shuffles
from packtool.shuffling.waiting import Waiting, waiting_of
from packtool.writing.layout import Layout

_DOCUMENTS = 200_000  # that are planned: hundreds of rows even of the longest


def expected_waiting(
    lengths: Ints, candidate: Candidate, ranks: int, global_batch: int, token_cost: int
) -> list[Waiting]:
    """Predict how long ranks wait in the order of the default seed, for each row length that fills a global batch.

    Args:
        lengths: of documents, EOS included.
        global_batch: rows of the longest; of shorter ones as many as have as many tokens.
    """
    plans = packing.plan(candidate.strategy, lengths[:_DOCUMENTS], candidate.options)
    longest = max(plan.sequence_length for plan in plans)
    found = []
    for plan, shuffle in zip(plans, atom_shuffles(plans, seed=DEFAULT_SEED), strict=True):
        size = plan.sequence_length
        rows = global_batch * longest // size // ranks * ranks
        if plan.rows >= rows:
            layout = Layout(plan, shuffle.order())
            found.append(waiting_of(layout.segments, plan.rows, size, ranks, rows, token_cost))
    return found
