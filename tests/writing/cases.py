"""Packings of every kind of atom, and functions that count their calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import packtool

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
