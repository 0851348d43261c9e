"""Datasets whose documents begin at multiples: batches recounted token by token, however the rows came about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import TokenStore
from packtool.options.names import STRATEGIES
from packtool.planning.plan import INSERTED_EOS, PADDING
from packtool.reading.stream import Stream
from tests.commands.rebuilt import rebuilt
from tests.making import Make
from tests.stores import contents, load, rewrite

LENGTHS = np.random.default_rng(8).integers(1, 150, 90).tolist()
MULTIPLE = 8


def options_of(strategy: str) -> dict[str, Any]:
    """Rows of multiples, and for `padding` and `concat` atoms shorter than a row."""
    if strategy in ("buckets", "length-buckets"):
        return {"strategy": strategy, "buckets": [64, 128], "document_multiple": MULTIPLE}
    atoms = {"atom_size": 32} if strategy in ("concat", "padding") else {}
    return {"strategy": strategy, "sequence_length": 64, "document_multiple": MULTIPLE, **atoms}


@pytest.fixture
def store(tmp_path: Path, make: Make) -> Path:
    """A store, and `rows` packed from it beside it."""
    return make(LENGTHS, rows=options_of("bfd"), at=tmp_path) / "store"


def recount(segments: list[Any]) -> tuple[list[int], list[int], int]:
    """Own tokens of the documents in a row, where they begin in it, and the padding up to the next multiple after each.

    Args:
        segments: document, start, length and repeated of each.
    """
    own, begins, rounding, place = [], [], 0, 0
    for document, _, length, _ in segments:
        if document >= 0:
            own.append(length)
            begins.append(place)
        elif document == INSERTED_EOS:
            own[-1] += length
        else:
            assert document == PADDING
            rounding += min(length, -place % MULTIPLE)
        place += length
    return own, begins, rounding


def rows_with_batches(dataset: Any) -> Iterator[tuple[list[Any], dict[str, Any], int]]:
    """The segments of each row, with the batch of that row alone and its length."""
    for rows in [dataset.rows] if hasattr(dataset, "rows") else dataset.buckets.values():
        for row in range(len(rows)):
            yield rows.segments(row).tolist(), dataset.batch_of(rows, [row]), rows.sequence_length


def check(dataset: Any) -> None:
    """Hold the batches of a dataset against the recount of its rows, and the sums of these against its ledger."""
    rounding = 0
    for segments, batch, length in rows_with_batches(dataset):
        own, begins, rounds = recount(segments)
        rounding += rounds
        assert all(begin % MULTIPLE == 0 for begin in begins)
        assert batch["cu_seqlens"].tolist() == [0, *np.cumsum(own).tolist()]
        assert batch["cu_seqlens_padded"].tolist() == [*begins, length]
        assert batch["max_seqlen"] == max(own)
        assert batch["max_seqlen_padded"] == max(np.diff([*begins, length]).tolist())
        positions = batch["position_ids"][0]
        for count, begin in zip(own, begins, strict=True):
            assert positions[begin : begin + count].tolist() == list(range(count))
        # Targets are those of the same row without padding between documents.
        tokens = [t for n, b in zip(own, begins, strict=True) for t in batch["input_ids"][0][b : b + n].tolist()]
        labels = [t for n, b in zip(own, begins, strict=True) for t in batch["labels"][0][b : b + n].tolist()]
        assert labels == [*tokens[1:], -100]
    assert rounding == dataset.manifest.ledger.rounding


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batches_are_those_of_a_naive_recount(strategy: str, store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", **options_of(strategy))
    dataset = packtool.open(tmp_path / "packed")
    assert load(tmp_path / "packed")["options"]["document_multiple"] == MULTIPLE
    check(dataset)
    several = {} if hasattr(dataset, "rows") else {"batch_tokens": 128}
    check(dataset.epoch(3, **several))
    packtool.shuffle(tmp_path / "packed", tmp_path / "shuffled", seed=5)
    for name in ("packed", "shuffled"):
        rebuilt(PackedDataset(tmp_path / name), TokenStore(store))
    report = packtool.stats(tmp_path / "shuffled")
    assert report.ledger.rounding == dataset.manifest.ledger.rounding


def test_a_multiple_of_one_writes_the_same_bytes(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "without", strategy="bfd", sequence_length=64)
    packtool.pack(store, tmp_path / "one", strategy="bfd", sequence_length=64, document_multiple=1)
    assert contents(tmp_path / "one") == contents(tmp_path / "without")


def test_atoms_of_a_stream_change_only_to_multiples(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "stream", **{**options_of("concat"), "atom_size": None}, shuffle=False)
    packtool.shuffle(tmp_path / "stream", tmp_path / "shuffled", atom_size=16)
    packtool.pack(store, tmp_path / "packed", **{**options_of("concat"), "atom_size": 16})
    np.testing.assert_array_equal(packtool.open(tmp_path / "shuffled")[:], packtool.open(tmp_path / "packed")[:])
    check(packtool.open(tmp_path / "shuffled"))
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
        own, _, _ = recount(dataset.rows.segments(row).tolist())
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
