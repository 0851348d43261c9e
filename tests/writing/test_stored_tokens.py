"""Datasets without tokens: the rows, segments and batches of those with tokens, for every strategy and shuffle."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats.packed import PackedDataset
from packtool.planning.plan import Segments
from packtool.reading import BucketDataset, Dataset
from packtool.writing.stored_tokens import open_packed
from tests.examples import examples
from tests.interrupting import flip
from tests.stores import contents, load, reseal, rewrite, write_store
from tests.test_golden import LENGTHS, PACKED, SHUFFLED
from tests.writing.cases import drawn_packing

INDEXED = {
    name: options for name, options in PACKED.items() if options.get("segments", True) and "index_only" not in options
}


def without_tokens(path: Path) -> dict[str, bytes]:
    """Every file of a dataset that one without tokens has, too, but for the manifest."""
    names = ("tokens", "manifest.json")
    return {name: data for name, data in contents(path).items() if not Path(name).name.startswith(names)}


def require_same(indexed: Dataset | BucketDataset, whole: Dataset | BucketDataset) -> None:
    """All rows, their segments, and batches of them."""
    if isinstance(indexed, BucketDataset) or isinstance(whole, BucketDataset):
        assert isinstance(indexed, BucketDataset)
        assert isinstance(whole, BucketDataset)
        pairs = list(zip(indexed.buckets.values(), whole.buckets.values(), strict=True))
        if whole.batches is not None:
            for number in range(len(whole)):
                require_equal(indexed.batch(number), whole.batch(number))
    else:
        pairs = [(indexed.rows, whole.rows)]
        some = np.random.default_rng(0).integers(0, max(1, len(whole)), 7) if len(whole) else []
        require_equal(indexed.batch(some), whole.batch(some))
        require_equal(indexed.batch(some, fields=("input_ids",)), whole.batch(some, fields=("input_ids",)))
    for mine, other in pairs:
        assert len(mine) == len(other)
        assert np.array_equal(mine[:], other[:])
        if len(other):
            assert np.array_equal(mine[len(other) - 1], other[-1])
            assert np.array_equal(mine[[0, len(other) - 1, 0]], other[[0, -1, 0]])
        assert all(np.array_equal(mine.segments(row), other.segments(row)) for row in range(len(other)))


def require_equal(found: Any, expected: Any) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        assert np.array_equal(found[name], expected[name]), name


@pytest.mark.parametrize("name", INDEXED)
def test_it_reads_as_with_tokens_and_becomes_the_same_files(tmp_path: Path, name: str) -> None:
    store = write_store(tmp_path / "store", LENGTHS, per_shard=40)
    packtool.pack(store, tmp_path / "whole", **INDEXED[name])
    packtool.pack(store, tmp_path / "index", **INDEXED[name], index_only=True)
    assert without_tokens(tmp_path / "index") == without_tokens(tmp_path / "whole")
    assert not list((tmp_path / "index").rglob("tokens-*"))
    indexed, whole = packtool.open(tmp_path / "index"), packtool.open(tmp_path / "whole")
    require_same(indexed, whole)
    if isinstance(indexed, Dataset) and isinstance(whole, Dataset):
        require_same(indexed.epoch(3), whole.epoch(3))
        require_same(pickle.loads(pickle.dumps(indexed.epoch(3))), whole.epoch(3))
    packtool.materialize(tmp_path / "index", tmp_path / "written")
    assert contents(tmp_path / "written") == contents(tmp_path / "whole")
    packtool.materialize(tmp_path / "whole", tmp_path / "dropped", index_only=True)
    assert contents(tmp_path / "dropped") == contents(tmp_path / "index")
    assert packtool.verify(tmp_path / "index").problems == []


@pytest.mark.parametrize("name", [name for name, (source, _) in SHUFFLED.items() if source in INDEXED or not source])
def test_it_shuffles_as_with_tokens(tmp_path: Path, name: str) -> None:
    source, options = SHUFFLED[name]
    store = write_store(tmp_path / "store", LENGTHS, per_shard=40)
    if not source:
        packtool.shuffle(store, tmp_path / "expected", **options)
        packtool.shuffle(store, tmp_path / "index", **options, index_only=True)
        whole, indexed = (packtool.open(tmp_path / each) for each in ("expected", "index"))
        require_same(indexed, whole)
        assert isinstance(whole, Dataset)
        assert isinstance(indexed, Dataset)
        require_same(indexed.epoch(2), whole.epoch(2))
        packtool.materialize(tmp_path / "index", tmp_path / "written")
        assert contents(tmp_path / "written") == contents(tmp_path / "expected")
        return
    packtool.pack(store, tmp_path / "whole", **INDEXED[source])
    packtool.pack(store, tmp_path / "index", **INDEXED[source], index_only=True)
    packtool.shuffle(tmp_path / "whole", tmp_path / "expected", **options)
    packtool.shuffle(tmp_path / "index", tmp_path / "found", **options)
    assert contents(tmp_path / "found") == contents(tmp_path / "expected")
    for number, base in enumerate(("index", "whole")):
        packtool.shuffle(tmp_path / base, tmp_path / f"{number}", **options, index_only=True)
    assert contents(tmp_path / "0") == contents(tmp_path / "1")
    require_same(packtool.open(tmp_path / "0"), packtool.open(tmp_path / "expected"))


@examples(30, HealthCheck.function_scoped_fixture)
@given(data=st.data())
def test_rows_are_those_with_tokens_for_every_strategy_and_option(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("law")
    stores, options = drawn_packing(data, place)
    options["shard_tokens"] = data.draw(st.sampled_from([64, 1 << 28]), label="shard")
    packtool.pack(stores, place / "whole", **options)
    packtool.pack(stores, place / "index", **options, index_only=True)
    require_same(packtool.open(place / "index"), packtool.open(place / "whole"))
    packtool.materialize(place / "index", place / "written")
    assert contents(place / "written") == contents(place / "whole")
    assert packtool.verify(place / "index").problems == []


@pytest.fixture
def index(tmp_path: Path) -> Path:
    store = write_store(tmp_path / "store", LENGTHS, per_shard=40)
    packtool.pack(store, tmp_path / "index", strategy="bfd", sequence_length=64, index_only=True)
    return tmp_path / "index"


def test_a_store_that_moved_is_named_and_can_be_given(index: Path) -> None:
    expected = packtool.open(index)[:]
    moved = index.parent / "elsewhere"
    (index.parent / "store").rename(moved)
    with pytest.raises(DataError, match=r"the token store .* is not there\. Say where it lies now, with --store"):
        packtool.open(index)
    assert np.array_equal(packtool.open(index, stores=moved)[:], expected)
    assert packtool.verify(index, store=moved).problems == []
    assert packtool.show(index, store=moved).segments
    packtool.export(index, index.parent / "exported", format="parquet", store=moved)
    packtool.shuffle(index, index.parent / "shuffled", epoch=1, store=moved)
    packtool.materialize(index, index.parent / "written", store=[moved])
    assert np.array_equal(packtool.open(index.parent / "written")[:], expected)


def test_both_may_move_together(index: Path) -> None:
    expected = packtool.open(index)[:]
    there = index.parent / "deeper" / "down"
    there.mkdir(parents=True)
    for name in ("store", "index"):
        (index.parent / name).rename(there / name)
    assert np.array_equal(packtool.open(there / "index")[:], expected)


def test_a_store_that_changed_is_refused(index: Path) -> None:
    store = index.parent / "store"
    manifest = load(store)
    manifest["counts"]["skipped"] = 1
    reseal(store, manifest)
    with pytest.raises(DataError, match="not the token store that the rows were planned from, or changed since"):
        packtool.open(index)
    with pytest.raises(DataError, match="not the token store"):
        packtool.verify(index)


def test_a_manifest_that_is_damaged_is_not_called_another_store(index: Path) -> None:
    flip(index.parent / "store" / "manifest.json")
    for read in (packtool.open, packtool.verify, lambda path: packtool.materialize(path, index.parent / "rows")):
        with pytest.raises(DataError, match=r"store/manifest\.json: .*changed since it was written") as caught:
            read(index)
        assert caught.value.code == "bad-manifest"


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
    manifest = load(index)
    manifest["stores"] = [name.replace("/absolute", str(store)).replace("../link", "../link/store")]
    reseal(index, manifest)
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
    packtool.pack(store, text / "index", strategy="bfd", sequence_length=64, index_only=True)
    packtool.pack(store, tmp_path / "whole", strategy="bfd", sequence_length=64)
    require_same(packtool.open(text / "index"), packtool.open(tmp_path / "whole"))
    for output in (tmp_path / "index", tmp_path / "again"):
        with pytest.raises(UsageError, match="the name of its directory is not UTF-8") as caught:
            if output.name == "index":
                packtool.pack(store, output, strategy="bfd", sequence_length=64, index_only=True)
            else:
                packtool.shuffle(tmp_path / "whole", output, index_only=True, store=store)
        assert caught.value.code == "bad-name"
        assert not output.exists()


def test_another_number_of_stores_is_refused(index: Path) -> None:
    store = index.parent / "store"
    with pytest.raises(UsageError, match="was packed from 1 stores, but 2 are given"):
        packtool.open(index, stores=[store, store])


@pytest.mark.parametrize("name", ["tokens-00001.npy", "offsets-00001.npy"])
def test_a_shard_of_a_store_that_is_missing_is_named(index: Path, name: str) -> None:
    (index.parent / "store" / name).unlink()
    with pytest.raises(DataError, match=name):
        packtool.open(index)
    with pytest.raises(DataError, match=name):
        packtool.materialize(index, index.parent / "written")


def test_a_changed_token_is_found(index: Path) -> None:
    file = index.parent / "store" / "tokens-00001.npy"
    data = bytearray(file.read_bytes())
    data[-2] ^= 1
    file.write_bytes(data)
    assert [problem.code for problem in packtool.verify(index).problems] == ["wrong-checksum"]
    with pytest.raises(DataError, match=r"tokens-00001\.npy"):
        packtool.materialize(index, index.parent / "written")


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
    gather = open_packed(index).buckets[0].gather
    assert gather is not None
    held = [value for value in vars(gather).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in held if not isinstance(array, np.memmap)) < 8 * len(LENGTHS)


def test_rows_are_not_read_without_stores(index: Path) -> None:
    dataset = PackedDataset(index)
    assert dataset.buckets[0].segments(0, 1).groups == 1
    with pytest.raises(DataError, match="its rows have to be gathered from token stores"):
        dataset.buckets[0].tokens(0, 1)


def test_no_row_gathers_nothing(index: Path) -> None:
    gather = open_packed(index).buckets[0].gather
    empty = np.empty(0, np.int64)
    assert len(gather(Segments(empty, empty, empty, empty, np.zeros(1, np.int64)))) == 0


def test_info_says_what_it_takes_and_where_its_tokens_are(index: Path) -> None:
    facts = packtool.info(index).facts
    assert facts["rows gathered from"] == "../store"
    assert "the tokens of its rows would take" in str(facts["index"])


def test_an_index_without_segments_is_refused(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [5, 6])
    with pytest.raises(UsageError, match="a dataset without tokens needs its segment table"):
        packtool.pack(store, tmp_path / "p", strategy="bfd", sequence_length=8, index_only=True, segments=False)


def test_beyond_memory_the_bytes_are_the_same(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", LENGTHS, per_shard=40)
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "shard_tokens": 1024, "index_only": True}
    packtool.pack(store, tmp_path / "whole", **options)
    packtool.pack(store, tmp_path / "small", **options, memory="64KiB", workers=2)
    assert contents(tmp_path / "small") == contents(tmp_path / "whole")
