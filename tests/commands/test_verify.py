"""`verify` finds what is wrong: every file, every kind of damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xxhash

import packtool
from packtool.cli import run
from packtool.commands import verify
from packtool.warnings import PacktoolWarning
from tests.stores import reseal, rewrite, write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12]


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    store = write_store(tmp_path / "store", LENGTHS)
    packtool.pack(store, tmp_path / "packed", strategy="padding", sequence_length=16, atom_size=32, shard_tokens=64)
    return tmp_path / "packed"


def arrays(path: Path) -> list[Path]:
    return sorted(path.rglob("*.npy"))


def test_a_sound_dataset_is_sound(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(packed)]) == 0
    assert "sound" in capsys.readouterr().out
    assert run(["verify", str(packed.parent / "store"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sound"] is True


def test_a_flipped_bit_anywhere_is_found(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = packed.parent / "store"
    for file in [*arrays(packed), *arrays(store), packed / "report.json"]:
        whole = file.read_bytes()
        at = len(whole) // 2
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert run(["verify", str(file.parent)]) == 1
        error = capsys.readouterr().err
        assert "error[wrong-checksum]" in error
        assert file.name in error
        file.write_bytes(whole)


def test_a_truncated_and_a_missing_file_are_found(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in arrays(packed):
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        assert run(["verify", str(packed)]) == 1
        assert f"{file.name}: has {len(whole) - 1} bytes, but the manifest says {len(whole)}" in capsys.readouterr().err
        file.unlink()
        assert run(["verify", str(packed)]) == 1
        assert f"{file.name}: named in the manifest, but not there" in capsys.readouterr().err
        file.write_bytes(whole)


def first_padding(rows: np.ndarray) -> None:
    rows[rows["document"] == -1] = (-1, 0, 1, 0)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("segments-00000.npy", lambda t: t["document"].__setitem__(0, 99), "a segment lies outside its document"),
        ("segments-00000.npy", lambda t: t["start"].__setitem__(0, 50), "a segment lies outside its document"),
        ("segments-00000.npy", first_padding, "its segments do not add up to the sequence length"),
        ("segments-00000.npy", lambda t: t["repeated"].__setitem__(0, 1), "placed, but the ledger says"),
        ("lengths.npy", lambda t: t.__setitem__(slice(None), 2), "a segment lies outside its document"),
    ],
)
def test_contents_that_contradict_each_other_are_found(
    packed: Path, capsys: pytest.CaptureFixture[str], name: str, change: Callable[[np.ndarray], object], message: str
) -> None:
    rewrite(packed, name, change)
    assert run(["verify", str(packed)]) == 1
    assert message in capsys.readouterr().err


def test_padding_that_is_something_else_is_found(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(packed, "tokens-00000.npy", lambda t: t.__setitem__((t == 0).nonzero(), 9))
    assert run(["verify", str(packed)]) == 1
    assert "error[bad-segments]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("tokens-00000.npy", lambda t: t.__setitem__(4, 5), "document 0 does not end with EOS (0)"),
        ("offsets-00000.npy", lambda t: t.__setitem__(1, 0), "its offsets do not divide its"),
    ],
)
def test_a_damaged_store_is_found(
    packed: Path, capsys: pytest.CaptureFixture[str], name: str, change: Callable[[np.ndarray], object], message: str
) -> None:
    store = packed.parent / "store"
    rewrite(store, name, change)
    assert run(["verify", str(store)]) == 1
    assert message in capsys.readouterr().err


def test_ids_beyond_the_vocabulary_are_found(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (packed, packed.parent / "store"):
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["tokenizer"]["vocab_size"] = 20
        reseal(path, manifest)
        assert run(["verify", str(path)]) == 1
        said = capsys.readouterr().err.splitlines()
        assert not [line for line in said if "but the vocabulary ends at 19" not in line]
        assert len(set(said)) == len(said) > 0, "each shard once"


def test_an_unbalanced_ledger_is_found(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((packed / "manifest.json").read_text())
    manifest["ledger"]["dropped"] += 1
    reseal(packed, manifest)
    assert run(["verify", str(packed)]) == 1
    assert "the ledger does not balance: input = placed + dropped" in capsys.readouterr().err


def test_what_is_no_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tmp_path / "nothing")]) == 1
    assert "error[missing-input]" in capsys.readouterr().err
    (tmp_path / "manifest.json").write_text("{")
    assert run(["verify", str(tmp_path)]) == 1
    assert "error[bad-manifest]" in capsys.readouterr().err
    (tmp_path / "manifest.json").write_text('{"format": "other", "format_version": 1, "packtool_version": "9"}')
    assert run(["verify", str(tmp_path)]) == 1
    assert "format 'other' version 1 can't be read by this version. Use packtool 9 or later." in capsys.readouterr().err


def test_a_moved_dataset_stays_sound(packed: Path) -> None:
    shutil.move(packed, packed.parent / "elsewhere")
    assert run(["verify", str(packed.parent / "elsewhere"), "-q"]) == 0


def test_a_report_that_says_something_else_is_found(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads((packed / "report.json").read_bytes())
    report["ledger"]["placed"] += 1
    raw = json.dumps(report).encode()
    (packed / "report.json").write_bytes(raw)
    manifest = json.loads((packed / "manifest.json").read_bytes())
    manifest["report"] |= {"bytes": len(raw), "xxh3_128": xxhash.xxh3_128_hexdigest(raw)}
    reseal(packed, manifest)
    assert run(["verify", str(packed)]) == 1
    assert "report.json: its ledger is not the manifest's" in capsys.readouterr().err


def test_rejected_records_are_covered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"text": "a b c"}\n{"txet": "d"}\n')
    with pytest.warns(PacktoolWarning):
        packtool.tokenize(tmp_path / "corpus.jsonl", tmp_path / "store", on_error="quarantine", workers=1)
    assert run(["verify", str(tmp_path / "store")]) == 0
    (tmp_path / "store" / "rejected.jsonl").write_text("{}")
    assert run(["verify", str(tmp_path / "store")]) == 1
    assert "rejected.jsonl: has 2 bytes, but the manifest says" in capsys.readouterr().err


def test_the_tokens_of_an_export_are_counted(packed: Path) -> None:
    done = packtool.export(packed, packed.parent / "export", format="parquet")
    assert packtool.verify(packed.parent / "export").tokens == done.manifest.tokens > 0


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
