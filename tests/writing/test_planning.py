"""Plans beyond memory: the same, and on disk."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool import arrays
from packtool.engines import Threads
from packtool.packing import STRATEGIES, PackOptions
from packtool.packing.plans import windows
from packtool.storage.token_store import Corpus
from packtool.writing import array_files, planning
from packtool.writing.memory import Budget
from tests.stores import contents, write_store
from tests.test_golden import RECORDED, make


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "DOCUMENT_BYTES", 1 << 50)
    monkeypatch.setattr(array_files, "LARGE", 1)


@pytest.mark.usefixtures("on_disk")
def test_the_bytes_of_every_strategy(tmp_path: Path) -> None:
    recorded, found = json.loads(RECORDED.read_text(encoding="utf-8")), make(tmp_path)
    assert {name: digest for name, digest in found.items() if digest != recorded[name]} == {}


@pytest.mark.usefixtures("on_disk")
def test_nothing_is_left(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [50, 7, 90] * 200)
    options: dict[str, Any] = {"strategy": "seamless", "sequence_length": 64, "window_tokens": 4000}
    packtool.pack(store, tmp_path / "out", **options, workers=2)
    assert not (tmp_path / "out" / "unfinished").exists()
    packtool.pack(store, tmp_path / "windows", **options, workers=1, memory="1GiB")
    assert contents(tmp_path / "windows") == contents(tmp_path / "out")


OPTIONS: dict[str, dict[str, Any]] = {
    "padding": {"sequence_length": 64, "atom_size": 128},
    "seamless": {"sequence_length": 64},
    "buckets": {"buckets": (64, 128)},
    "length-buckets": {"buckets": (64, 128)},
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_more_in_memory_than_a_window(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight windows of a corpus take hardly more than one."""
    monkeypatch.setattr(array_files, "LARGE", 1 << 10)
    monkeypatch.setattr(arrays, "BLOCK", 1 << 10)
    monkeypatch.setattr(windows, "_BATCH", 1 << 10)
    lengths = np.random.default_rng(0).integers(20, 90, 20_000).tolist()
    whole = Corpus([write_store(tmp_path / "store", lengths, per_shard=2500)])
    eighth = Corpus([write_store(tmp_path / "eighth", lengths[:2500])])
    options = PackOptions(window_tokens=eighth.tokens, **OPTIONS.get(strategy, {"sequence_length": 64}))

    def once(corpus: Corpus) -> int:
        tracemalloc.start()
        with planning.planned(strategy, corpus, options, Budget(1 << 16, Threads(1)), tmp_path):
            found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    def peak(corpus: Corpus) -> int:
        """Without what is loaded the first time, and what waits for the collector or other threads hold at a time."""
        return min(once(corpus) for _ in range(2))

    assert peak(whole) < 1.25 * peak(eighth) + (1 << 16)
