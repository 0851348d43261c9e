"""The description of reports says what the types say."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import msgspec
import pytest
import report_schema

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("name", "write"), [("report-schema.md", "page"), ("report.schema.json", "schema")])
def test_the_pages_are_up_to_date(name: str, write: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == getattr(report_schema, write)(), (
        "write them anew: python scripts/report_schema.py docs"
    )


def test_every_name_has_a_meaning() -> None:
    schema = json.loads(report_schema.schema())
    described = [part for kind in schema["$defs"].values() for part in kind["properties"].values()]
    assert len(described) > 100
    assert all(part["description"] for part in described)
    assert schema["$defs"]["LengthBin"]["properties"]["from"]["description"] == "the shortest length of the bin."


def test_a_name_without_a_meaning_is_refused() -> None:
    class Forgotten(msgspec.Struct):
        """A part.

        Attributes:
            one: described.
        """

        one: int
        two: int

    @dataclasses.dataclass
    class Described:
        """A part.

        Attributes:
            one, two: either
                of them.
        """

        one: int
        two: int

    with pytest.raises(SystemExit, match=r"Forgotten\.two is not described"):
        list(report_schema.members(Forgotten))
    assert list(report_schema.members(Described)) == [("one", int, "either of them."), ("two", int, "either of them.")]
