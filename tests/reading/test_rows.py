"""Rows by number, by slice and by array, as stored and in another order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from tests.reading.opening import KINDS, opened, plain


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epoch", [None, 3])
def test_items_slices_and_index_arrays(packed: dict[str, Path], tmp_path: Path, kind: str, epoch: int | None) -> None:
    path, dataset = packed[kind], opened(packed[kind])
    if epoch is not None:
        packtool.shuffle(path, tmp_path / "rows", epoch=epoch)
        path, dataset = tmp_path / "rows", dataset.epoch(epoch)
    rows, written = plain(path), opened(path)
    assert len(dataset) == len(rows) > 3 * 32
    chosen = np.random.default_rng(0).integers(-len(rows), len(rows), 50)
    everything: list[Any] = [0, -1, np.int64(5), slice(3, 90), slice(None), slice(90, 3, -7), slice(5, 5), slice(9, 2)]
    everything += [chosen, chosen.tolist(), np.arange(len(rows)) % 3 == 0]
    assert dataset[[]].shape == (0, 32)
    for index in everything:
        expected = rows[index]
        np.testing.assert_array_equal(dataset[index], expected)
    np.testing.assert_array_equal(np.stack(list(dataset)), rows)
    for row in [0, 7, len(rows) - 1, -1]:
        np.testing.assert_array_equal(dataset.segments(row), written.segments(row))
    numbers = np.concatenate([chosen % len(rows), [len(rows) - 1, 0]])
    segments = dataset.rows.segments_of(numbers)
    whole = np.concatenate([dataset.segments(int(row)) for row in numbers])
    np.testing.assert_array_equal(segments.document, whole["document"])
    np.testing.assert_array_equal(segments.repeated, whole["repeated"])
    assert (segments.tokens() == 32).all()


def test_tokens_of_another_dtype_are_copies(packed: dict[str, Path]) -> None:
    stored, wide = opened(packed["rows"]), opened(packed["rows"], dtype="int64")
    assert stored[0].dtype == np.uint16
    for index in (0, slice(1, 3), [4, 5]):
        assert wide[index].dtype == np.int64
        assert wide[index].flags.writeable
        np.testing.assert_array_equal(wide[index], stored[index])
    assert next(iter(wide)).dtype == np.int64
