"""Read what packtool 0.1.0 wrote: `tests/golden/written-0.1.tar.xz` holds datasets of that release as they lay on disk.

They are a store of 120 documents with ids, and of it: `bfd` without a hold-out, `padding` in atoms of four rows,
`buckets`, `plain` without a segment table, an order of `bfd`, batches of `buckets`, and an export of `bfd` to Parquet.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.errors import DataError

ARCHIVE = Path(__file__).parent / "golden" / "written-0.1.tar.xz"
KINDS = ("store", "bfd", "padding", "buckets", "plain", "batches", "export")
PACKED = ("bfd", "padding", "plain")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written")
    checked = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(path, **checked)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_everything_verifies(old: Path, kind: str) -> None:
    assert packtool.verify(old / kind)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_described(old: Path, kind: str) -> None:
    assert packtool.info(old / kind)


@pytest.mark.parametrize("kind", PACKED)
def test_rows_are_those_on_disk(old: Path, kind: str) -> None:
    stored = np.concatenate([np.load(file) for file in sorted((old / kind).glob("tokens-*.npy"))])
    dataset = packtool.open(old / kind)
    np.testing.assert_array_equal(dataset[:], stored)
    np.testing.assert_array_equal(dataset[np.arange(len(dataset))[::-1]], stored[::-1])


def test_segments_name_the_documents_of_the_store(old: Path) -> None:
    dataset = packtool.open(old / "bfd")
    store_tokens = np.concatenate([np.load(file) for file in sorted((old / "store").glob("tokens-*.npy"))])
    offsets = np.load(old / "store" / "offsets-00000.npy")
    chosen = np.load(old / "bfd" / "chosen.npy")
    for row in range(len(dataset)):
        at = 0
        for document, start, length, _ in dataset.segments(row).tolist():
            if document >= 0:
                begin = int(offsets[chosen[document]]) + start
                np.testing.assert_array_equal(dataset[row][at : at + length], store_tokens[begin : begin + length])
            at += length


def test_an_order_is_the_one_that_an_epoch_computes(old: Path) -> None:
    rows, order = packtool.open(old / "bfd"), np.load(old / "order" / "order.npy")
    np.testing.assert_array_equal(packtool.open(old / "bfd").epoch(1)[: len(order)], rows[order])
    with pytest.raises(DataError, match=r"an order, which is not read any more\. Read its dataset in an epoch, which"):
        packtool.verify(old / "order")


def test_batches_are_read_in_their_order(old: Path) -> None:
    batches = packtool.open(old / "batches")
    table = np.load(old / "batches" / "batches.npy")
    assert [batch.shape for batch in batches] == [(rows, bucket) for bucket, _, rows in table.tolist()]


def test_the_store_packs_to_the_same_rows(old: Path, tmp_path: Path) -> None:
    packtool.pack(old / "store", tmp_path / "padding", strategy="padding", sequence_length=32, atom_size=128)
    np.testing.assert_array_equal(packtool.open(tmp_path / "padding")[:], packtool.open(old / "padding")[:])


def test_a_document_is_found_by_its_id(old: Path) -> None:
    assert packtool.find(old / "padding", "doc-7", store=[old / "store"])
