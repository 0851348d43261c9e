"""What commands print when they are done: a table for people, one JSON object for machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packtool.errors import PacktoolError


def show(path: Path, report: dict[str, Any], run: dict[str, Any], *, quiet: bool, json: bool) -> None:
    """Print the report of a packed dataset that was just written."""
    if json:
        print_json({"schema_version": 1, "path": str(path), "run": run, "report": report})
    elif not quiet:
        from rich.console import Console

        from packtool.report.tables import print_report

        console = Console()
        print_report(report, console)
        seconds = run["written"]
        console.print(
            f"Wrote {path} in {seconds['wall']:.1f} s ({seconds['cpu']:.1f} CPU s). Report: {path / 'report.json'}"
        )


def print_json(value: Any) -> None:
    """Print one JSON object on standard output."""
    import sys

    import msgspec

    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")


def print_problems(problems: list[PacktoolError]) -> None:
    """Print what a check found, one problem in a line, on standard error."""
    import sys

    for problem in problems:
        sys.stderr.write(f"packtool: error[{problem.code}]: {problem}\n")
