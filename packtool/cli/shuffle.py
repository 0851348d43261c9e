"""`packtool shuffle`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from packtool.cli import options


def command(
    source: Annotated[
        Path, typer.Argument(help="A packed dataset; for --method partial a token store.", metavar="SOURCE")
    ],
    output: options.Output,
    method: Annotated[
        str,
        typer.Option("--method", "-m", help="atom, partial or bucket.", metavar="NAME", autocompletion=options.methods),
    ] = "atom",
    atom_size: Annotated[
        int | None,
        typer.Option(
            "--atom-size",
            "-A",
            help="atom: tokens that move together; for concat, other than when packed.",
            metavar="N",
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", "-B", help="partial: rows in a batch.", metavar="N")
    ] = None,
    batch_tokens: Annotated[
        int | None,
        typer.Option(help="bucket: tokens in a batch; a multiple of every row length.", metavar="N"),
    ] = None,
    remainder: Annotated[
        str | None,
        typer.Option(
            help="bucket: rows that fill no batch make a smaller one (pad, the default), or are in none (drop).",
            metavar="pad|drop",
        ),
    ] = None,
    sequence_length: Annotated[
        int | None, typer.Option("--sequence-length", "-L", help="partial: tokens in a row.", metavar="N")
    ] = None,
    seed: options.Seed = 42,
    epoch: Annotated[
        int, typer.Option(help="Another order from the same seed, independent of the others.", min=0, metavar="N")
    ] = 0,
    order_only: Annotated[
        bool, typer.Option("--order-only", help="Write the order alone, for packtool.open(SOURCE, order=OUTPUT).")
    ] = False,
    memory: options.Memory = "1GiB",
    workers: options.Workers = None,
    config: options.Config = None,
    overwrite: options.Overwrite = False,
    resume: options.Resume = False,
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Write the rows of a packed dataset in another order: exact, reproducible, within --memory.

    The rows depend on the corpus, on seed and epoch only, not on the order they had before. Moves each token once, or
    twice where the dataset is larger than --memory.

    \b
    Examples:
    packtool shuffle packed -o epoch1 --epoch 1
    packtool shuffle packed -o order1 --epoch 1 --order-only
    packtool shuffle store -o rotated --method partial -B 64 -L 512
    packtool shuffle packed -o batches --method bucket --batch-tokens 65536
    """
    from packtool.cli.results import show, show_preview
    from packtool.commands.shuffle import shuffle

    result = shuffle(
        source,
        output,
        method=method,
        atom_size=atom_size,
        batch_size=batch_size,
        batch_tokens=batch_tokens,
        remainder=remainder,
        sequence_length=sequence_length,
        seed=seed,
        epoch=epoch,
        order_only=order_only,
        memory=memory,
        workers=workers,
        overwrite=overwrite,
        resume=resume,
        dry_run=dry_run,
        quiet=quiet,
    )
    if result.preview is not None:
        show_preview(result.preview, overwrite=overwrite, json=json)
    else:
        show(result.path, result.report, result.run, kept=result.kept, quiet=quiet, json=json)
