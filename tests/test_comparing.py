"""Strategies compared on lengths: which are tried with which options, what is exact, and what stands for all."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import packtool
from packtool import comparing
from packtool.commands.pack import check_options
from packtool.comparing import PICTURED, Candidate, candidates, compare, sample_rows, spread_rows
from packtool.engines import Processes, Worker
from packtool.errors import UsageError
from packtool.options.check import checked
from packtool.options.declare import declared
from packtool.options.pack import PackArguments
from packtool.packing import STRATEGIES, PackOptions, plan
from packtool.plan import Segments
from packtool.report.schema import Comparison
from packtool.report.tables import notes
from tests.reports import store_report
from tests.stores import write_store

LENGTHS = np.random.default_rng(3).lognormal(3, 1, 600).astype(np.int64) + 2


def test_mixed_rows_of_a_large_corpus_are_estimated_and_all_else_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    (tried,) = candidates(["bfd"], [64])
    (exact,) = compare(LENGTHS, [tried])
    assert exact.sampled is None
    monkeypatch.setattr(comparing, "MIXED_EXACTLY", 200)
    (estimated,) = compare(LENGTHS, [tried])
    assert estimated.sampled == 200
    assert estimated.ledger == exact.ledger
    (sample,) = comparing.listed(LENGTHS[:200], plan("bfd", LENGTHS[:200], tried.options))
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
    monkeypatch.setattr(comparing, "MIXED_EXACTLY", 2)
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
    (listed,) = comparing.listed(LENGTHS, plan("concat", LENGTHS, tried.options))
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


def test_every_combination_of_what_a_strategy_takes() -> None:
    grid = {"extra_capacity": [5, 10], "max_repetition": [Fraction(1, 10), Fraction(3, 10)], "atom_size": [64]}
    found = candidates(["concat", "bfd-extra", "seamless"], [32, 64], grid=grid)
    tried = [(c.strategy, c.options.sequence_length) for c in found]
    assert tried.count(("concat", 32)) == 1
    assert tried.count(("bfd-extra", 64)) == 2
    assert tried.count(("seamless", 32)) == 4
    assert [c.label for c in found if c.strategy == "seamless"][:2] == ["seamless c=5 r=0.1", "seamless c=5 r=0.3"]
    assert {c.label for c in found if c.strategy == "concat"} == {"concat"}


def test_labels_tell_candidates_of_a_row_length_apart() -> None:
    grid: dict[str, Any] = {"buckets": [(32, 64), (64, 128)], "min_bucket": [1, 8], "padding_threshold": [0, 1]}
    found = candidates(["all"], [32, 64], grid=grid)
    keys = [(c.options.sequence_length, c.label) for c in found]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_the_command_gives_the_options_tried(name: str) -> None:
    grid: dict[str, Any] = {
        "extra_capacity": [7],
        "max_repetition": [Fraction(1, 5)],
        "padding_threshold": [Fraction(1, 20)],
        "buckets": [(32, 64)],
        "min_bucket": [4],
        "atom_size": [16],
    }
    (tried,) = candidates([name], [64], grid={k: v for k, v in grid.items() if k in STRATEGIES[name].accepts})
    words = tried.arguments()
    given: dict[str, Any] = dict(zip((w[2:].replace("-", "_") for w in words[::2]), words[1::2], strict=True))
    options = checked(PackArguments("store", "packed", **given))
    assert check_options(options).name == name
    assert all(getattr(options, option) == getattr(tried.options, option) for option in declared(PackOptions))


@pytest.mark.parametrize(
    ("names", "grid", "message"),
    [
        (
            ["concat"],
            {"extra_capacity": [5]},
            "--extra-capacity: none of the strategies compared takes this",
        ),
        (["best"], {}, "there is no strategy 'best'"),
        (["bfd-extra"], {"extra_capacity": [64]}, r"--extra-capacity: 64 is out of range"),
    ],
)
def test_refuses_what_makes_no_sense(names: list[str], grid: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        candidates(names, [64], grid=grid)


def test_a_candidate_without_options_is_its_strategy() -> None:
    assert Candidate("bfd", PackOptions(sequence_length=8)).arguments() == [
        *("--strategy", "bfd"),
        *("--sequence-length", "8"),
    ]


def one_a_row(first: int, last: int) -> Segments:
    """Row n holds document n, whole."""
    rows = np.arange(first, last)
    return Segments(rows, np.zeros_like(rows), np.full_like(rows, 4), np.zeros_like(rows), np.arange(last - first + 1))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(0, []), (1, [0]), (4, [0, 1, 2, 3]), (6, [0, 1, 2, 3, 4, 5]), (101, [0, 20, 40, 60, 80, 100])],
)
def test_rows_are_evenly_spread_from_the_first_to_the_last(rows: int, expected: list[int]) -> None:
    spread = spread_rows(one_a_row, rows)
    assert spread.document.tolist() == expected
    assert spread.offsets.tolist() == list(range(len(expected) + 1))


def test_of_several_row_lengths_the_one_with_most_tokens() -> None:
    lengths = np.array([8] * 10 + [32] * 9)
    rows = sample_rows(lengths, Candidate("buckets", PackOptions(buckets=(8, 32), padding_threshold=Fraction(1, 2))))
    assert rows.groups == PICTURED
    assert rows.tokens().tolist() == [32] * PICTURED
