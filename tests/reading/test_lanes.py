"""Labels of the partial shuffle: rows go on in the next batch, but the end of a lane does not go on in its begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.reading.batches import GlobalBatches
from packtool.reading.stream import Stream
from tests.stores import write_store

LANES = 3


@pytest.mark.parametrize("lengths", [[70, 5, 90, 33, 61, 8, 120, 44] * 4, [2000], [31] * 60])
@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_a_target_goes_on_where_the_lane_does_or_begins_a_document(
    tmp_path: Path, lengths: list[int], across: bool, epoch: int
) -> None:
    write_store(tmp_path / "store", lengths)
    options: dict[str, Any] = {"method": "partial", "sequence_length": 32, "batch_size": LANES}
    packtool.shuffle(tmp_path / "store", tmp_path / "rows", **options)
    dataset = packtool.open(tmp_path / "rows").epoch(epoch)
    stream = Stream(tmp_path / "rows", epochs=3, train_across_documents=across, fields=("input_ids", "labels"))
    batches = GlobalBatches(stream, LANES)
    batches.set_epoch(0)
    batches.skip(epoch * len(dataset))
    labels = np.concatenate([stream.batch(turn.addresses)["labels"] for turn in batches])
    wraps = 0
    for lane in range(LANES):
        rows = range(lane, len(dataset), LANES)
        places = []  # of each token of the lane, in its order: document and place in it
        for row in rows:
            for document, start, length, _ in dataset.segments(row).tolist():
                places += [(document, start + place) for place in range(length)]
        tokens = np.concatenate([dataset[row] for row in rows]).tolist()
        found = np.concatenate([labels[row] for row in rows if row < len(labels)]).tolist()
        for place in range(len(tokens) - 1):
            (document, here), (following, there) = places[place], places[place + 1]
            goes_on = (following, there) == (document, here + 1)
            is_target = goes_on or (across and there == 0)
            wraps += not goes_on and there != 0
            if place < len(found):
                assert found[place] == (tokens[place + 1] if is_target else -100), (lane, place)
    assert epoch == 0 or wraps
