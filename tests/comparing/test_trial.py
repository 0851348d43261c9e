"""One candidate tried: what is exact, and what is taken from a part of the documents."""

from __future__ import annotations

import numpy as np
import pytest

from packtool.comparing import candidates, compare, trial
from packtool.report.sampled import sampled_note
from tests.reports import store_report

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
    (sample,) = trial.listed(LENGTHS[:200], tried)
    assert estimated.tallies[0].homogeneity.result() == sample.tally.homogeneity.result()
    assert estimated.tallies[0].piece_lengths.tolist() == exact.tallies[0].piece_lengths.tolist()
    comparison = store_report(LENGTHS, ["concat", "bfd"], [64]).comparison
    assert comparison is not None
    assert [entry.sampled_documents for entry in comparison.entries] == [None, 200]
    assert sampled_note(comparison.entries).startswith("Estimated from the first 200 documents, packed alone: ")
    assert sampled_note(comparison.entries[:1]) == ""


def test_atoms_below_a_row_are_in_the_order_of_pack() -> None:
    (tried,) = candidates(["concat"], [64], grid={"atom_size": [16]})
    (found,) = compare(LENGTHS, [tried])
    (listed,) = trial.listed(LENGTHS, tried)
    assert found.tallies[0].documents_in_row.tolist() == listed.tally.documents_in_row.tolist()
    assert found.tallies[0].documents_in_row @ np.arange(65) > compare_whole()


def compare_whole() -> int:
    """Documents in rows, summed, where atoms are rows: fewer than where short atoms of many documents are joined."""
    (whole,) = compare(LENGTHS, candidates(["concat"], [64]))
    return int(whole.tallies[0].documents_in_row @ np.arange(65))
