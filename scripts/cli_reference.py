"""Write the command-line reference, from the commands themselves.

python scripts/cli_reference.py docs/cli.md
"""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packtool.cli import app
from packtool.options.declare import Group

INTRODUCTION = """# Command line

Written from the commands by `scripts/cli_reference.py`; a test fails when this page and they differ. What each strategy
does is on its own page ([strategies](strategies.md)), and so are the files ([format](format.md)), configuration files
([configuration](configuration.md)) and every error and warning ([codes](codes.md)).

Results go to standard output, everything else to standard error. Exit codes: 0 done; 1 data or run time (a missing
file, a bad record, a full disk, `verify` or `info` found damage, `find` found nothing); 2 usage (an unknown option,
options that do not fit); 130 interrupted by Ctrl-C. With `--json` an error is a JSON object on standard output, beside
the line on standard error. `NO_COLOR` turns colours off, `PACKTOOL_PROGRESS` sets `--progress`, and
`packtool --install-completion` makes the shell complete commands and options.

Numbers: a length or a count (`-L 2k`, `--min-tokens`) has `k`, `M` and `G` in powers of 1024; an amount (`--tokens
300B`) has `k`, `M`, `B` and `T` in powers of 1000; a share is `1%`, `0.01` or `1/100`; what is held out is a share
below 1, or an amount with its unit (`--holdout '2k documents'`); `--max-errors 5` is five records, `1%` a share.
"""


def reference() -> str:
    """The whole page."""
    group: Any = app
    context = group.make_context("packtool", [], resilient_parsing=True)
    commands = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    lines = [INTRODUCTION, "| command | what it does |", "| --- | --- |"]
    lines += [f"| [`packtool {name}`](#packtool-{name}) | {command.short_help} |" for name, command in commands]
    for name, command in commands:
        lines += ["", f"## packtool {name}", "", *section(name, command)]
    return "\n".join(lines) + "\n"


def section(name: str, command: Any) -> Iterator[str]:
    """One command: what it does, examples, arguments and options."""
    text, _, examples = command.help.partition("\b")
    yield re.sub(r"(?<!\n)\n(?!\n)", " ", text.strip())
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name != "argument"]
    yield from ("", "```console")
    for argument in arguments:
        name += f" {argument.metavar}" + ("..." if argument.nargs == -1 else "")
    yield f"packtool {name} [OPTIONS]"
    yield from (line.strip() for line in examples.strip().splitlines()[1:])
    yield "```"
    yield ""
    for argument in arguments:
        yield f"- `{argument.metavar}`: {argument.help}"
    for group in typing.get_args(Group):
        members = [option for option in options if option.rich_help_panel == group]
        if members:
            yield from ("", f"**{group}**", "", "| option | default | meaning |", "| --- | --- | --- |")
        for option in members:
            yield f"| `{spelling(option)}` | {shown(option)} | {str(option.help).replace('|', '&#124;')} |"


def spelling(option: Any) -> str:
    """The option as it is typed, with what it takes. A bar would end the cell of the table."""
    flags = ", ".join(sorted(option.opts, key=len)) + "".join(f" / {flag}" for flag in option.secondary_opts)
    value = "" if option.is_flag else f" {option.metavar}"
    return (flags + value).replace("|", "\\|")


def shown(option: Any) -> str:
    """The default, as it would be typed."""
    if option.required:
        return "required"
    if isinstance(option.show_default, str):
        return option.show_default
    if option.is_flag or option.default in (None, ""):
        on = option.default is True and option.secondary_opts
        return f"`{option.opts[0]}`" if on else ""
    return f"`{option.default}`"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: cli_reference.py OUTPUT")
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
