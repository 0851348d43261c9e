"""Datasets without tokens: where their stores may lie, and what is refused of them."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats.packed import PackedDataset
from packtool.reading import Dataset
from packtool.rows.stored_tokens import open_packed
from tests.making import Make
from tests.stores import amended, rewrite, write_store
from tests.test_golden import LENGTHS

ROWS = {"strategy": "bfd", "sequence_length": 64}


@pytest.fixture
def index(make: Make, tmp_path: Path) -> Path:
    return make(LENGTHS, {"per_shard": 40}, at=tmp_path, index={**ROWS, "index_only": True}) / "index"


def test_a_store_that_moved_is_named_and_can_be_given(index: Path) -> None:
    expected = packtool.open(index)[:]
    moved = index.parent / "elsewhere"
    (index.parent / "store").rename(moved)
    with pytest.raises(DataError, match=r"the token store .* is not there\. Say where it lies now, with `--store`"):
        packtool.open(index)
    assert np.array_equal(packtool.open(index, stores=moved)[:], expected)
    assert packtool.verify(index, store=moved).problems == []
    assert packtool.show(index, store=moved).segments
    packtool.export(index, index.parent / "exported", format="parquet", store=moved)
    packtool.shuffle(index, index.parent / "shuffled", epoch=1, store=moved)
    packtool.materialize(index, index.parent / "written", store=[moved])
    assert np.array_equal(packtool.open(index.parent / "written")[:], expected)


@pytest.mark.parametrize(
    "name", ["../../store", "/absolute", "../link", "s3://other/store", "../index", "../../index/../store"]
)
def test_a_manifest_names_stores_in_the_directory_that_holds_it_alone(
    index: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """Who wrote it would choose what of this machine, or of its object stores, is read."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (index.parent / "link").symlink_to(elsewhere)
    store = shutil.move(index.parent / "store", elsewhere / "store")
    with amended(index) as manifest:
        manifest["stores"] = [name.replace("/absolute", str(store)).replace("../link", "../link/store")]
    for read in (packtool.open, packtool.verify, lambda path: packtool.materialize(path, tmp_path / "out")):
        with pytest.raises(
            DataError, match=r"is not in the directory that holds the dataset: .* If you trust it, name"
        ) as caught:
            read(index)  # type: ignore[operator]
        assert caught.value.code == "store-elsewhere"
    assert len(packtool.open(index, stores=store)) > 0
    assert packtool.verify(index, store=store).problems == []


def test_a_store_whose_name_is_not_utf8(tmp_path: Path) -> None:
    text = tmp_path / os.fsdecode(b"caf\xe9")
    store = write_store(text / "store", LENGTHS, per_shard=40)
    packtool.pack(store, text / "index", **ROWS, index_only=True)
    packtool.pack(store, tmp_path / "whole", **ROWS)
    np.testing.assert_array_equal(packtool.open(text / "index")[:], packtool.open(tmp_path / "whole")[:])
    for output in (tmp_path / "index", tmp_path / "again"):
        with pytest.raises(UsageError, match="the name of its directory is not UTF-8") as caught:
            if output.name == "index":
                packtool.pack(store, output, **ROWS, index_only=True)
            else:
                packtool.shuffle(tmp_path / "whole", output, epoch=1, index_only=True, store=store)
        assert caught.value.code == "bad-name"
        assert not output.exists()


def test_another_number_of_stores_is_refused(index: Path) -> None:
    store = index.parent / "store"
    with pytest.raises(UsageError, match="was packed from 1 store, but 2 are given"):
        packtool.open(index, stores=[store, store])


@pytest.mark.parametrize(("field", "value"), [("start", 1 << 31), ("document", 1 << 40), ("document", -3)])
def test_a_segment_outside_its_document_is_refused_before_anything_is_copied(
    index: Path, field: str, value: int
) -> None:
    def change(table: np.ndarray) -> None:
        table[field][5] = value

    rewrite(index, "segments-00000.npy", change)
    dataset = packtool.open(index)
    with pytest.raises(DataError, match="a segment lies outside its document"):
        dataset.batch(range(20))
    with pytest.raises(DataError, match="a segment lies outside its document"):
        dataset[:20]


def test_offsets_that_point_outside_the_store_are_refused(index: Path) -> None:
    file = index.parent / "store" / "offsets-00000.npy"
    header, data = file.read_bytes()[:4096], np.load(file)
    data[1:] += 1 << 40
    file.write_bytes(header + data.tobytes())
    with pytest.raises(DataError, match="offsets do not divide its tokens"):
        packtool.open(index)[:]


def test_nothing_of_the_corpus_is_held_for_each_document(index: Path) -> None:
    gather = open_packed(index).buckets[0].tokens.gather
    assert gather is not None
    held = [value for value in vars(gather).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in held if not isinstance(array, np.memmap)) < 8 * len(LENGTHS)


def test_rows_are_not_read_without_stores(index: Path) -> None:
    dataset = PackedDataset(index)
    assert dataset.buckets[0].segments.between(0, 1).groups == 1
    with pytest.raises(DataError, match="its rows have to be gathered from token stores"):
        dataset.buckets[0].tokens.between(0, 1)


def test_an_index_without_segments_is_refused(make: Make, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a dataset without tokens needs its segment table"):
        packtool.pack(make([5, 6]) / "store", tmp_path / "p", **ROWS, index_only=True, segments=False)


def test_rows_that_can_not_be_packed_anew(make: Make, tmp_path: Path) -> None:
    make(LENGTHS, {"per_shard": 40}, at=tmp_path, whole={"strategy": "bfd", "sequence_length": 64})
    options: dict[str, Any] = {"method": "partial", "sequence_length": 64, "batch_size": 4, "index_only": True}
    packtool.shuffle(tmp_path / "store", tmp_path / "lanes", **options)
    for name, said in (
        ("whole", "written with their tokens, so they can't be packed anew"),
        ("lanes", "partial shuffle, which packs every epoch by itself"),
    ):
        dataset = packtool.open(tmp_path / name)
        assert isinstance(dataset, Dataset)
        with pytest.raises(UsageError, match=said):
            dataset.epoch(1, repack=True)
