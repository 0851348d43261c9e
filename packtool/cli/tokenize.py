"""`packtool tokenize`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import typer

from packtool.cli.build import STAGE, Values, typer_command
from packtool.options.terminal import Terminal
from packtool.options.tokenize import TokenizeArguments
from packtool.sizes import plural, show_bytes

if TYPE_CHECKING:
    from packtool.commands.tokenize import TokenizeResult


@typer_command(TokenizeArguments, STAGE)
def command(values: Values, terminal: Terminal) -> None:
    """Tokenize text files into a token store: every document's tokens, each document ended by EOS.

    Reads JSON Lines, Parquet and plain text, also compressed (gz, zst, bz2, xz). Tens of MB of text per CPU second
    for byte-level BPE tokenizers. Memory: up to a gigabyte or two a worker, however large the corpus.

    \b
    Examples:
    packtool tokenize corpus.jsonl.gz -o store
    packtool tokenize data/ -o store --tokenizer openai-community/gpt2 -j 16
    cat dump.zst | packtool tokenize - -o store --text-field page.body
    """
    from packtool.commands.tokenize import tokenize

    show_store(tokenize(**values), terminal)


def show_store(result: TokenizeResult, terminal: Terminal) -> None:
    """Print what became of texts."""
    from packtool.cli.results import finished, show

    facts = {"counts": result.counts, "run": result.run}
    show(result, terminal, facts, lambda: typer.echo(finished(result.path) if result.kept else summary(result)))


def summary(result: TokenizeResult) -> str:
    """Summarise the run in a few lines."""
    from packtool.cli.results import tokenizer_line
    from packtool.storage.token_store import TokenStore

    tokenizer = TokenStore(result.path).manifest.tokenizer
    counts, run = result.counts, result.run
    documents, tokens, seconds = counts["documents"], counts["tokens"], max(run["written"]["wall"], 1e-3)
    now = run["this_run"]
    earlier = f" ({show_bytes(run['text_bytes'] - now['text_bytes'])} by an earlier run)"
    speed = (
        f"{show_bytes(now['text_bytes'] / seconds)}/s, {now['tokens'] / seconds:,.0f} tokens/s "
        f"with {plural(run['workers'], 'worker')}"
    )
    done = f"{show_bytes(run['text_bytes'])}{earlier * (now['text_bytes'] < run['text_bytes'])} in {seconds:.1f} s"
    lines = [
        f"{plural(documents, 'document')}, {plural(tokens, 'token')}, "
        f"{tokens / max(documents, 1):,.1f} tokens per document",
        f"{done}: {speed}" if now["text_bytes"] else done,
        f"encoder {run['encoder']} ({run['encoder_why']}); {plural(run['texts_checked'], 'text')} cross-checked",
    ]
    lines.append(tokenizer_line(tokenizer))
    if "trained_tokens" in counts:
        lines.append(f"{counts['trained_tokens']:,} of the tokens train")
    left_out = {name: counts[name] for name in ("empty", "filtered", "rejected") if counts[name]}
    if left_out:
        reasons = {name.removeprefix("rejected_"): count for name, count in counts.items() if "rejected_" in name}
        why = ", ".join(f"{count:,} {name.replace('_', '-')}" for name, count in reasons.items() if count)
        listed = ", ".join(f"{count:,} {name}" for name, count in left_out.items())
        lines.append(f"left out: {listed}{f' ({why})' * bool(why)}")
    if not documents:
        lines.append(f"Wrote {result.path}, which holds no document. What is at its input: packtool info INPUT")
        return "\n".join(lines)
    lines.append(f"Wrote {result.path}. What each strategy would make of it:")
    lines.append(f"packtool stats {shlex.quote(str(result.path))} --compare all --sequence-length 2048")
    return "\n".join(lines)
