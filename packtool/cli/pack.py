"""`packtool pack`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from packtool.cli import options


def command(
    stores: Annotated[
        list[Path], typer.Argument(help="Token stores, in the order their documents are numbered.", metavar="STORE")
    ],
    output: options.Output,
    strategy: Annotated[
        str,
        typer.Option(
            help="concat, padding, ffd, bfd, bfd-extra, seamless, buckets, length-buckets or decompose.",
            metavar="NAME",
            autocompletion=options.strategies,
        ),
    ],
    sequence_length: Annotated[
        int | None, typer.Option("--sequence-length", "-L", help="Tokens in a row.", metavar="N")
    ] = None,
    atom_size: Annotated[
        int | None,
        typer.Option(
            "--atom-size",
            "-A",
            help="concat, padding: tokens that move together; default the sequence length.",
            metavar="N",
        ),
    ] = None,
    seed: options.Seed = 42,
    shuffle: Annotated[
        bool, typer.Option("--shuffle/--no-shuffle", help="Permute atoms, or keep corpus order.")
    ] = True,
    remainder: Annotated[
        str,
        typer.Option(help="Tokens that do not fill the last row: pad it, or drop them (counted).", metavar="pad|drop"),
    ] = "pad",
    pad_token: Annotated[
        str | None, typer.Option(help="Padding token, by text or id; default the EOS token.", metavar="TEXT|ID")
    ] = None,
    buckets: Annotated[
        str | None,
        typer.Option(help="Row lengths of buckets and length-buckets, such as 2048,4096,8192.", metavar="N,..."),
    ] = None,
    padding_threshold: Annotated[
        str | None,
        typer.Option(help="buckets: share of a row that may stay padding; default 0.01.", metavar="SHARE"),
    ] = None,
    max_repetition: Annotated[
        str | None,
        typer.Option(help="seamless: share of a row that may repeat the one before; default 0.3.", metavar="SHARE"),
    ] = None,
    extra_capacity: Annotated[
        int | None,
        typer.Option(help="bfd-extra, seamless: tokens by which a bin may exceed a row; default 50.", metavar="N"),
    ] = None,
    min_bucket: Annotated[int | None, typer.Option(help="decompose: the shortest row; default 1.", metavar="N")] = None,
    window_tokens: Annotated[
        int | None, typer.Option(help="Tokens planned together; changes the output; default 2^34.", metavar="N")
    ] = None,
    optimize: Annotated[
        bool, typer.Option("--optimize", help="ffd, bfd: near-optimal bins by linear programming (packtool[optimize]).")
    ] = False,
    shard_tokens: Annotated[int, typer.Option(help="Tokens after which a shard closes.", metavar="N")] = 1 << 28,
    segments: Annotated[
        bool, typer.Option("--segments/--no-segments", help="Write the table of which document lies where, or not.")
    ] = True,
    memory: Annotated[
        str | None,
        typer.Option(help="Tokens beyond it move twice; default half of the machine's memory.", metavar="SIZE"),
    ] = None,
    workers: options.Workers = None,
    config: options.Config = None,
    overwrite: options.Overwrite = False,
    resume: options.Resume = False,
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Pack token stores into rows of equal length, shuffled, with every token accounted for.

    Plans from document lengths alone (seconds for 100 million documents), then moves each token once.
    Memory: 8 to 20 bytes a document, and a few megabytes a worker.

    \b
    Examples:
    packtool pack store -o packed --strategy concat --sequence-length 2048
    packtool pack web code -o packed --strategy bfd -L 8192 --seed 7
    packtool pack store -o packed --strategy buckets --buckets 2048,4096,8192
    """
    from packtool.cli.results import show, show_preview
    from packtool.commands.pack import pack

    result = pack(
        stores,
        output,
        strategy=strategy,
        sequence_length=sequence_length,
        atom_size=atom_size,
        seed=seed,
        shuffle=shuffle,
        remainder=remainder,
        pad_token=pad_token,
        buckets=None if buckets is None else options.sizes(buckets, "--buckets"),
        padding_threshold=padding_threshold,
        max_repetition=max_repetition,
        extra_capacity=extra_capacity,
        min_bucket=min_bucket,
        window_tokens=window_tokens,
        optimize=optimize,
        shard_tokens=shard_tokens,
        segments=segments,
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
