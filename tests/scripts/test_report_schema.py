"""The description of reports says what the types say."""

import dataclasses
import json

import msgspec
import pytest
import report_schema


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
