"""Scratch files that are gone or changed are told, and not read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

import packtool
from packtool.errors import DataError
from packtool.places.typed import place_of
from packtool.writing.scratch import Atoms, ScratchFile, append, empty_atoms, read
from tests.interrupting import Interrupted, cut
from tests.making import Make, drawn_lengths
from tests.places.s3_server import Bucket


def test_scratch_that_is_gone_or_changed_is_said(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make(drawn_lengths(200, 59, seed=5)) / "store"
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 16, "memory": "8KiB", "workers": 1}
    options["check_input"] = False  # else what was done counts once the input is known to be sound, soon or later

    def stop(*args: object, **options: object) -> None:
        raise Interrupted

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr("packtool.writing.shards.PackedShardWriter", stop)
        packtool.pack(store, tmp_path / "out", **options)
    scratch = sorted((tmp_path / "out" / "unfinished").rglob("*.atoms"))
    for damage in (lambda file: file.write_bytes(b"\xff" * 30), cut, Path.unlink):
        damage(scratch[0])
        with pytest.raises(DataError, match="is gone, or has changed since it was written") as caught:
            packtool.pack(store, tmp_path / "out", **options, resume=True)
        assert caught.value.code == "damaged-scratch"


def some(atoms: int, units: int, segments: int, first: int) -> Atoms:
    """Atoms of numbers that tell them apart."""
    made = empty_atoms(atoms, units, segments, unit=4, dtype=np.dtype("<u2"))
    for column in made:
        flat = column.reshape(-1).view(np.uint8)
        flat[:] = np.arange(first, first + len(flat)) % 251
    return made


@pytest.mark.parametrize("far", [False, True])
def test_blocks_of_several_files_are_read_as_one(far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [some(2, 3, 5, 1), some(0, 0, 0, 0), some(1, 1, 1, 7), some(3, 9, 4, 90)]
    files: list[ScratchFile] = []
    for name, held in (("a", blocks[:2]), ("b", blocks[2:])):
        hashed = xxhash.xxh3_128()
        for block in held:
            append(tmp_path / name, block, hashed)
        files.append(ScratchFile(place_of("s3://bucket/x" if far else tmp_path), name, hashed.hexdigest()))
    if far:
        bucket = Bucket(monkeypatch)
        for name in "ab":
            bucket.put(f"x/{name}", (tmp_path / name).read_bytes())
    whole = empty_atoms(6, 13, 10, unit=4, dtype=np.dtype("<u2"))
    read(files, whole)
    for number, column in enumerate(whole):
        np.testing.assert_array_equal(column, np.concatenate([block[number] for block in blocks]))
    assert whole.head(2, 3, 5).counts == (2, 3, 5)
    files[1] = files[1]._replace(xxh3_128="0" * 32)
    with pytest.raises(DataError, match="has changed since it was written") as caught:
        read(files, whole)
    assert caught.value.where == files[1].place.where("b")
