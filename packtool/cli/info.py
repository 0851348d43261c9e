"""`packtool info`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from packtool.cli.build import Values, typer_command
from packtool.errors import visible
from packtool.options.info import InfoArguments
from packtool.options.terminal import Terminal
from packtool.sizes import plural, show_bytes

if TYPE_CHECKING:
    from packtool.commands.info import Info


@typer_command(InfoArguments, ("json",))
def command(values: Values, terminal: Terminal) -> None:
    """Say what a path is, whether it is complete or unfinished, and what to do next.

    Reads manifests and file sizes only, so it answers at once. packtool verify checks the contents.

    \b
    Examples:
    packtool info packed
    packtool info packed --json
    """
    from packtool.cli.results import print_json
    from packtool.commands.info import info

    result = info(**values)
    if terminal.json:
        print_json({"schema_version": 1, **_plain(result)})
    else:
        typer.echo("\n".join(map(visible, _lines(result))))
    raise typer.Exit(1 if result.state == "damaged" else 0)


def _plain(result: Info) -> dict[str, Any]:
    return {
        "path": str(result.path),
        "kind": result.kind,
        "state": result.state,
        "facts": {name.replace(" ", "_"): value for name, value in result.facts.items()},
        "missing": result.missing,
        "next": result.next,
        "parts": [_plain(part) for part in result.parts],
    }


def _lines(result: Info) -> list[str]:

    state = "" if result.state == "unknown" else f", {result.state}"
    lines = [f"{result.path}: {result.kind}{state}"]
    width = max(map(len, result.facts), default=0)
    lines += [f"  {name:{width}}  {_shown(name, value)}" for name, value in result.facts.items()]
    lines += [f"  missing or of the wrong size: {name}" for name in result.missing]
    for part in result.parts:
        size = part.facts.get("rows", part.facts.get("documents"))
        amount = "" if size is None else f", {plural(size, 'row' if 'rows' in part.facts else 'document')}"
        lines.append(f"  {Path(part.path).name:20}  {part.kind}, {part.state}{amount}")
    if result.next:
        lines += ["Next:", *(f"  {command}" for command in result.next)]
    return lines


def _shown(name: str, value: Any) -> str:

    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "bytes":
        return f"{value:,} ({show_bytes(value)})" if value >= 1000 else str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return " / ".join(f"{each:,}" for each in value) if isinstance(value, list) else str(value)
