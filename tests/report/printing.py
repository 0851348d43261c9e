"""A corpus to show rows of, and rows as the terminal shows them."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

import packtool
from packtool.report.row import Row
from packtool.report.row_view import print_row

TEXTS = [
    "The first document, rather short.",
    "A second one. " * 30,
    "Third.\n\tWith \x1b[31mcolour\x1b[0m in it.",
    "Four.",
]


def store_of_texts(place: Path) -> Path:
    """A store of `TEXTS`, of the file corpus.jsonl."""
    (place / "corpus.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    packtool.tokenize(place / "corpus.jsonl", place / "store", workers=1)
    return place / "store"


def printed(row: Row, **options: object) -> str:
    out = io.StringIO()
    print_row(row, Console(file=out, width=80, **options))  # type: ignore[arg-type]
    return out.getvalue()
