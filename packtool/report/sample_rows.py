"""Rows as they are drawn: which segments lie in them, and where these are cut."""

from __future__ import annotations

from packtool.plan import PADDING, Ints, Segments
from packtool.report.schema import SampleRow, SampleSegment


def sample_rows(rows: Segments, lengths: Ints) -> list[SampleRow]:
    """Choose rows to draw.

    Args:
        rows: a few whole rows.
        lengths: of all documents.
    """
    return [
        SampleRow(
            segments=[
                SampleSegment(
                    kind="document" if document >= 0 else "padding" if document == PADDING else "eos",
                    length=length,
                    document_length=int(lengths[document]) if document >= 0 else 0,
                    cut_before=document >= 0 and start > 0,
                    # A document whose EOS alone is elsewhere is whole.
                    cut_after=document >= 0 and start + length < int(lengths[document]) - 1,
                )
                for document, start, length in zip(
                    rows.document[first:last].tolist(),
                    rows.start[first:last].tolist(),
                    rows.length[first:last].tolist(),
                    strict=True,
                )
            ]
        )
        for first, last in zip(rows.offsets[:-1].tolist(), rows.offsets[1:].tolist(), strict=True)
    ]
