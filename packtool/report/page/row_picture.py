"""Draw rows as strips of blocks: one block a piece, coloured by document length, cut ends marked."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from packtool.report.figures import count
from packtool.report.page.axes import WIDTH, drawing
from packtool.report.page.charts import legend
from packtool.report.schema import SampleRow

_THICK, _STEP = 16, 21
_NARROW = 1.2
"""Blocks narrower than this are drawn together with their neighbours of one colour."""
_SHADES = 8
"""Colours, from the shortest documents to the longest: each stands for four times the length of the one before."""


def row_picture(title: str, rows: Sequence[SampleRow]) -> str:
    """Draw rows as SVG, a strip each."""
    out = []
    for number, row in enumerate(rows):
        top, at = number * _STEP + 2, 0.0
        whole = sum(segment.length for segment in row.segments) or 1
        for css, length, tip, before, after in _blocks(row, whole):
            width = WIDTH * length / whole
            out.append(
                f'<rect class="piece {css}" x="{at:.2f}" y="{top}" width="{max(0.3, width - 0.4):.2f}" '
                f'height="{_THICK}"><title>{escape(tip)}</title></rect>'
            )
            out += [_cut(x, top) for x, cut in ((at + 0.9, before), (at + width - 1.3, after)) if cut]
            at += width
    return drawing(title, "".join(out), max(_STEP, _STEP * len(rows)))


def picture_legend() -> str:
    """Explain the colours."""
    steps = [(f"to {4 ** (shade + 1):,}" if shade < _SHADES - 1 else "longer", f"l{shade}") for shade in range(_SHADES)]
    return legend([*steps, ("padding", "padding"), ("cut here", "cut")])


def _blocks(row: SampleRow, whole: int) -> list[tuple[str, int, str, bool, bool]]:
    """Yield colour, tokens, words and cut ends of each block."""
    blocks: list[tuple[str, int, str, bool, bool]] = []
    for segment in row.segments:
        css = _shade(segment.document_length) if segment.kind == "document" else segment.kind
        narrow = WIDTH * segment.length / whole < _NARROW
        cut = segment.cut_before or segment.cut_after
        if blocks and narrow and blocks[-1][0] == css and not cut and not blocks[-1][3] and not blocks[-1][4]:
            _, length, _, _, _ = blocks[-1]
            blocks[-1] = (css, length + segment.length, "several short documents", False, False)
            continue
        tip = f"{segment.kind}, {count(segment.length)} tokens"
        if segment.kind == "document":
            tip = f"{count(segment.length)} tokens of a document of {count(segment.document_length)}"
        blocks.append((css, segment.length, tip, segment.cut_before, segment.cut_after))
    return blocks


def _shade(length: int) -> str:
    return f"l{min(_SHADES - 1, max(0, (max(1, length) - 1).bit_length() - 1) // 2)}"


def _cut(x: float, top: int) -> str:
    """Draw a notch where a document is cut."""
    points = " ".join(f"{x + (1.1 if step % 2 else -1.1):.2f},{top + 4 * step}" for step in range(5))
    return f'<polyline class="cut" points="{points}"/>'
