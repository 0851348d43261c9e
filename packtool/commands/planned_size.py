"""Count what a run of `pack` would write, from its plans."""

from __future__ import annotations

from collections.abc import Sequence

from packtool.commands.corpus_rows import RowRecipe
from packtool.formats.names import CATEGORY, LOSS, NUMBER, OFFSET, SEGMENT
from packtool.formats.schema import Options
from packtool.formats.token_store import Corpus
from packtool.places.npy import HEADER_BYTES
from packtool.planning.plan import Plan
from packtool.planning.shuffling.atom import AtomShuffle
from packtool.rows.layout import BATCH_TOKENS, Layout
from packtool.writing.shards import rows_per_shard

_OF_A_DOCUMENT = 4  # bytes of a document's length
_CHOSEN = 8  # bytes of the number of a document in its store, where documents were chosen


def planned_size(
    corpus: Corpus,
    plans: Sequence[Plan],
    shuffles: Sequence[AtomShuffle | None],
    recipe: RowRecipe,
    *,
    index_only: bool,
) -> dict[str, int]:
    """Count the rows and tokens that would be written, padding included, and the bytes of their arrays and of the
    tokenizer's files.

    Args:
        shuffles: shuffle of each plan's atoms; None for rows that are written as they were planned.

    Returns:
        rows, tokens and bytes; these but for the manifest, the report, and the names of categories.
    """
    rows = tokens = 0
    size = sum(entry.bytes for entry in corpus.stores[0].manifest.tokenizer_files)
    for plan, shuffle in zip(plans, shuffles, strict=True):
        rows += plan.rows
        tokens += plan.rows * plan.sequence_length
        size += _bucket_bytes(corpus, plan, shuffle, recipe.options, index_only=index_only)
    if recipe.options["segments"]:
        size += _array_bytes(corpus.documents, _OF_A_DOCUMENT)
        if corpus.chosen is not None:
            size += _array_bytes(corpus.documents, _CHOSEN)
    for field in recipe.kept:
        value = NUMBER if field.number else CATEGORY
        size += _array_bytes(corpus.documents, value.itemsize)
    return {"rows": rows, "tokens": tokens, "bytes": size}


def _array_bytes(items: int, item_bytes: int) -> int:
    return HEADER_BYTES + items * item_bytes


def _bucket_bytes(
    corpus: Corpus, plan: Plan, shuffle: AtomShuffle | None, options: Options, *, index_only: bool
) -> int:
    """Count the bytes of the shards of a plan's rows."""
    order = None
    if shuffle is not None:
        order = shuffle.order()
    layout = Layout(plan, order)
    size, step = 0, rows_per_shard(plan, options["shard_tokens"])
    for first in range(0, plan.rows, step):
        last = min(first + step, plan.rows)
        tokens = (last - first) * plan.sequence_length
        if not index_only:
            size += _array_bytes(tokens, corpus.dtype.itemsize)
            if corpus.has_loss:
                size += _array_bytes(tokens, LOSS.itemsize)
        if options["segments"]:
            size += _array_bytes(_count_segments(layout, first, last), SEGMENT.itemsize)
            size += _array_bytes(last - first + 1, OFFSET.itemsize)
        atoms = layout.atoms(first, last)
        if atoms is not None:
            size += _array_bytes(len(atoms), OFFSET.itemsize)
    return size


def _count_segments(layout: Layout, first: int, last: int) -> int:
    """Count the segments of rows, some at a time."""
    count = 0
    step = max(1, BATCH_TOKENS // layout.plan.sequence_length)
    for begin in range(first, last, step):
        count += len(layout.segments(begin, min(begin + step, last)).document)
    return count
