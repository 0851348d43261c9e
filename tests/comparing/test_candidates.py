"""Which strategies are tried, with which options."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from packtool.commands.pack_options import check_options
from packtool.comparing import Candidate, candidates
from packtool.errors import UsageError
from packtool.options.check import checked
from packtool.options.declare import declared
from packtool.options.pack import PackArguments
from packtool.packing import STRATEGIES, PackOptions


def test_every_combination_of_what_a_strategy_takes() -> None:
    grid = {"extra_capacity": [5, 10], "max_repetition": [Fraction(1, 10), Fraction(3, 10)], "atom_size": [64]}
    found = candidates(["concat", "bfd-extra", "seamless"], [32, 64], grid=grid)
    tried = [(c.strategy, c.options.sequence_length) for c in found]
    assert tried.count(("concat", 32)) == 1
    assert tried.count(("bfd-extra", 64)) == 2
    assert tried.count(("seamless", 32)) == 4
    assert [c.label for c in found if c.strategy == "seamless"][:2] == ["seamless c=5 r=0.1", "seamless c=5 r=0.3"]
    assert {c.label for c in found if c.strategy == "concat"} == {"concat"}


def test_labels_tell_candidates_of_a_row_length_apart() -> None:
    grid: dict[str, Any] = {"buckets": [(32, 64), (64, 128)], "min_bucket": [1, 8], "padding_threshold": [0, 1]}
    found = candidates(["all"], [32, 64], grid=grid)
    keys = [(c.options.sequence_length, c.label) for c in found]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_the_command_gives_the_options_tried(name: str) -> None:
    grid: dict[str, Any] = {
        "extra_capacity": [7],
        "max_repetition": [Fraction(1, 5)],
        "padding_threshold": [Fraction(1, 20)],
        "buckets": [(32, 64)],
        "min_bucket": [4],
        "atom_size": [16],
    }
    (tried,) = candidates([name], [64], grid={k: v for k, v in grid.items() if k in STRATEGIES[name].accepts})
    words = tried.arguments()
    given: dict[str, Any] = dict(zip((w[2:].replace("-", "_") for w in words[::2]), words[1::2], strict=True))
    options = checked(PackArguments("store", "packed", **given))
    assert check_options(options).name == name
    assert all(getattr(options, option) == getattr(tried.options, option) for option in declared(PackOptions))


@pytest.mark.parametrize(
    ("names", "grid", "message"),
    [
        (
            ["concat"],
            {"extra_capacity": [5]},
            "--extra-capacity: none of the strategies compared takes this",
        ),
        (["best"], {}, "there is no strategy 'best'"),
        (["bfd-extra"], {"extra_capacity": [64]}, r"--extra-capacity: 64 is out of range"),
    ],
)
def test_refuses_what_makes_no_sense(names: list[str], grid: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        candidates(names, [64], grid=grid)


def test_a_candidate_without_options_is_its_strategy() -> None:
    assert Candidate("bfd", PackOptions(sequence_length=8)).arguments() == [
        *("--strategy", "bfd"),
        *("--sequence-length", "8"),
    ]
