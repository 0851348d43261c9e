"""The commands that a TOML file may have tables for."""

from __future__ import annotations

from packtool.options.export import ExportArguments
from packtool.options.import_ import ImportArguments
from packtool.options.materialize import MaterializeArguments
from packtool.options.pack import PackArguments
from packtool.options.shuffle import ShuffleArguments
from packtool.options.stats import StatsArguments
from packtool.options.tokenize import TokenizeArguments

STAGES: dict[str, type] = {
    "tokenize": TokenizeArguments,
    "pack": PackArguments,
    "shuffle": ShuffleArguments,
    "materialize": MaterializeArguments,
    "export": ExportArguments,
    "stats": StatsArguments,
}
"""In the order in which `packtool run` goes through them."""
WRITING = {**STAGES, "import": ImportArguments}
"""All that may be interrupted."""
