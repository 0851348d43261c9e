"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[Path, typer.Option("--output", "-o", help="Directory to write; must be empty or new.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what a packtool command wrote to the output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no warnings, no summary.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on standard output.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random choice.", min=0)]
Workers = Annotated[
    int | None, typer.Option("--workers", "-j", help="Parallel workers; the output does not depend on it.", min=1)
]
Memory = Annotated[str, typer.Option("--memory", help="Memory to use for tokens, such as 512MiB or 4GiB.")]


def sizes(text: str, option: str) -> list[int]:
    """Numbers from a list such as ``2048,4096``.

    >>> sizes("2048, 4096", "--buckets")
    [2048, 4096]
    """
    from packtool.errors import UsageError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            "bad-option", f"{text!r} is not a list of numbers", remedy="write it like 2048,4096", where=option
        ) from None
