"""The orders in which a dataset is opened: of an epoch, as `shuffle` would write it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import packtool
from packtool.reading.stream import Stream
from tests.reading.opening import batch_of, bucketed, opened, plain


def test_an_epoch_has_the_seed_that_the_dataset_was_packed_with(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "rows", strategy="concat", sequence_length=32, seed=7)
    packtool.shuffle(tmp_path / "rows", tmp_path / "written", epoch=1)
    computed = opened(tmp_path / "rows").epoch(1)
    np.testing.assert_array_equal(computed[:], plain(tmp_path / "written"))
    assert repr(computed).endswith(", epoch 1 of seed 7>")
    stream = Stream(tmp_path / "rows", epochs=2)
    np.testing.assert_array_equal(batch_of(stream, [stream.source(0).items])["input_ids"][0], computed[0])

    packtool.pack(store, tmp_path / "several", strategy="buckets", buckets=(16, 64), seed=7)
    packtool.shuffle(tmp_path / "several", tmp_path / "batches", method="bucket", batch_tokens=128, epoch=2)
    written, made = bucketed(tmp_path / "batches"), bucketed(tmp_path / "several").epoch(2, batch_tokens=128)
    assert [made[n].tolist() for n in range(len(made))] == [written[n].tolist() for n in range(len(written))]
