"""`packtool tokenize`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from packtool.cli import options

if TYPE_CHECKING:
    from packtool.commands.tokenize import TokenizeResult


def command(
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="Files, directories, globs or URLs (s3://, gs://, hf://); - is standard input.", metavar="INPUT"
        ),
    ],
    output: options.Output,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="tokenizer.json, directory with one, or hub id; default a small byte-level BPE.",
            metavar="FILE|DIR|HUB_ID",
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit of the hub repository.", metavar="NAME")
    ] = None,
    text_field: Annotated[
        str, typer.Option(help="Field or column with the text; a.b goes down into objects.", metavar="FIELD")
    ] = "text",
    format: Annotated[
        str | None,
        typer.Option(
            help="jsonl, parquet, text (one document a file) or lines (one a line); default: by content.",
            metavar="NAME",
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(help="Read only files that match, whatever their suffix; may be repeated.", metavar="GLOB"),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Leave out files that match; may be repeated.", metavar="GLOB")
    ] = None,
    eos_token: Annotated[
        str | None, typer.Option(help="Token that ends every document, by text or id.", metavar="TEXT|ID")
    ] = None,
    bos: Annotated[bool, typer.Option("--bos", help="Begin every document with the BOS token.")] = False,
    bos_token: Annotated[
        str | None, typer.Option(help="BOS token, by text or id; implies --bos.", metavar="TEXT|ID")
    ] = None,
    special_tokens: Annotated[
        str,
        typer.Option(
            help="Special tokens that occur in a text: encode them as token, or as plain text.", metavar="token|text"
        ),
    ] = "token",
    min_words: Annotated[
        int | None, typer.Option(help="Leave out documents with fewer words.", min=0, metavar="N")
    ] = None,
    min_chars: Annotated[
        int | None, typer.Option(help="Leave out documents with fewer characters.", min=0, metavar="N")
    ] = None,
    max_chars: Annotated[
        int | None, typer.Option(help="Leave out documents with more characters.", min=0, metavar="N")
    ] = None,
    on_error: Annotated[
        str,
        typer.Option(help="Records that can't be used: fail, skip, or quarantine (to rejected.jsonl).", metavar="WAY"),
    ] = "fail",
    max_errors: Annotated[
        int | None, typer.Option(help="Give up after so many such records.", min=0, metavar="N")
    ] = None,
    max_record_bytes: Annotated[
        str, typer.Option(help="Largest record, uncompressed; memory grows with it.", metavar="SIZE")
    ] = "256MiB",
    encoder: Annotated[
        str, typer.Option(help="auto, tokenizers or gigatoken; the output is the same.", metavar="NAME")
    ] = "auto",
    workers: options.Workers = None,
    config: options.Config = None,
    overwrite: options.Overwrite = False,
    resume: options.Resume = False,
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Tokenize text files into a token store: every document's tokens, each document ended by EOS.

    Reads JSON Lines, Parquet and plain text, also compressed (gz, zst, bz2, xz). Tens of MB of text per CPU second
    for byte-level BPE tokenizers. Memory: up to 600 MB a worker, however large the corpus.

    \b
    Examples:
    packtool tokenize corpus.jsonl.gz -o store
    packtool tokenize data/ -o store --tokenizer openai-community/gpt2 -j 16
    cat dump.zst | packtool tokenize - -o store --text-field page.body
    """
    from packtool.commands.tokenize import tokenize

    result = tokenize(
        inputs,
        output,
        tokenizer=tokenizer,
        revision=revision,
        text_field=text_field,
        format=format,
        include=include or (),
        exclude=exclude or (),
        eos_token=eos_token,
        bos=bos,
        bos_token=bos_token,
        special_tokens=special_tokens,
        min_words=min_words,
        min_chars=min_chars,
        max_chars=max_chars,
        on_error=on_error,
        max_errors=max_errors,
        max_record_bytes=max_record_bytes,
        encoder=encoder,
        workers=workers,
        overwrite=overwrite,
        resume=resume,
        dry_run=dry_run,
        quiet=quiet,
    )
    if result.preview is not None:
        from packtool.cli.results import show_preview

        show_preview(result.preview, overwrite=overwrite, json=json)
    elif json:
        from packtool.cli.results import print_json

        print_json(
            {
                "schema_version": 1,
                "path": str(result.path),
                "kept": result.kept,
                "counts": result.counts,
                "run": result.run,
            }
        )
    elif not quiet:
        from packtool.cli.results import finished

        typer.echo(finished(result.path) if result.kept else summary(result))


def summary(result: TokenizeResult) -> str:
    """What was done, in a few lines."""
    from packtool.sizes import show_bytes

    counts, run = result.counts, result.run
    documents, tokens, seconds = counts["documents"], counts["tokens"], max(run["written"]["wall"], 1e-3)
    lines = [
        f"{documents:,} documents, {tokens:,} tokens, {tokens / max(documents, 1):,.1f} tokens per document",
        f"{show_bytes(run['text_bytes'])} in {seconds:.1f} s: {show_bytes(run['text_bytes'] / seconds)}/s, "
        f"{tokens / seconds:,.0f} tokens/s with {run['workers']} worker{'s' * (run['workers'] > 1)}",
        f"encoder {run['encoder']} ({run['encoder_why']}); {run['texts_checked']:,} texts cross-checked",
    ]
    left_out = {name: counts[name] for name in ("empty", "filtered", "rejected") if counts[name]}
    if left_out:
        lines.append("left out: " + ", ".join(f"{count:,} {name}" for name, count in left_out.items()))
    lines.append(f"Wrote {result.path}. What each strategy would make of it:")
    lines.append(f"packtool stats {shlex.quote(str(result.path))} --compare all --sequence-length 2048")
    return "\n".join(lines)
