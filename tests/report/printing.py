"""A corpus to show rows of, and rows as the terminal shows them."""

import io

from rich.console import Console

from packtool.report.row import Row
from packtool.report.row_view import print_row

TEXTS = [
    "The first document, rather short.",
    "A second one. " * 30,
    "Third.\n\tWith \x1b[31mcolour\x1b[0m in it.",
    "Four.",
]
RECORDS = [{"text": text} for text in TEXTS]


def printed(row: Row, **options: object) -> str:
    out = io.StringIO()
    print_row(row, Console(file=out, width=80, **options))  # type: ignore[arg-type]
    return out.getvalue()
