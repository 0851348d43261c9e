"""Strategies that treat every document alone: one of each length is planned, and counted as often as it occurs."""

from __future__ import annotations

from packtool.comparing.counting.counted import Counted
from packtool.metrics import LengthCounts, Tally
from packtool.packing import PackOptions, plan
from packtool.plan import Ints
from packtool.writing.layout import Layout


def padding(lengths: Ints, options: PackOptions) -> list[Counted] | None:
    """Each document in rows of its own; atoms below a row are joined across documents, which a count can't foresee."""
    return None if options.atom < options.row_length else _each_length("padding", lengths, options)


def decompose(lengths: Ints, options: PackOptions) -> list[Counted] | None:
    """Each document in powers of two."""
    return _each_length("decompose", lengths, options)


def _each_length(name: str, lengths: Ints, options: PackOptions) -> list[Counted]:
    known = LengthCounts.of(lengths)
    found = []
    stored = written = 0
    for each in plan(name, known.values, options):
        layout, tally = Layout(each), Tally(lengths, each.sequence_length)
        for first, last in layout.batches(0, layout.rows):
            rows = layout.segments(first, last)
            # A row begins with a segment of the one document that it holds.
            tally.add(rows, known.counts[rows.document[rows.offsets[:-1]]], known.values)
        stored, written = stored + tally.stored_eos, written + tally.placed
        found.append(Counted(tally, eos_inserted=tally.inserted_eos))
    if found:
        found[0].eos_omitted = len(lengths) - stored
        found[0].dropped = known.tokens - known.documents - written
    return found
