"""Which store each token of a batch is from, so that a trainer can log the loss of each."""

from typing import Any

import numpy as np
import pytest

import packtool
from packtool.reading.stream import Stream
from tests.making import Make, drawn_lengths
from tests.reading.opening import batch_of


@pytest.mark.parametrize("extra_token", [False, True])
@pytest.mark.parametrize("strategy", ["bfd", "padding", "concat"])
def test_tokens_know_their_store(make: Make, strategy: str, extra_token: bool) -> None:
    sizes = {"web": 40, "code": 25, "chat": 10}
    stores = {name: drawn_lengths(documents, 49, documents) for name, documents in sizes.items()}
    rows = make(stores, rows={"strategy": strategy, "sequence_length": 32}) / "rows"
    dataset: Any = packtool.open(rows)
    assert dataset.sources == list(sizes)
    batch = dataset.batch(slice(None), fields=("input_ids", "source"), extra_token=extra_token)
    assert batch["source"].shape == batch["input_ids"].shape
    assert batch["source"].dtype == np.int32
    ends = np.cumsum(list(sizes.values()))
    for row in range(len(dataset)):
        expected: list[int] = []
        for document, _, length, _ in dataset.segments(row).tolist():
            store = int(np.searchsorted(ends, document, side="right")) if document >= 0 else -1
            expected += [expected[-1] if document == -2 else store] * length
        assert batch["source"][row].tolist() == expected[: 32 - extra_token]
    stream = Stream(rows, epochs=2, fields=("source",), extra_token=extra_token)
    assert stream.names == list(sizes)
    assert batch_of(stream, [])["source"].shape == (0, 32 - extra_token)
    across = batch_of(stream, range(len(dataset) - 2, len(dataset) + 2))["source"]
    last, first = (
        stream.source(0).epoch(number).batch(rows, **stream.options) for number, rows in ((0, [-2, -1]), (1, [0, 1]))
    )
    np.testing.assert_array_equal(across, np.concatenate([last["source"], first["source"]]))
    cut = dataset.batch([0, 1], fields=("input_ids", "source"), extra_token=extra_token, trim=True)
    np.testing.assert_array_equal(cut["source"], batch["source"][:2, : cut["input_ids"].shape[1]])
