"""Rows as the terminal shows them."""

from __future__ import annotations

import io

from rich.console import Console

from packtool.report.row import Row
from packtool.report.row_view import print_row


def printed(row: Row, **options: object) -> str:
    out = io.StringIO()
    print_row(row, Console(file=out, width=80, **options))  # type: ignore[arg-type]
    return out.getvalue()
