"""One writer for an output, with or without locks in the file system."""

import errno
import fcntl
import os
import re
import stat
from pathlib import Path

import pytest

import packtool
from packtool.errors import DataError
from packtool.outputs import lock
from packtool.warnings import PacktoolWarning
from tests.making import write_records
from tests.outputs.cases import STORE, begin, finish, names


def test_one_writer(tmp_path: Path) -> None:
    output = begin(tmp_path / "o")
    for command, key, options in (("tokenize", "k", {"resume": True}), ("pack", "k2", {"overwrite": True})):
        with pytest.raises(DataError, match=rf"packtool tokenize \(process {os.getpid()} on .*\) is writing") as caught:
            begin(tmp_path / "o", key, command, **options)
        assert caught.value.code == "output-in-use"
    finish(output)
    assert names(tmp_path / "o") == STORE
    begin(tmp_path / "o", resume=True)


def test_the_lock_goes_with_the_command_that_took_it(tmp_path: Path) -> None:
    def command() -> None:
        with begin(tmp_path / "o"):
            raise RuntimeError

    for options in ("resume", "overwrite"):
        with pytest.raises(RuntimeError):
            command()
        assert names(tmp_path / "o") == ["unfinished/state.json"]
        begin(tmp_path / "o", **{options: True}).discard()
        assert not (tmp_path / "o").exists()


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(PacktoolWarning, match=r"this file system has no locks \(No locks available\), so a second run"):
        begin(tmp_path / "o")
    who = rf"in particular packtool tokenize \(process {os.getpid()} on .*, since .*\)"
    with pytest.warns(PacktoolWarning, match=who):
        begin(tmp_path / "o", resume=True)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EBADF])
def test_file_systems_that_do_not_sync_directories(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said once by a command, whatever it writes; an error of the disk is one."""
    synced = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        synced(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    file = write_records(tmp_path / "a.jsonl", [{"text": "a"}])
    options = {"strategy": "concat", "sequence_length": 8}
    for run in (
        lambda: packtool.tokenize(file, tmp_path / "store"),
        lambda: packtool.pack(tmp_path / "store", tmp_path / "rows", **options),
        lambda: packtool.shuffle(tmp_path / "rows", tmp_path / "shuffled", epoch=1),
        lambda: packtool.export(tmp_path / "rows", tmp_path / "exported", format="parquet"),
    ):
        with pytest.warns(PacktoolWarning) as said:
            run()
        assert [warning.message.code for warning in said] == ["no-directory-sync"]  # type: ignore[union-attr]
    number = errno.EIO
    with pytest.raises(DataError, match="Input/output error"):
        packtool.tokenize(file, tmp_path / "another")


def test_its_file_says_in_a_line_who_holds_it(tmp_path: Path) -> None:
    held = lock.take(tmp_path, "pack", "o")
    line = rf"packtool pack \(process {os.getpid()} on .*, since \d{{4}}-\d\d-\d\d .* UTC\)\n"
    assert re.fullmatch(line, (tmp_path / "lock").read_text())
    held.release()
    held.release()
    assert names(tmp_path) == []
