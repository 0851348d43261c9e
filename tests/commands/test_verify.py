"""`verify` finds what is wrong: every file, every kind of damage."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.commands import verify
from tests.making import Make
from tests.shell import Shell
from tests.stores import amended, rewrite, write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12]


@pytest.fixture
def packed(tmp_path: Path, make: Make) -> Path:
    options = {"strategy": "padding", "sequence_length": 16, "atom_size": 32, "shard_tokens": 64}
    return make(LENGTHS, packed=options, at=tmp_path) / "packed"


def test_a_sound_dataset_is_sound(packed: Path, shell: Shell) -> None:
    assert "sound" in shell("verify", packed)
    assert json.loads(shell("verify", packed.parent / "store", "--json"))["sound"] is True
    done = packtool.export(packed, packed.parent / "export", format="parquet")
    assert packtool.verify(packed.parent / "export").tokens == done.manifest.tokens > 0
    assert packtool.verify(shutil.move(packed, packed.parent / "elsewhere")).problems == []


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("packed/segments-00000.npy", lambda t: t["repeated"].__setitem__(0, 1), "placed, but the ledger says"),
        ("packed/lengths.npy", lambda t: t.__setitem__(slice(None), 2), "a segment lies outside its document"),
        ("packed/tokens-00000.npy", lambda t: t.__setitem__((t == 0).nonzero(), 9), "error[bad-segments]"),
        ("store/tokens-00000.npy", lambda t: t.__setitem__(4, 5), "document 0 does not end with EOS (0)"),
    ],
)
def test_contents_that_contradict_each_other_are_found(
    packed: Path, shell: Shell, name: str, change: Callable[[np.ndarray], object], message: str
) -> None:
    file = packed.parent / name
    rewrite(file.parent, file.name, change)
    assert message in shell.refused("verify", file.parent)


def test_ids_beyond_the_vocabulary_are_found(packed: Path, shell: Shell) -> None:
    for path in (packed, packed.parent / "store"):
        with amended(path) as manifest:
            manifest["tokenizer"]["vocab_size"] = 20
        said = shell.refused("verify", path).splitlines()
        assert not [line for line in said if "but the vocabulary ends at 19" not in line]
        assert len(set(said)) == len(said) > 0, "each shard once"


def test_what_is_no_dataset(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "other", "format_version": 1, "packtool_version": "9"}')
    said = f"format 'other' version 1 can't be read by packtool {packtool.__version__}. Use packtool 9 or a later one."
    assert said in shell.refused("verify", tmp_path)


def test_a_repeat_of_what_is_nowhere_is_found(tmp_path: Path, shell: Shell) -> None:
    store = write_store(tmp_path / "store", [40, 41, 90, 33])
    packtool.pack(store, tmp_path / "packed", strategy="seamless", sequence_length=16, max_repetition="0.3")
    assert packtool.verify(tmp_path / "packed").problems == []
    table = np.load(tmp_path / "packed" / "segments-00000.npy")
    wrong = int(np.flatnonzero(table["repeated"])[0])

    def change(table: np.ndarray) -> None:
        others = np.flatnonzero((table["repeated"] == 0) & (table["start"] == 0))
        moved = int(others[others != wrong][0])
        table["repeated"][[wrong, moved]] = table["repeated"][[moved, wrong]]

    rewrite(tmp_path / "packed", "segments-00000.npy", change)
    assert "error[placed-twice]" in shell.refused("verify", tmp_path / "packed")


@pytest.mark.parametrize("at_once", [1, 3, 1 << 20])
def test_stretches_do_not_change_the_verdict(tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor on a row that is a copy of another, with all hashes made again."""
    monkeypatch.setattr(verify, "SEGMENTS", at_once)
    store = write_store(tmp_path / "store", [40, 41, 90, 33, 1, 1, 70])
    for strategy in ("concat", "seamless", "bfd-extra", "padding"):
        packtool.pack(store, tmp_path / strategy, strategy=strategy, sequence_length=16)
        assert packtool.verify(tmp_path / strategy, store=store).problems == []
    packtool.pack(write_store(tmp_path / "alike", [16] * 8), tmp_path / "rows", strategy="bfd", sequence_length=16)
    for name in ("tokens-00000.npy", "segments-00000.npy"):
        rewrite(tmp_path / "rows", name, lambda t: t.__setitem__(3, t[5]))
    document = int(np.load(tmp_path / "rows" / "segments-00000.npy")["document"][3])
    [problem] = packtool.verify(tmp_path / "rows").problems
    assert problem.what == f"token 0 of document {document} is placed twice, without being marked as repeated"


def test_rows_are_compared_with_the_store(tmp_path: Path, shell: Shell) -> None:
    store, other = write_store(tmp_path / "store", LENGTHS), write_store(tmp_path / "other", LENGTHS, first=3)
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=16)
    rewrite(tmp_path / "packed", "tokens-00000.npy", lambda t: t.__setitem__((2, 3), 9))
    shell("verify", tmp_path / "packed")  # only the store knows
    error = shell.refused("verify", tmp_path / "packed", "--store", store)
    assert "error[bad-segments]" in error
    assert "row 2: its tokens are not the store's" in error
    error = shell.refused("verify", tmp_path / "packed", "--store", other, status=2)
    assert "error[other-stores]: --store: packed from other stores (store)." in error
