"""Packings of every kind of atom, and functions that count their calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import packtool
from packtool.planning.packing import STRATEGIES
from tests.stores import write_store
from tests.test_laws import options_of

KINDS: dict[str, dict[str, Any]] = {
    "concat-8": {"strategy": "concat", "sequence_length": 64, "atom_size": 8},
    "concat": {"strategy": "concat", "sequence_length": 64},
    "concat-192": {"strategy": "concat", "sequence_length": 64, "atom_size": 192},
    "concat-plain": {"strategy": "concat", "sequence_length": 64, "segments": False},
    "padding-16": {"strategy": "padding", "sequence_length": 64, "atom_size": 16},
    "padding-128": {"strategy": "padding", "sequence_length": 64, "atom_size": 128},
    "seamless": {"strategy": "seamless", "sequence_length": 64, "max_repetition": "0.5"},
    "buckets": {"strategy": "buckets", "buckets": (16, 64)},
}


def drawn_packing(data: st.DataObject, place: Path) -> tuple[list[Path], dict[str, Any]]:
    """Draw a strategy with its options and a mixture, and write the stores that are packed."""
    name = data.draw(st.sampled_from(sorted(STRATEGIES)), label="strategy")
    size = data.draw(st.sampled_from([8, 16, 33]))
    drawn = options_of(name, size, data)
    options: dict[str, Any] = {option: getattr(drawn, option) for option in (*STRATEGIES[name].accepts, "seed")}
    options["strategy"] = name
    if STRATEGIES[name].windowed:
        options["window_tokens"] = drawn.window_tokens
    stores = []
    for number in range(data.draw(st.integers(1, 3), label="stores")):
        lengths = data.draw(st.lists(st.integers(2, 4 * size), min_size=1, max_size=30), label="lengths")
        stores.append(write_store(place / f"store-{number}", lengths, per_shard=4, first=100 * number))
    mix = data.draw(st.sampled_from([None, "2", "1.5"]), label="epochs")
    if mix is not None:
        options["mix"] = [f"{store.name}={mix}x" for store in stores]
    return stores, options


class Counting:
    calls = 0


def counting(monkeypatch: pytest.MonkeyPatch, name: str, fail_at: int) -> Counting:
    """Count the calls of a function; the call of this number fails, once."""
    module, _, attribute = name.rpartition(".")
    target: Any = packtool
    for part in module.split(".")[1:]:
        target = getattr(target, part)
    original: Callable[..., Any] = getattr(target, attribute)
    count, failed = Counting(), False

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal failed
        count.calls += 1
        if count.calls == fail_at and not failed:
            failed = True
            raise OSError("counted")
        return original(*args, **kwargs)

    monkeypatch.setattr(target, attribute, counted)
    return count
