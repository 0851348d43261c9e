"""Datasets whose documents begin at multiples, and what is refused of them."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.planning.plan import PADDING
from packtool.reading.stream import Stream
from tests.making import Make
from tests.stores import contents, load, rewrite

LENGTHS = np.random.default_rng(8).integers(1, 150, 90).tolist()
MULTIPLE = 8
ROWS: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "document_multiple": MULTIPLE}
STREAM = {**ROWS, "strategy": "concat"}


@pytest.fixture
def store(tmp_path: Path, make: Make) -> Path:
    """A store, and `rows` packed from it beside it."""
    return make(LENGTHS, rows=ROWS, at=tmp_path) / "store"


def test_a_multiple_of_one_writes_the_same_bytes(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "without", strategy="bfd", sequence_length=64)
    packtool.pack(store, tmp_path / "one", strategy="bfd", sequence_length=64, document_multiple=1)
    assert contents(tmp_path / "one") == contents(tmp_path / "without")


def test_atoms_of_a_stream_change_only_to_multiples(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "stream", **STREAM, shuffle=False)
    packtool.shuffle(tmp_path / "stream", tmp_path / "shuffled", atom_size=16)
    packtool.pack(store, tmp_path / "packed", **STREAM, atom_size=16)
    np.testing.assert_array_equal(packtool.open(tmp_path / "shuffled")[:], packtool.open(tmp_path / "packed")[:])
    message = (
        "atom_size: documents begin at multiples of 8, but 4 is not one. Give a multiple of it, or pack again with "
    )
    with pytest.raises(UsageError, match=re.escape(message + "another document_multiple.")):
        packtool.shuffle(tmp_path / "stream", tmp_path / "other", atom_size=4)


def test_a_document_that_begins_elsewhere_is_found(store: Path, tmp_path: Path) -> None:
    def move(table: np.ndarray) -> None:
        """Put the padding after a document before it."""
        document = table["document"]
        at = int(np.flatnonzero((document[:-1] >= 0) & (document[1:] == PADDING))[0])
        table[[at, at + 1]] = table[[at + 1, at]]

    (bucket,) = load(tmp_path / "rows")["buckets"]
    rewrite(tmp_path / "rows", bucket["shards"][0]["segments"]["name"], move)
    (problem,) = packtool.verify(tmp_path / "rows").problems
    assert re.search(r"row \d+: a document does not begin at a multiple of 8\.", str(problem))


def test_rows_with_an_extra_token_are_refused(store: Path, tmp_path: Path) -> None:
    dataset = packtool.open(tmp_path / "rows")
    message = (
        "extra_token: rows without their last tokens are no multiples, so documents can't be split. Leave extra_token "
        "out, or name fields without cu_seqlens_padded and max_seqlen_padded."
    )
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        dataset.batch([0], extra_token=True)
    batch = dataset.batch([0], extra_token=True, fields=["input_ids", "cu_seqlens"])
    assert batch["cu_seqlens"][-1] == 63, "without cu_seqlens_padded, runs of padding are sequences as ever"


def test_a_row_costs_what_the_rounded_lengths_of_its_documents_do(store: Path, tmp_path: Path) -> None:
    dataset = packtool.open(tmp_path / "rows")
    stream = Stream(tmp_path / "rows", shuffle=False, cache=tmp_path / "cache")
    costs = []
    for row in range(len(dataset)):
        own = [length for document, _, length, _ in dataset.segments(row).tolist() if document >= 0]
        rounded = [-(-tokens // MULTIPLE) * MULTIPLE for tokens in own]
        costs.append(sum(tokens * (tokens + 1) // 2 for tokens in [*rounded, 64 - sum(rounded)]))
    assert stream.pairs(stream.addresses(0, len(stream))).tolist() == costs


def test_batches_of_one_shape(store: Path, tmp_path: Path) -> None:
    dataset = packtool.open(tmp_path / "rows")
    plain, padded = dataset.batch([0, 1, 2]), dataset.batch([0, 1, 2], pad_cu_seqlens=8)
    for name in ("cu_seqlens", "cu_seqlens_padded"):
        some, all_ = plain[name].tolist(), padded[name].tolist()
        assert len(all_) == 3 * 8 + 1
        assert all_ == some + some[-1:] * (len(all_) - len(some))
    message = r"^pad_cu_seqlens: \d+ sequences in a batch that has room for 3\. Give more, or pack with max_documents"
    with pytest.raises(UsageError, match=message):
        dataset.batch([0, 1, 2], pad_cu_seqlens=1)
