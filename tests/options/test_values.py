"""Values from files: each is converted, or refused with its place, whatever it is and whatever kind is wanted."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from packtool.blending import blend
from packtool.errors import UsageError
from packtool.options import kinds
from packtool.options.commands import ARGUMENTS, arguments_of
from packtool.options.declare import declared
from packtool.options.kinds import Kind
from packtool.options.values import read_value

OF_OPTIONS = {each.option.kind for name in ARGUMENTS for each in declared(arguments_of(name)).values()} - {kinds.CALL}
OF_BLENDS = {kind for kind in vars(blend).values() if isinstance(kind, Kind)} | set(blend._OF_SOURCE.values())
WRITTEN: list[Any] = [
    *("a", "2k", "1%", "1/8", "", "\0", "a=1", "<a>,</a>", "{}", "60%"),
    *(True, 0, 3, -1, 1 << 70, 0.5, float("nan"), float("inf"), date(2026, 1, 1)),
    *([], ["a"], ["a", Path("b")], [1, "a"], [[]], [True], ["\0"], {}, {"a": 1}, {"a": {}}, {"a": []}),
    Path("a"),
]


@pytest.mark.parametrize("kind", sorted(OF_OPTIONS | OF_BLENDS, key=repr), ids=lambda kind: kind.words)
def test_a_value_of_every_kind(kind: Kind) -> None:
    refused = 0
    for value in WRITTEN:
        try:
            read_value(kind, "x", value, "a.toml:3")
        except UsageError:
            refused += 1
    assert refused < len(WRITTEN)


def test_stores_of_a_source(tmp_path: Path) -> None:
    (tmp_path / "blend.toml").write_text('[sources.a]\npath = "rows"\nstores = ["one", "two"]\n')
    stores = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert blend.Blend.read(tmp_path / "blend.toml").sources["a"].stores == tuple(stores)
    in_python = blend.Blend({"a": {"path": "rows", "stores": [tmp_path / "one", str(tmp_path / "two")]}})
    assert in_python.sources["a"].stores == tuple(stores)
