"""The first pass: what is finished is not done again."""

from __future__ import annotations

from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.storage.packed import PackedDataset
from packtool.writing import first_pass
from packtool.writing.input_check import InputCheck
from tests.stores import contents
from tests.writing.cases import KINDS, counting


def test_finished_parts_and_shards_are_not_done_again(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_pass, "_TASK_BYTES", 4000)
    keep = InputCheck.keep

    def keep_at_once(check: InputCheck, action: Any) -> None:
        wait([check._done])  # else it depends on how busy the machine is what is noted before the failure
        keep(check, action)

    monkeypatch.setattr(InputCheck, "keep", keep_at_once)
    options = {**KINDS["concat-8"], "shard_tokens": 64 * 15}
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **options)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "expected")
    run: dict[str, Any] = {"memory": 30_000, "workers": 1}

    read = counting(monkeypatch, "packtool.writing.first_pass.scratch.append", fail_at=800)
    with pytest.raises(OSError, match="counted"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", **run)
    notes = sorted((tmp_path / "out" / "unfinished").glob("pieces/partitions-*/*.json"))
    assert notes
    assert not (tmp_path / "out" / "manifest.json").exists()
    read.calls = 0
    written = counting(monkeypatch, "packtool.writing.shards.PackedShardWriter", fail_at=3)
    with pytest.raises(OSError, match="counted"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "out", resume=True, **run)
    done = len(list((tmp_path / "out" / "unfinished").glob("pieces/shard/*.json")))
    assert done  # the second may have been on its way to the disk
    assert read.calls > 0

    read.calls = written.calls = 0
    packtool.shuffle(tmp_path / "corpus", tmp_path / "out", resume=True, **run)
    assert read.calls == 0
    shards = len(PackedDataset(tmp_path / "expected").buckets[0].shards)
    assert written.calls == shards - done > 0
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")
    assert not (tmp_path / "out" / "unfinished").exists()
    packtool.shuffle(tmp_path / "corpus", tmp_path / "out", resume=True, **run)
    assert written.calls == shards - done


def test_rows_may_be_written_before_all_input_is_checked(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packtool.pack(store, tmp_path / "expected", **KINDS["concat-8"])
    monkeypatch.setattr(InputCheck, "keep", lambda check, action: check._kept.append(action))
    packtool.pack(store, tmp_path / "out", **KINDS["concat-8"], memory=30_000, workers=1)
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")
