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
