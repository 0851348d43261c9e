"""Recorded options are JSON, whatever their kind, and those that are not set are not mentioned."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import pytest

import packtool
from packtool.formats.manifest import read_as
from packtool.formats.schema import StoreManifest
from packtool.options.check import checked
from packtool.options.declare import Option
from packtool.options.kinds import SHARE
from packtool.options.record import recorded
from tests.stores import write_store


@dataclass(frozen=True)
class Arguments:
    """Of a command that has an option of a share and one of anything."""

    share: Annotated[Fraction | str | None, Option(SHARE, "A share.", recorded=True)] = None
    other: Annotated[Any, Option(SHARE, "Anything.", recorded=True)] = None


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Fraction(1, 3), "1/3"),
        (Decimal("3.3"), "3.3"),
        (Path("a/b"), "a/b"),
        ((1, Fraction(1, 2)), [1, "1/2"]),
        (["a"], ["a"]),
        (0, 0),
        (False, False),
        ({"a": Fraction(1, 3), "b": None}, {"a": "1/3", "b": None}),
    ],
)
def test_values_of_any_kind_are_json(value: object, written: object) -> None:
    assert json.loads(json.dumps(recorded(Arguments(other=value)))) == {"other": written}


def test_what_is_not_set_is_left_out() -> None:
    assert recorded(Arguments()) == {}
    assert recorded(checked(Arguments(share="30%"))) == {"share": "3/10"}


def test_manifests_do_not_mention_what_is_not_set(tmp_path: Path) -> None:
    """So that a new option changes none: of texts, of a choice of documents, and of ids from elsewhere."""
    rows = tmp_path / "rows"
    store = write_store(tmp_path / "store", [40, 7, 90] * 5)
    packtool.pack(store, rows, strategy="bfd", sequence_length=16, sample="50%")
    choice = packtool.open(rows).manifest.choice
    assert choice.options == {"sample": "1/2", "sample_interval": 16, "seed": 42}
    packtool.export(store, tmp_path / "raw", format="nanogpt")
    packtool.import_(tmp_path / "raw", tmp_path / "again", format="nanogpt")
    assert read_as(tmp_path / "again", StoreManifest).options == {"imported": {"format": "nanogpt", "dtype": "<u2"}}
