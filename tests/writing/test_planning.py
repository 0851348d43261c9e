"""Plans beyond memory: on disk, and sent to other processes. `test_same_rows.py` says that they are the same."""

import gc
import tracemalloc
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from packtool.engines import Threads
from packtool.formats.token_store import Corpus
from packtool.planning import arrays
from packtool.planning.packing import STRATEGIES, PackOptions, windows
from packtool.writing import array_files, planning
from packtool.writing.memory import Budget
from tests.stores import write_store


def test_plans_of_other_processes_outlive_what_was_sent_to_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lengths are below the size of a file, so they are sent; every plan holds them."""
    monkeypatch.setattr("packtool.writing.memory.DOCUMENT_BYTES", 1 << 50)
    corpus = Corpus([write_store(tmp_path / "store", [50, 7, 90] * 2000)])
    options = PackOptions(sequence_length=128, window_tokens=corpus.tokens // 3)
    with planning.planned(STRATEGIES["bfd"], corpus, options, Budget(1 << 20, Threads(2)), tmp_path) as [plan]:
        pieces = plan.segments(np.arange(plan.rows))
    assert int(pieces.length.sum()) == corpus.tokens


OPTIONS: dict[str, dict[str, Any]] = {
    "padding": {"sequence_length": 64, "atom_size": 128},
    "seamless": {"sequence_length": 64},
    "buckets": {"buckets": (64, 128)},
    "length-buckets": {"buckets": (64, 128)},
}


@pytest.fixture(scope="session")
def windows_of_documents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, Corpus]:
    """Windows of documents, and the first of them."""
    lengths = np.random.default_rng(0).integers(20, 90, WINDOWS * WINDOW).tolist()
    directory = tmp_path_factory.mktemp("windows")
    first = Corpus([write_store(directory / "one", lengths[:WINDOW])])
    several = Corpus([write_store(directory / "several", lengths, per_shard=WINDOW)])
    gc.collect()
    gc.freeze()  # or every collection below would go through all that earlier tests left
    return several, first


WINDOWS = 6
WINDOW = 10_000
"""Documents planned together: enough that their arrays outweigh the objects that stand for them."""
OBJECTS = 160_000


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_more_in_memory_than_a_window(
    strategy: str, tmp_path: Path, windows_of_documents: tuple[Corpus, Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several windows of a corpus take hardly more than one."""
    monkeypatch.setattr(array_files, "LARGE", 1 << 10)
    monkeypatch.setattr(arrays, "BLOCK", 1 << 10)
    monkeypatch.setattr(windows, "_BATCH", 1 << 10)
    several, one = windows_of_documents
    options = PackOptions(window_tokens=one.tokens, **OPTIONS.get(strategy, {"sequence_length": 64}))

    def planned(corpus: Corpus) -> AbstractContextManager[Any]:
        return planning.planned(STRATEGIES[strategy], corpus, options, Budget(1 << 16, Threads(1)), tmp_path)

    def memory(corpus: Corpus) -> tuple[int, int]:
        """Measure what a plan holds, and what planning took at its most."""
        gc.collect()  # what earlier work left behind is not of this one
        tracemalloc.start()
        with planned(corpus):
            peak = tracemalloc.get_traced_memory()[1]
            gc.collect()
            held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return held, peak

    with planned(one):  # loads what it needs
        pass
    (held, peak), (held_by_one, peak_of_one) = memory(several), memory(one)
    assert held < held_by_one + OBJECTS
    assert peak < 1.1 * peak_of_one + OBJECTS
