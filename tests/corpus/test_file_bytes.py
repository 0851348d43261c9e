"""A file while it is read: its checksum, and what became of it since it was listed."""

from __future__ import annotations

from pathlib import Path

import pytest
import xxhash

from packtool.corpus.file_bytes import FileBytes
from packtool.errors import DataError
from tests.corpus.reading import find


def test_the_checksum_is_of_the_whole_file_however_little_was_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x" * 10_000)
    [file] = find(tmp_path / "a.txt")
    for taken in (0, 1, 9999, 10_000):
        source = FileBytes(file, hashed=True)
        assert len(source.read(taken)) == source.tell() == taken
        assert source.digest() == xxhash.xxh3_128_hexdigest(b"x" * 10_000)
        source.close()


def test_what_became_of_a_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"some text")
    [file] = find(path)
    path.rename(tmp_path / "b.txt")
    with pytest.raises(DataError, match="it is gone") as caught:
        FileBytes(file)
    assert (caught.value.code, caught.value.where) == ("input-changed", str(path))
    path.write_bytes(b"some text")
    with pytest.raises(DataError, match="another file is in its place"):
        FileBytes(file)
    (tmp_path / "b.txt").rename(path)
    path.write_bytes(b"more than some text")
    with pytest.raises(DataError, match="it had 9 bytes and has 19"):
        FileBytes(file)
    source = FileBytes(find(path)[0])
    path.write_bytes(b"MORE THAN SOME TEXT")
    with pytest.raises(DataError, match="it was written to"):
        source.require_unchanged()
    source.close()
