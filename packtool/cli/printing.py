"""Print lines for people, or one JSON object for machines."""

from __future__ import annotations

import sys
from typing import Any

import typer

from packtool.errors import visible


def echo(text: str = "", *, err: bool = False) -> None:
    """Print lines for people, on standard output or standard error; names in them can't command a terminal."""
    lines = map(visible, text.split("\n"))
    typer.echo("\n".join(lines), err=err)


def print_json(value: Any) -> None:
    """Print one JSON object on standard output; what could command a terminal is written as JSON's own escapes."""
    from packtool.support.json_text import to_json

    text = to_json(value, hook=str).decode()  # paths as strings
    sys.stdout.buffer.write(visible(text, as_json=True).encode() + b"\n")
