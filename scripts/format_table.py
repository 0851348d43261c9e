"""Write the table of formats into a page, from the formats themselves.

python scripts/format_table.py docs/coming-from.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from packtool.exchange import FORMATS
from packtool.options.names import EXPORTS, IMPORTS

BEGIN, END = "<!-- formats -->\n", "<!-- end of formats -->\n"


def table() -> str:
    """Return a row for each format: who reads it, what it is, and what of packed rows it does not keep."""
    lines = [
        "| Trainer | What it reads | `--format` | `import` | What of packed rows is lost |",
        "|---|---|---|---|---|",
    ]
    lines.append("| PyTorch loops, Lightning, torchtitan, Transformers Trainer | `packtool.torch` | none | | nothing |")
    for name in EXPORTS:
        chosen = FORMATS[name]
        back = "yes" if name in IMPORTS else "no"
        lines.append(f"| {chosen.readers} | {chosen.summary} | `{name}` | {back} | {', '.join(chosen.losses)} |")
    return "\n".join(lines) + "\n"


def written(page: str) -> str:
    """Return the page with the table in its place."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks {BEGIN.strip()} or {END.strip()}")
    return f"{before}{begin}{table()}{end}{after}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
