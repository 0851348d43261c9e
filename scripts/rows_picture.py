"""Draw the rows that strategies make of one small corpus, from packed datasets: docs/rows.svg.

python scripts/rows_picture.py docs/rows.svg
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np

import packtool

LENGTH = 64
ROWS = 10
STRATEGIES = {
    "concat": "every token counts; documents are cut wherever a row ends",
    "bfd": "documents stay whole, hardly any padding; long ones come first",
    "bfd, mixed rows": "as full, and each row holds many lengths (the default of bfd)",
}
WORDS = [9, 31, 5, 58, 14, 22, 3, 47, 12, 7, 29, 61, 4, 18, 36, 10, 26, 2, 52, 15, 8, 41, 20, 6]
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948")
UNIT, HEIGHT, LEFT = 10, 14, 12


def rows_of(place: Path, strategy: str) -> list[list[tuple[int, int, int, int]]]:
    """Segments of the first rows: document, start, length, repeated."""
    packtool.pack(
        place / "tokens",
        place / strategy,
        strategy=strategy.partition(",")[0],
        sequence_length=LENGTH,
        mix_rows="mixed" in strategy if strategy != "concat" else None,
        shuffle=False,
        overwrite=True,
    )
    dataset = packtool.open(place / strategy)
    return [dataset.segments(row).tolist() for row in range(min(ROWS, len(dataset)))]


def drawn(strategy: str, rows: list[list[tuple[int, int, int, int]]], top: int, lengths: list[int]) -> list[str]:
    """One strategy's rows as SVG."""
    out = [
        f'<text x="{LEFT}" y="{top + 12}"><tspan font-weight="bold">{strategy}</tspan>: {STRATEGIES[strategy]}</text>'
    ]
    for number, row in enumerate(rows):
        x, y = LEFT, top + 20 + number * (HEIGHT + 3)
        for document, start, length, _ in row:
            width = length * UNIT
            if document < 0:
                out.append(f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" fill="#e8e8e8"/>')
            else:
                colour = COLOURS[document % len(COLOURS)]
                out.append(
                    f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" fill="{colour}" stroke="white"/>'
                    f'<text x="{x + 3}" y="{y + 11}" fill="white" font-size="10">{document}</text>'
                )
                if start + length < lengths[document]:  # cut here
                    out.append(f'<path d="M{x + width - 1} {y}v{HEIGHT}" stroke="#d62728" stroke-width="3"/>')
            x += width
    return out


def picture() -> str:
    """The whole picture."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        texts = [" ".join(["word"] * count) for count in WORDS * 2]
        (place / "corpus.jsonl").write_bytes(b"\n".join(msgspec.json.encode({"text": text}) for text in texts))
        packtool.tokenize(place / "corpus.jsonl", place / "tokens", workers=1)
        body: list[str] = []
        top = 8
        for strategy in STRATEGIES:
            rows = rows_of(place, strategy)
            body += drawn(strategy, rows, top, np.load(place / strategy / "lengths.npy").tolist())
            top += 34 + len(rows) * (HEIGHT + 3)
    width = 2 * LEFT + LENGTH * UNIT
    body.append(
        f'<text x="{LEFT}" y="{top + 8}" fill="#555">rows of {LENGTH} tokens; a colour is a document, '
        f'<tspan fill="#d62728">red</tspan> where it is cut, grey padding</text>'
    )
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + 18}" font-family="sans-serif"'
    background = f'<rect width="{width}" height="{top + 18}" fill="white"/>'
    return "\n".join([f'{frame} font-size="12">', background, *body, "</svg>\n"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: rows_picture.py OUTPUT.svg")
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
