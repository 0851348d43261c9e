"""What trains, as a training step reads it: rows of a dataset in every order, held against their segments."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.planning.plan import PADDING
from packtool.reading import Dataset
from packtool.reading.batches import GlobalBatches
from packtool.reading.stream import Stream
from tests.making import Make, drawn_lengths
from tests.reading.opening import opened
from tests.stores import document_loss
from tests.test_loss import expected
from tests.writing.cases import KINDS

LENGTHS, LANES = drawn_lengths(40, 149, 5, 1), 3
DOCUMENTS = [document_loss(number, length) for number, length in enumerate(LENGTHS)]


def check(dataset: Dataset) -> None:
    """Every row: its loss, and the labels of a batch."""
    rows = len(dataset)
    loss, batch = dataset.loss(slice(None)), dataset.batch(slice(None), labels="same")
    assert loss is not None
    for row in range(rows):
        segments = [(d, s, n) for d, s, n, _ in dataset.segments(row).tolist()]
        wanted = expected(DOCUMENTS, segments, len(LENGTHS))
        assert loss[row].tolist() == wanted
        at = 0
        for (before, _, size), (document, start, _) in pairwise(segments):
            at += size
            if document >= 0 and start > 0 and document != before:
                wanted[at] = 0  # the piece of a document is not predicted by another
        labels = [t if trained else -100 for t, trained in zip(dataset[row].tolist(), wanted, strict=True)]
        labels[0] = -100
        ends = np.cumsum([n for _, _, n in segments]).tolist()
        for before, (padding, _, _), begin in zip([0, *ends], segments, ends[:-1], strict=False):
            if padding == PADDING:  # what follows is predicted by what is before
                labels[before], labels[begin] = labels[begin], -100
        assert batch["labels"][row].tolist() == labels
    some = np.array([rows - 1, 0, rows // 2])
    found = dataset.loss(some)
    assert found is not None
    np.testing.assert_array_equal(found, loss[some])


@pytest.mark.parametrize("kind", ["concat-8", "concat-192", "padding-16", "seamless"])
def test_every_order_has_it(make: Make, kind: str) -> None:
    options = {**KINDS[kind], "shard_tokens": 640}
    packed = opened(make(LENGTHS, {"per_shard": 15, "loss": document_loss}, packed=options) / "packed")
    check(packed)
    check(packed.epoch(2))


def test_rows_without_segments_are_masked(make: Make) -> None:
    """Where the column says what trains, padding needs no segments to be left out."""
    options = {"strategy": "ffd", "sequence_length": 64, "segments": False}
    dataset = opened(make(LENGTHS, {"loss": document_loss}, packed=options) / "packed")
    loss = dataset.loss([0, 1])
    assert loss is not None
    batch = dataset.batch([0, 1], labels="same", documents=False, fields=["input_ids", "labels"])
    np.testing.assert_array_equal(batch["labels"][:, 1:] != -100, loss[:, 1:] == 1)


def test_a_dataset_without_the_column_trains_on_all(make: Make) -> None:
    dataset = opened(make(LENGTHS, packed=KINDS["concat"]) / "packed")
    assert (dataset.has_loss, dataset.loss(0)) == (False, None)
    batch = dataset.batch(0, fields=["labels", "loss_mask"])
    assert batch["loss_mask"].tolist() == [[1.0] * 63 + [0.0]]


@pytest.mark.parametrize("lengths", [[70, 5, 90, 33, 61, 8, 120, 44] * 4, [2000], [31] * 61])
@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("epoch", [0, 1, 2])
@pytest.mark.parametrize(("remainder", "loss"), [("drop", None), ("pad", document_loss)])
def test_a_target_goes_on_where_the_lane_does_or_begins_a_document(
    make: Make, tmp_path: Path, lengths: list[int], across: bool, epoch: int, remainder: str, loss: Any
) -> None:
    """In the partial shuffle rows go on in the next batch, but the end of a lane does not go on in its begin."""
    store = make(lengths, {"loss": loss}) / "store"
    trains = loss or (lambda document, length: [1] * length)
    lanes: dict[str, Any] = {"method": "partial", "sequence_length": 32, "batch_size": LANES, "remainder": remainder}
    packtool.shuffle(store, tmp_path / "rows", **lanes)
    dataset = packtool.open(tmp_path / "rows").epoch(epoch)
    stream = Stream(tmp_path / "rows", epochs=3, train_across_documents=across, fields=("input_ids", "labels"))
    batches = GlobalBatches(stream, LANES)
    batches.set_epoch(0)
    batches.position.skip(epoch * len(dataset))
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
            is_target = following >= 0 and (goes_on or (across and there == 0))
            is_target = is_target and trains(following, lengths[following])[there] == 1
            wraps += not goes_on and there != 0
            if place < len(found):
                assert found[place] == (tokens[place + 1] if is_target else -100), (lane, place)
    assert epoch == 0 or wraps
