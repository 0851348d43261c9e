"""Describe what `packtool info` found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from packtool.support.sizes import plural, show_bytes

if TYPE_CHECKING:
    from packtool.commands.path_info import Info


def plain_info(result: Info) -> dict[str, Any]:
    """Return the findings of `packtool info`, for JSON."""
    return {
        "path": result.path,
        "kind": result.kind,
        "state": result.state,
        "facts": {name.replace(" ", "_"): value for name, value in result.facts.items()},
        "missing": result.missing,
        "next": result.next,
        "parts": list(map(plain_info, result.parts)),
    }


def describe_info(result: Info) -> list[str]:
    """Describe the findings of `packtool info`, in lines."""
    state = "" if result.state == "unknown" else f", {result.state}"
    lines = [f"{result.path}: {result.kind}{state}"]
    width = max(map(len, result.facts), default=0)
    lines += [f"  {name:{width}}  {_fact(name, value)}" for name, value in result.facts.items()]
    lines += [f"  missing or of the wrong size: {name}" for name in result.missing]
    for part in result.parts:
        amount = ""
        if "rows" in part.facts:
            amount = f", {plural(part.facts['rows'], 'row')}"
        elif "documents" in part.facts:
            amount = f", {plural(part.facts['documents'], 'document')}"
        lines.append(f"  {Path(part.path).name:20}  {part.kind}, {part.state}{amount}")
    if result.next:
        lines += ["Next:", *(f"  {command}" for command in result.next)]
    return lines


def _fact(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "bytes":
        return f"{value:,} ({show_bytes(value)})" if value >= 1000 else str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return " / ".join(f"{number:,}" for number in value) if isinstance(value, list) else str(value)
