"""`packtool show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from packtool.cli import options


def command(
    path: Annotated[Path, typer.Argument(help="A packed dataset.", metavar="DATASET")],
    row: Annotated[int, typer.Option("--row", "-r", help="Number of the row, from 0; -1 is the last.")] = 0,
    bucket: Annotated[int | None, typer.Option(help="Length of its rows, where the dataset has several.")] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="The tokenizer it was made with; not needed for the one that comes with packtool.",
            metavar="FILE|DIR|HUB_ID",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show one row of a packed dataset: documents in alternating colours, boundaries, repeats and padding.

    \b
    Examples:
    packtool show packed --row 12
    packtool show packed --row -1 --bucket 4096 --tokenizer openai-community/gpt2
    """
    from packtool.commands.show import show

    found = show(path, row, bucket=bucket, tokenizer=tokenizer)
    if json:
        from dataclasses import asdict

        from packtool.cli.results import print_json

        print_json({"schema_version": 1, **asdict(found), "path": str(path)})
    else:
        from rich.console import Console

        from packtool.report.row_view import print_row

        print_row(found, Console())
