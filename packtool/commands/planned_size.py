"""Say how large a packed dataset will be, from its plans, before a token is read."""

from __future__ import annotations

from collections.abc import Sequence

from packtool.commands.pack_recipe import PackRecipe
from packtool.formats.names import CATEGORY, LOSS, NUMBER, OFFSET, SEGMENT
from packtool.formats.token_store import Corpus
from packtool.planning.plan import Plan
from packtool.planning.shuffling.atom import AtomShuffle, atom_shuffles
from packtool.writing.layout import BATCH_TOKENS, Layout

MOST_DOCUMENTS = 10_000_000
"""Documents that a dry run plans: seconds of work."""
_OF_A_DOCUMENT = 4
"""Bytes of a document's length."""
_CHOSEN = 8
"""Bytes of the number of a document in its store, where documents were chosen."""


def planned_size(corpus: Corpus, plans: Sequence[Plan], recipe: PackRecipe) -> dict[str, int]:
    """Count the rows and tokens that `pack` would write, padding included, and the bytes of all arrays.

    Returns:
        rows, tokens and bytes; these but for headers, the manifest, the report and names of categories.
    """
    rows = tokens = segments = 0
    shuffles: Sequence[AtomShuffle | None] = [None] * len(plans)
    options, order = recipe.options, recipe.shuffle
    if order is not None:
        shuffles = atom_shuffles(plans, seed=order.seed, epoch=order.epoch)
    for plan, shuffle in zip(plans, shuffles, strict=True):
        rows += plan.rows
        tokens += plan.rows * plan.sequence_length
        if options.segments:
            segments += _segments(plan, shuffle)
    size = 0
    if not options.index_only:
        size += tokens * corpus.dtype.itemsize
        size += tokens * LOSS.itemsize * corpus.has_loss
    if options.segments:
        size += segments * SEGMENT.itemsize + rows * OFFSET.itemsize + corpus.documents * _OF_A_DOCUMENT
    if options.segments and corpus.chosen is not None:
        size += corpus.documents * _CHOSEN
    for field in recipe.kept:
        bytes_of_value = CATEGORY.itemsize
        if field.number:
            bytes_of_value = NUMBER.itemsize
        size += corpus.documents * bytes_of_value
    tokenizer = corpus.stores[0].manifest.tokenizer_files
    size += sum(entry.bytes for entry in tokenizer)
    return {"rows": rows, "tokens": tokens, "bytes": size}


def _segments(plan: Plan, shuffle: AtomShuffle | None) -> int:
    """Count the segments of all rows."""
    order = None
    if shuffle is not None:
        order = shuffle.order()
    layout, count = Layout(plan, order), 0
    step = max(1, BATCH_TOKENS // plan.sequence_length)
    for first in range(0, plan.rows, step):
        count += len(layout.segments(first, min(first + step, plan.rows)).document)
    return count
