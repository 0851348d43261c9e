"""Write the tables that stand within pages, each between its markers, from what it is about.

python scripts/page_tables.py docs
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from packtool.exchange import FORMATS
from packtool.options.declare import declared
from packtool.options.names import EXPORTS, IMPORTS, STRATEGIES
from packtool.options.plans import PackOptions


def formats() -> str:
    """Return a row for each format: who reads it, what it is, and what of packed rows it does not keep."""
    lines = [
        "| Trainer | `--format` | What it reads | `import` | What of packed rows is lost |",
        "|---|---|---|---|---|",
    ]
    lines.append("| PyTorch loops, Lightning, torchtitan, Transformers Trainer | none | `packtool.torch` | | nothing |")
    for name in EXPORTS:
        chosen = FORMATS[name]
        back = "yes" if name in IMPORTS else "no"
        lines.append(f"| {chosen.readers} | `{name}` | {chosen.summary} | {back} | {', '.join(chosen.losses)} |")
    return "\n".join(lines) + "\n"


def strategy_options() -> str:
    """Return a row for each option that some strategies take and others do not."""
    lines = ["| option | taken by | default | what it does |", "|---|---|---|---|"]
    for option in declared(PackOptions).values():
        takers = [f"`{name}`" for name in STRATEGIES if option.taken(name)]
        if len(takers) == len(STRATEGIES):
            continue
        default = option.option.default
        if option.option.required:
            default = "required"
        elif not default and option.default is not None:
            default = str(option.default).strip("()")
        lines.append(f"| `{option.flag}` | {', '.join(takers)} | {default} | {option.option.help} |")
    return "\n".join(lines) + "\n"


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "coming-from.md": ("formats", formats),
    "strategies.md": ("options of strategies", strategy_options),
}
"""The markers of each page's table, and what makes the table."""


def written(page: str, text: str) -> str:
    """Return the text of a page with its table in place."""
    marker, table = TABLES[page]
    begin, end = f"<!-- {marker} -->\n", f"<!-- end of {marker} -->\n"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page lacks {begin.strip()} or {end.strip()}")
    return f"{before}{begin}{table()}{end}{after}"


if __name__ == "__main__":
    for name in TABLES:
        path = Path(sys.argv[1], name)
        path.write_text(written(name, path.read_text(encoding="utf-8")), encoding="utf-8")
