"""Pages, tables and pictures that scripts write are what they would write today."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import cli_reference
import code_list
import file_list
import page_tables
import pytest
import report_schema
import rows_picture

DOCS = Path(__file__).parents[2] / "docs"
GENERATED: dict[str, tuple[str, Callable[[str], str]]] = {
    "cli.md": ("cli_reference.py docs/cli.md", lambda _: cli_reference.reference()),
    "codes.md": ("code_list.py docs/codes.md", lambda _: code_list.page()),
    "files.md": ("file_list.py docs/files.md", lambda _: file_list.page()),
    **{name: ("page_tables.py docs", partial(page_tables.written, name)) for name in page_tables.TABLES},
    "report-schema.md": ("report_schema.py docs", lambda _: report_schema.page("report-schema.md")),
    "manifest.md": ("report_schema.py docs", lambda _: report_schema.page("manifest.md")),
    "report.schema.json": ("report_schema.py docs", lambda _: report_schema.schema()),
    "rows.svg": ("rows_picture.py docs/rows.svg", lambda _: rows_picture.picture()),
}
"""The script that makes each file of docs/, and what the file holds, given the file as it is."""


@pytest.mark.parametrize("name", GENERATED)
def test_it_is_up_to_date(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    script, made = GENERATED[name]
    assert text == made(text), f"write it anew: python scripts/{script}"


def test_a_page_has_one_place_for_its_table() -> None:
    text = (DOCS / "coming-from.md").read_text(encoding="utf-8")
    assert page_tables.written("coming-from.md", text).count("| `megatron` |") == 1
    with pytest.raises(ValueError, match="lacks <!-- formats -->"):
        page_tables.written("coming-from.md", "# A page\n")
