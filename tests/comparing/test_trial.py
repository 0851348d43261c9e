"""One candidate tried: what is exact, and what is taken from a part of the documents."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import packtool
from packtool.comparing import candidates, compare, trial
from packtool.engines import Processes, Worker
from packtool.packing import plan
from packtool.report.schema import Comparison
from packtool.report.tables import notes
from tests.reports import store_report
from tests.stores import write_store

LENGTHS = np.random.default_rng(3).lognormal(3, 1, 600).astype(np.int64) + 2


def test_mixed_rows_of_a_large_corpus_are_estimated_and_all_else_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    (tried,) = candidates(["bfd"], [64])
    (exact,) = compare(LENGTHS, [tried])
    assert exact.sampled is None
    monkeypatch.setattr(trial, "mixed", lambda candidate: candidate.strategy == "bfd")
    monkeypatch.setattr(trial, "MIXED_EXACTLY", 200)
    (estimated,) = compare(LENGTHS, [tried])
    assert estimated.sampled == 200
    assert estimated.ledger == exact.ledger
    (sample,) = trial.listed(LENGTHS[:200], plan("bfd", LENGTHS[:200], tried.options))
    assert estimated.tallies[0].homogeneity.result() == sample.tally.homogeneity.result()
    assert estimated.tallies[0].piece_lengths.tolist() == exact.tallies[0].piece_lengths.tolist()
    comparison = store_report(LENGTHS, ["concat", "bfd"], [64]).comparison
    assert comparison is not None
    assert [entry.sampled_documents for entry in comparison.entries] == [None, 200]
    assert notes(comparison)[0].startswith("Estimated from the first 200 documents, packed alone: ")
    (concat,) = [entry for entry in comparison.entries if entry.strategy == "concat"]
    assert [note[:15] for note in notes(msgspec.structs.replace(comparison, entries=[concat]))] == ["Without packing"]


def test_all_leaves_out_what_takes_long_on_a_large_corpus_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trial, "MIXED_EXACTLY", 2)
    store = write_store(tmp_path / "store", [9, 3, 5, 4, 4])

    def compared(names: list[str]) -> Comparison:
        found = packtool.stats(store, compare=names, sequence_length=8).comparison
        assert found is not None
        return found

    everything = compared(["all"])
    assert everything.left_out == ["first-fit-shuffle"]
    assert "first-fit-shuffle" not in {entry.strategy for entry in everything.entries}
    assert notes(everything)[1].startswith("Not tried: first-fit-shuffle, which places documents one by one")
    assert compared(["all", "first-fit-shuffle"]).left_out == []
    monkeypatch.undo()
    assert compared(["all"]).left_out == []


def test_atoms_below_a_row_are_in_the_order_of_pack() -> None:
    (tried,) = candidates(["concat"], [64], grid={"atom_size": [16]})
    (found,) = compare(LENGTHS, [tried])
    (listed,) = trial.listed(LENGTHS, plan("concat", LENGTHS, tried.options))
    assert found.tallies[0].documents_in_row.tolist() == listed.tally.documents_in_row.tolist()
    assert found.tallies[0].documents_in_row @ np.arange(65) > compare_whole()


def compare_whole() -> int:
    """Documents in rows, summed, where atoms are rows: fewer than where short atoms of many documents are joined."""
    (whole,) = compare(LENGTHS, candidates(["concat"], [64]))
    return int(whole.tallies[0].documents_in_row @ np.arange(65))


def test_what_a_worker_sends_is_what_is_found_here() -> None:
    lengths = np.random.default_rng(0).integers(1, 300, 2000)
    tried = candidates(["all"], [128])

    class Elsewhere(Processes):
        def run(self, function: Any, tasks: Any, **_: Any) -> Any:
            for number, task in enumerate(tasks):
                sent = pickle.dumps(function(task, Worker()))
                assert len(sent) < 60_000, "the lengths stay where they are"
                yield number, pickle.loads(sent)

    found = compare(lengths, tried, engine=Elsewhere(2))
    for here, there in zip(compare(lengths, tried), found, strict=True):
        assert there.candidate == here.candidate
        assert (there.ledger, there.sampled) == (here.ledger, here.sampled)
        assert [tally.counts() for tally in there.tallies] == [tally.counts() for tally in here.tallies]
