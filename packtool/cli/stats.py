"""`packtool stats`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from packtool.cli import options


def command(
    path: Annotated[
        list[str],
        typer.Argument(
            help="Text files as tokenize reads them, a packed dataset, or token stores (several are packed together).",
            metavar="PATH",
        ),
    ],
    compare: Annotated[
        str | None,
        typer.Option(help="Strategies to try on documents, such as concat,bfd; or all.", metavar="NAME,..."),
    ] = None,
    sequence_length: Annotated[
        str | None,
        typer.Option("--sequence-length", "-L", help="Row lengths to try, such as 2048,8192.", metavar="N,..."),
    ] = None,
    buckets: Annotated[
        str | None,
        typer.Option(
            help="Row lengths of buckets and length-buckets; several lists to try are set apart by a slash.",
            metavar="N,.../N,...",
        ),
    ] = None,
    atom_size: Annotated[
        str | None, typer.Option("--atom-size", "-A", help="Atom sizes to try.", metavar="N,...")
    ] = None,
    extra_capacity: Annotated[
        str | None, typer.Option(help="Tokens by which bins may exceed a row, to try.", metavar="N,...")
    ] = None,
    max_repetition: Annotated[
        str | None, typer.Option(help="Largest shares of a row to repeat, to try.", metavar="SHARE,...")
    ] = None,
    padding_threshold: Annotated[
        str | None, typer.Option(help="Shares of a bucket that may stay empty, to try.", metavar="SHARE,...")
    ] = None,
    min_bucket: Annotated[str | None, typer.Option(help="Shortest rows to try.", metavar="N,...")] = None,
    batch_size: Annotated[
        int | None,
        typer.Option("--batch-size", "-B", help="Rows in a batch, for steps per epoch and mixing.", metavar="N"),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Also write the report to this file, as one self-contained page.", metavar="FILE"),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="With --compare: print everything, not the verdict and a table alone.")
    ] = False,
    order: Annotated[
        Path | None,
        typer.Option(help="Packed dataset: measure it in this order, from shuffle --order-only.", metavar="DIR"),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Text files: count tokens with it; with --compare, default the one of packtool.",
            metavar="FILE|DIR|HUB_ID",
        ),
    ] = None,
    eos_token: Annotated[str | None, typer.Option(help="Text files: as tokenize takes it.", metavar="TEXT|ID")] = None,
    text_field: Annotated[
        str | None, typer.Option(help="Text files: field or column with the text.", metavar="NAME")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Text files: jsonl, parquet, text or lines.", metavar="NAME")
    ] = None,
    workers: options.Workers = None,
    config: options.Config = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Measure a corpus, a token store or a packed dataset; compare strategies before anything is written.

    Of stores and datasets it reads lengths and segment tables, no tokens: about 45 CPU seconds for 10 million documents
    and all strategies, 800 MB. Of text files it reads everything.

    \b
    Examples:
    packtool stats packed --batch-size 256
    packtool stats store --compare all -L 2048,8192 --html report.html
    packtool stats web code --compare bfd-extra -L 2048 --extra-capacity 10,50
    packtool stats corpus.jsonl.gz --compare concat,bfd -L 2048
    """
    from packtool.cli.results import print_json
    from packtool.commands.stats import stats

    report = stats(
        path,
        compare=None if compare is None else [name.strip() for name in compare.split(",")],
        sequence_length=None if sequence_length is None else options.sizes(sequence_length, "--sequence-length"),
        buckets=None if buckets is None else buckets.split("/"),
        atom_size=None if atom_size is None else options.sizes(atom_size, "--atom-size"),
        extra_capacity=None if extra_capacity is None else options.sizes(extra_capacity, "--extra-capacity"),
        max_repetition=None if max_repetition is None else max_repetition.split(","),
        padding_threshold=None if padding_threshold is None else padding_threshold.split(","),
        min_bucket=None if min_bucket is None else options.sizes(min_bucket, "--min-bucket"),
        batch_size=batch_size,
        html=html,
        order=order,
        tokenizer=tokenizer,
        eos_token=eos_token,
        text_field=text_field,
        format=format,
        workers=workers,
        quiet=quiet,
    )
    if json:
        print_json(report)
    else:
        from rich.console import Console

        from packtool.report.terminal import print_stats

        print_stats(report, Console(), full=full)
