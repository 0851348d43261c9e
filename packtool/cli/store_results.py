"""Print what became of the texts that were tokenized."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from packtool.cli.printing import echo
from packtool.cli.results import finished_already, left_out_lines, show_result, tokenizer_line
from packtool.support.sizes import plural, show_bytes

if TYPE_CHECKING:
    from packtool.commands.tokenize import TokenizeResult
    from packtool.formats.schema import StoreManifest
    from packtool.options.shared import Terminal


def show_store(result: TokenizeResult, terminal: Terminal) -> None:
    """Print what became of the texts that were tokenized."""

    def say() -> None:
        echo(finished_already(result.path) if result.kept else "\n".join(_store_lines(result)))

    show_result(result, terminal, {"counts": result.counts, "run": result.run}, say)


def _store_lines(result: TokenizeResult) -> list[str]:
    from packtool.commands.path_info import length_to_try
    from packtool.formats.made_by import is_default
    from packtool.formats.token_store import TokenStore

    manifest = TokenStore(result.path).manifest
    tokenizer = manifest.tokenizer
    counts, run = result.counts, result.run
    documents, tokens, seconds = counts["documents"], counts["tokens"], max(run["written"]["wall"], 1e-3)
    now = run["this_run"]
    earlier = f" ({show_bytes(run['text_bytes'] - now['text_bytes'])} by an earlier run)"
    speed = f"{show_bytes(now['text_bytes'] / seconds)}/s, {now['tokens'] / seconds:,.0f} tokens/s"
    files = plural(len(manifest.inputs), "file")
    if len(manifest.inputs) == 1:
        files = manifest.inputs[0].name
    read = f"{show_bytes(run['text_bytes'])} of {files}"
    done = f"{read}{earlier * (now['text_bytes'] < run['text_bytes'])} read in {seconds:.1f} s"
    lines = [
        f"{plural(documents, 'document')}, {plural(tokens, 'token')}, "
        f"{tokens / max(documents, 1):,.1f} tokens per document",
        f"{done}: {speed}" if now["text_bytes"] else done,
        f"encoder {run['encoder']} ({run['encoder_why']}){_compared(run['texts_checked'])}",
        tokenizer_line(tokenizer),
    ]
    if is_default(tokenizer):
        lines.append("To train a model, give its tokenizer: --tokenizer FILE, DIRECTORY or HUB_ID")
    lines += text_lines(manifest, run)
    if not documents:
        again = "packtool tokenize INPUT -o OUT --dry-run"
        lines.append(f"Wrote {result.path}, which holds no document. To see what is read: {again}.")
    else:
        if "trained_tokens" in counts:
            lines.append(f"To see what trains: packtool show {shlex.quote(str(result.path))} --document 0")
        lines.append(f"Wrote {result.path}. What each strategy would make of it:")
        length = length_to_try(tokens)
        lines.append(f"packtool stats {shlex.quote(str(result.path))} --compare all --sequence-length {length}")
    return lines


def _compared(texts: int) -> str:
    """Say how many texts both encoders encoded; nothing where one encoder did all."""
    if not texts:
        return ""
    return f"; {plural(texts, 'text')} compared with tokenizers"


def text_lines(manifest: StoreManifest, run: Mapping[str, Any]) -> list[str]:
    """Say what became of the texts of a token store: what trains, what repeats, what was left out."""
    from packtool.report.figures import percent, texts_left_out
    from packtool.text.tokenizing.chat_counts import ends_shown

    counts = manifest.counts
    lines = _input_lines(counts, manifest.options)
    if "trained_tokens" in counts:
        lines.append(f"{counts['trained_tokens']:,} of the tokens train")
    if run.get("ends"):
        lines.append(ends_shown(run["ends"], manifest.options["stops"]))
    if "reasoning_conversations" in counts:
        done = {"mask": "masked", "drop": "dropped"}[manifest.options["reasoning"]]
        of = f"{counts['reasoning_conversations']:,} of {plural(counts['conversations'], 'conversation')}"
        lines.append(f"reasoning {done} in {of}")
    if "hidden_reasoning_messages" in counts:
        hidden = plural(counts["hidden_reasoning_messages"], "message")
        lines.append(f"the chat template leaves out the reasoning of {hidden}: earlier answers lose theirs, or all do")
    if "repeated_context_tokens" in counts:
        repeated = counts["repeated_context_tokens"]
        share = percent(repeated / max(counts["tokens"], 1))
        again = f"{repeated:,} tokens of context repeat ({share})"
        lines.append(f"of {plural(counts['conversations'], 'conversation')}, each turn as the model saw it: {again}")
        if repeated:
            lines.append(
                "A template for training that keeps earlier turns as they were repeats none: --chat-template FILE"
            )
    if "fim_documents" in counts:
        forms = f"{counts['fim_prefix_first']:,} prefix first, {counts['fim_suffix_first']:,} suffix first"
        lines.append(f"{plural(counts['fim_documents'], 'document')} rearranged to fill in the middle: {forms}")
    return lines + left_out_lines(texts_left_out(counts))


def _input_lines(counts: Mapping[str, int], options: Mapping[str, Any]) -> list[str]:
    """Say what was odd about the input, and which of its fields were taken."""
    from packtool.text.corpus.read_fields import recorded_lines

    lines = recorded_lines(options)
    for name, has in (("own_eos", "ended with EOS"), ("own_bos", "began with BOS")):
        if name in counts:
            lines.append(f"{plural(counts[name], 'text')} {has} already: no second one was added")
    return lines
