"""Print what any command returns, and what became of an export or import."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packtool.cli.previews import show_preview
from packtool.cli.printing import echo, print_json
from packtool.errors import visible

if TYPE_CHECKING:
    from packtool.commands.export import ExportResult
    from packtool.commands.import_ import ImportResult
    from packtool.commands.result import CommandResult
    from packtool.formats.schema import ExportManifest, TokenizerInfo
    from packtool.options.shared import Terminal


def show_result(result: CommandResult, terminal: Terminal, facts: Mapping[str, Any], say: Callable[[], object]) -> None:
    """Print the result or preview of a command.

    Args:
        facts: what this command reports to machines, in addition to what every command does.
        say: prints them for people.
    """
    if result.preview is not None:
        show_preview(result.preview, json=terminal.json)
    elif terminal.json:
        print_json({"schema_version": 1, "path": result.path, "kept": result.kept, **facts})
    elif not terminal.quiet:
        say()


def show_exchange(
    result: ExportResult | ImportResult, terminal: Terminal, facts: Mapping[str, Any], lines: Sequence[str]
) -> None:
    """Print the result of an export or import: facts for machines, lines for people."""
    done = finished_already(result.path) if result.kept else f"Wrote {result.path}."
    show_result(result, terminal, {"run": result.run, **facts}, lambda: echo("\n".join([*lines, done])))


def export_lines(manifest: ExportManifest) -> list[str]:
    """Say which documents an export leaves out, and which parts of its input the format does not keep."""
    from packtool.report.choice_words import left_out_of

    return left_out_lines(left_out_of(manifest.choice)) + [f"Not kept: {what}." for what in manifest.lost]


def left_out_lines(left_out: str) -> list[str]:
    """Say what was left out, in words that are "" where nothing was."""
    if not left_out:
        return []
    return [f"left out: {left_out}"]


def finished_already(path: Path | str) -> str:
    """Say that a resumed command had nothing to do."""
    return f"{path} was finished already; nothing was done."


def tokenizer_line(tokenizer: TokenizerInfo, name: str | None = None) -> str:
    """Say which tokenizer made the tokens, and what ends each document."""
    from packtool.formats.made_by import describe_tokenizer

    shown = visible(describe_tokenizer(tokenizer, name))
    return f"tokenizer: {shown}; EOS {visible(tokenizer.eos_token)} ({tokenizer.eos_id})"
