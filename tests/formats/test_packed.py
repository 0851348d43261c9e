"""Packed datasets as they are opened, and shards as they are written: batches do not show in them."""

from pathlib import Path

import numpy as np
import pytest

from packtool.errors import DataError
from packtool.formats import packed
from packtool.formats.bucket_shards import BucketShards, StoredColumn
from packtool.formats.files import write_array
from packtool.formats.packed import PackedShardWriter
from packtool.formats.schema import Bucket, PackedShard
from packtool.formats.segment_table import to_table
from packtool.places.local import LocalPlace
from packtool.places.npy import HEADER_BYTES, FileEntry, npy_header
from packtool.planning.plan import PADDING, Segments
from packtool.support.sizes import machine_memory

TOKENS = np.arange(12, dtype="<u2").reshape(3, 4)
ROWS = Segments(
    np.array([0, 1, 2, 2, PADDING]),
    np.array([0, 0, 0, 2, 0]),
    np.array([4, 2, 2, 3, 1]),
    np.zeros(5, np.int64),
    np.array([0, 1, 3, 5]),
)


@pytest.mark.parametrize("beyond_memory", [False, True])
def test_rows_are_the_same_where_they_are_asked_for_before_they_are_copied(tmp_path: Path, beyond_memory: bool) -> None:
    length, dtype = 1 << 10, np.dtype("<u4")
    rows = (machine_memory() // 2 // (length * dtype.itemsize) if beyond_memory else 500) + 1
    shards = []
    for number in range(2):  # of holes, but for some rows: the disk has no room for more than memory holds
        name, size = f"tokens-{number:05d}.npy", HEADER_BYTES + rows * length * dtype.itemsize
        with (tmp_path / name).open("xb") as file:
            file.write(npy_header(dtype, (rows, length)))
            file.truncate(size)
        written = np.memmap(tmp_path / name, dtype, "r+", HEADER_BYTES, (rows, length))
        for row in (0, 7, 100, rows - 1):
            written[row] = np.arange(length) + number * rows + row
        written.flush()
        shards.append(PackedShard(FileEntry(name, (rows, length), size, "0" * 32)))
    entry = Bucket(
        directory="",
        sequence_length=length,
        rows=2 * rows,
        unit=length,
        units=2 * rows,
        atom_units=1,
        last_atom_stays=False,
        shards=shards,
    )
    column = StoredColumn(BucketShards(LocalPlace(tmp_path), entry), "tokens", dtype)
    assert (sum(array.nbytes for array in column.arrays) > machine_memory()) == beyond_memory
    wanted = np.array([rows + 7, 0, 2 * rows - 1, 7, 9, rows, rows - 1, 100, 0])
    for _ in range(3):  # the first time they are asked for, later it depends on what had to be read
        taken = column.take(wanted)
        expected = np.arange(length) + wanted[:, None]
        np.testing.assert_array_equal(taken, np.where(wanted[:, None] == 9, 0, expected))


@pytest.mark.parametrize("cuts", [[], [1], [0, 1, 2, 2]])
@pytest.mark.parametrize("spool", [8, 1 << 20])
def test_batches_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: list[int], spool: int) -> None:
    monkeypatch.setattr(packed, "_SPOOL_BYTES", spool)
    with PackedShardWriter(tmp_path, 7, dtype=TOKENS.dtype, rows=3, sequence_length=4) as writer:
        for first, last in zip([0, *cuts], [*cuts, 3], strict=True):
            writer.add(TOKENS[first:last], ROWS[first:last])
        shard = writer.close(np.array([0, 2]))
    for entry, expected in (
        (shard.tokens, TOKENS),
        (shard.segments, to_table(ROWS)),
        (shard.segment_offsets, ROWS.offsets),
        (shard.atoms, np.array([0, 2])),
    ):
        assert entry.name.endswith("-00007.npy")
        np.testing.assert_array_equal(np.load(tmp_path / entry.name), expected)
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize(
    ("starts", "good"),
    [([0, 2], True), ([], True), ([1], True), ([-1, 2], False), ([-1], False), ([0, 3], False), ([2, 2], False)],
)
def test_atoms_lie_in_the_rows_of_their_shard(tmp_path: Path, starts: list[int], good: bool) -> None:
    tokens = write_array(tmp_path / "tokens-00000.npy", TOKENS)
    atoms = write_array(tmp_path / "atoms-00000.npy", np.array(starts, np.int64))
    entry = Bucket(
        directory="",
        sequence_length=4,
        rows=6,
        unit=4,
        units=6,
        atom_units=0,
        last_atom_stays=False,
        shards=[PackedShard(tokens), PackedShard(tokens, atoms=atoms)],
    )
    shards = BucketShards(LocalPlace(tmp_path), entry)
    if good:
        assert shards.atom_offsets().tolist() == [*(3 + start for start in starts), 6]
        return
    with pytest.raises(DataError, match=r"atoms-00000\.npy: its atoms do not lie in its 3 rows"):
        shards.atom_offsets()
