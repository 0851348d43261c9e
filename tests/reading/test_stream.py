"""Epochs as one stream of samples: a number says which sample of which epoch is meant."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

import packtool
from packtool.reading.stream import Stream
from tests.reading.opening import batch_of


def test_epochs_follow_the_rule_of_the_shuffle(rows: Path, tmp_path: Path) -> None:
    for epoch in (0, 1, 2):
        packtool.shuffle(rows, tmp_path / f"rows-{epoch}", epoch=epoch)
    written = [packtool.open(tmp_path / f"rows-{epoch}")[:] for epoch in (0, 1, 2)]
    stream = pickle.loads(pickle.dumps(Stream(rows, epochs=3)))
    every = batch_of(stream, range(len(stream)))  # a batch across three epochs
    np.testing.assert_array_equal(every["input_ids"], np.concatenate(written))
    one = batch_of(stream, [stream.source(0).items + 5])
    np.testing.assert_array_equal(one["input_ids"], written[1][5:6])
    stored = Stream(rows, epochs=2, shuffle=False)
    np.testing.assert_array_equal(batch_of(stored, [stored.source(0).items])["input_ids"][0], packtool.open(rows)[0])
