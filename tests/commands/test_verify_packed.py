"""What `verify` finds in rows: tokens placed twice, tokens that are not the store's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.cli import run
from packtool.commands import verify
from tests.stores import rewrite, write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12]


def test_a_row_that_is_a_copy_of_another_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With all hashes made again it once was sound, every token placed."""
    store = write_store(tmp_path / "store", [16] * 8)
    packtool.pack(store, tmp_path / "packed", strategy="bfd", sequence_length=16)
    for name in ("tokens-00000.npy", "segments-00000.npy"):
        rewrite(tmp_path / "packed", name, lambda t: t.__setitem__(3, t[5]))
    document = int(np.load(tmp_path / "packed" / "segments-00000.npy")["document"][3])
    assert run(["verify", str(tmp_path / "packed")]) == 1
    error = capsys.readouterr().err
    assert "error[placed-twice]" in error
    assert f"token 0 of document {document} is placed twice, without being marked as repeated" in error


def test_a_repeat_of_what_is_nowhere_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = write_store(tmp_path / "store", [40, 41, 90, 33])
    packtool.pack(store, tmp_path / "packed", strategy="seamless", sequence_length=16, max_repetition="0.3")
    assert run(["verify", str(tmp_path / "packed")]) == 0
    table = np.load(tmp_path / "packed" / "segments-00000.npy")
    wrong = int(np.flatnonzero(table["repeated"])[0])

    def change(table: np.ndarray) -> None:
        moved = next(
            i for i in range(len(table)) if i != wrong and table["repeated"][i] == 0 and table["start"][i] == 0
        )
        table["repeated"][[wrong, moved]] = table["repeated"][[moved, wrong]]

    rewrite(tmp_path / "packed", "segments-00000.npy", change)
    assert run(["verify", str(tmp_path / "packed")]) == 1
    assert "error[placed-twice]" in capsys.readouterr().err


@pytest.mark.parametrize("at_once", [1, 3, 1 << 20])
def test_stretches_do_not_change_the_verdict(tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "SEGMENTS", at_once)
    store = write_store(tmp_path / "store", [40, 41, 90, 33, 1, 1, 70])
    for strategy in ("concat", "seamless", "bfd-extra", "padding"):
        packtool.pack(store, tmp_path / strategy, strategy=strategy, sequence_length=16)
        assert packtool.verify(tmp_path / strategy, store=store).problems == []
    rewrite(tmp_path / "concat", "segments-00000.npy", lambda t: t.__setitem__(3, t[5]))
    assert packtool.verify(tmp_path / "concat").problems


def test_rows_are_compared_with_the_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, other = write_store(tmp_path / "store", LENGTHS), write_store(tmp_path / "other", LENGTHS, first=3)
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=16)
    rewrite(tmp_path / "packed", "tokens-00000.npy", lambda t: t.__setitem__((2, 3), 9))
    assert run(["verify", str(tmp_path / "packed")]) == 0, "only the store knows"
    capsys.readouterr()
    assert run(["verify", str(tmp_path / "packed"), "--store", str(store)]) == 1
    assert "error[bad-segments]" in (error := capsys.readouterr().err)
    assert "row 2: its tokens are not the store's" in error
    assert run(["verify", str(tmp_path / "packed"), "--store", str(other)]) == 2
    assert "error[other-stores]: --store: packed from other stores (store)." in capsys.readouterr().err
