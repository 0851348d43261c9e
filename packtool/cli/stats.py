"""`packtool stats`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from packtool.cli import options


def command(
    path: Annotated[Path, typer.Argument(help="A token store or a packed dataset.")],
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", "-B", help="Rows in a batch, for steps per epoch and mixing.", min=1)
    ] = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Measure a token store or a packed dataset, shuffled or not.

    Reads lengths and segment tables, no tokens: seconds for 10 million documents.

    \b
    packtool stats packed
    packtool stats packed --batch-size 256 --json
    """
    from packtool.cli.results import print_json
    from packtool.commands.stats import stats

    report = stats(path, batch_size=batch_size, quiet=quiet)
    if json:
        print_json(report)
    else:
        from rich.console import Console

        from packtool.report.tables import print_stats

        print_stats(report, Console())
