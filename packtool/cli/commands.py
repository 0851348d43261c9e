"""The commands by name, each imported only when it is called, so that starting one costs nothing for the others."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from typer.completion import get_completion_inspect_parameters, install_callback, show_callback
from typer.core import TyperGroup

from packtool.cli.build import Command, flag, help_option

SUMMARIES = {
    "tokenize": "Turn text files into a token store.",
    "pack": "Pack token stores into rows of equal length.",
    "shuffle": "Shuffle into another order or epoch, at any size.",
    "materialize": "Write the tokens of rows packed with --index-only.",
    "merge": "Merge what tasks (--task) wrote into one dataset.",
    "export": "Export documents or rows to another tool's format.",
    "import": "Import token ids of other tools as a token store.",
    "stats": "Measure a corpus or dataset; compare strategies.",
    "show": "Show one row of a packed dataset, decoded.",
    "find": "Find the rows that hold a document.",
    "run": "Run all stages of one TOML file, where needed.",
    "info": "Say what a path is, and what to do next.",
    "verify": "Check files, checksums, segments and ledger.",
    "doctor": "Show versions, encoders, extras; what is missing.",
}


TAKEN = ("import", "run")
"""Names that a module of `packtool.cli` can't have: a keyword, and the function that runs a command line."""


class _Commands(Mapping[str, Any]):
    """What Typer makes of the module `packtool.cli.NAME`."""

    def __getitem__(self, name: str) -> Any:
        summary = SUMMARIES[name]
        module = importlib.import_module(f"packtool.cli.{name}{'_' if name in TAKEN else ''}")
        return Command(name, module.command, summary)

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


class Commands(TyperGroup):
    """The group of all commands. Help on it loads none of them."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "commands": _Commands()})
        get_completion_inspect_parameters()  # registers the shells
        self.params += [
            flag("--install-completion", callback=install_callback, help="Install completion for the current shell."),
            flag("--show-completion", callback=show_callback, help="Print the completion script of the current shell."),
            help_option(),
        ]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))
