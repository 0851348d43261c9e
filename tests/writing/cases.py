"""Packings of every kind of atom, and functions that count their calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import packtool
from packtool.planning.packing import STRATEGIES
from packtool.reading import BucketDataset, Dataset
from tests.stores import document_loss, write_store
from tests.test_laws import drawn_multiple, options_of

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


def drawn_packing(data: st.DataObject, place: Path, name: str) -> tuple[list[Path], dict[str, Any]]:
    """Draw options of a strategy and a choice of documents, and write the stores that are packed."""
    size = data.draw(st.sampled_from([8, 16, 33]))
    multiple = 1
    if data.draw(st.booleans(), label="at multiples"):
        multiple = drawn_multiple(name, size, data)
    drawn = options_of(name, size, data, multiple=multiple)
    taken = (*STRATEGIES[name].accepts, "document_multiple", "seed")
    options: dict[str, Any] = {option: getattr(drawn, option) for option in taken}
    options["strategy"] = name
    if STRATEGIES[name].windowed:
        options["window_tokens"] = drawn.window_tokens
    stores = []
    for number in range(data.draw(st.integers(1, 3), label="stores")):
        lengths = data.draw(st.lists(st.integers(2, 4 * size), min_size=1, max_size=30), label="lengths")
        loss = data.draw(st.sampled_from([None, document_loss, rare_targets]), label="loss")
        chats = loss is rare_targets
        if chats:
            options["too_long"] = "cut"
        store, first = place / f"store-{number}", 100 * number
        made: dict[str, Any] = {"per_shard": 4, "first": first, "loss": loss, "conversations": chats}
        stores.append(write_store(store, lengths, columns=kept_fields, **made))
    keeping = STRATEGIES[name].whole and STRATEGIES[name].keeps_eos
    if data.draw(st.booleans(), label="first tokens alone") and (keeping or "too_long" not in options):
        options["too_long"] = "first"
    given: dict[str, list[Any]] = {
        "where": [None, "lang != 'de'", "tokens > 5 or store == 'store-0'"],
        "keep": [(), ("score:number", "lang")],
        "order_by": [None, "-lang,score:number"],
    }
    for option, values in given.items():
        options[option] = data.draw(st.sampled_from(values), label=option)
    mix = data.draw(st.sampled_from([None, "2", "1.5"]), label="epochs")
    if mix is not None:
        options["mix"] = [f"{store.name}={mix}x" for store in stores]
    return stores, options


def require_same(found: Dataset | BucketDataset, expected: Dataset | BucketDataset) -> None:
    """Hold all rows, their segments, and batches of them against each other."""
    assert found.columns == expected.columns
    if isinstance(found, BucketDataset) and isinstance(expected, BucketDataset):
        pairs = list(zip(found.buckets.values(), expected.buckets.values(), strict=True))
        batches: list[Any] = []
        if found.batches is not None and expected.batches is not None:
            batches = [(found.batch(number), expected.batch(number)) for number in range(len(expected))]
    else:
        assert type(found) is type(expected) is Dataset
        pairs = [(found.rows, expected.rows)]
        kept = [f"column.{name}" for name in expected.columns]
        given: list[dict[str, Any]] = [{}, {"fields": ("input_ids", *kept)}]
        some = np.random.default_rng(0).integers(0, len(expected), 7) if len(expected) else []
        batches = [(found.batch(some, **fields), expected.batch(some, **fields)) for fields in given]
    for mine, other in batches:
        assert mine.keys() == other.keys()
        for name in other:
            np.testing.assert_array_equal(mine[name], other[name])  # which takes NaN for equal
    for mine, other in pairs:
        assert len(mine) == len(other)
        assert np.array_equal(mine[:], other[:])
        if len(other):
            assert np.array_equal(mine[[0, len(other) - 1, 0]], other[[0, -1, 0]])
        assert all(np.array_equal(mine.segments(row), other.segments(row)) for row in range(len(other)))


def kept_fields(document: int) -> dict[str, str | None]:
    """What is kept with a document; some lack a value."""
    return {"lang": ["en", "de", None, "", "ünï"][document % 5], "score": ["2", "10", None, "-0.5"][document % 4]}


def rare_targets(document: int, length: int) -> list[int]:
    """Which tokens of a conversation train: an answer now and then, and more often none in a row."""
    return [int((document + token // 6) % 5 == 0) for token in range(length)]


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
