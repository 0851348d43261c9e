"""Every option, declared once: one file for each command.

The fields of `PackArguments` are the arguments of `packtool.pack`, the options of `packtool pack`, the keys of `[pack]`
in a TOML file and the rows of docs/cli.md; see `declare` for how. Nothing heavy is imported here, so that `--help`
answers at once.
"""

from __future__ import annotations

from packtool.options.pack import PackArguments
from packtool.options.shuffle import ShuffleArguments
from packtool.options.stats import StatsArguments
from packtool.options.tokenize import TokenizeArguments

STAGES: dict[str, type] = {
    "tokenize": TokenizeArguments,
    "pack": PackArguments,
    "shuffle": ShuffleArguments,
    "stats": StatsArguments,
}
"""The commands that a TOML file may have tables for, in the order in which `packtool run` goes through them."""
