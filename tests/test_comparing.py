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
from packtool.comparing import PICTURED, Candidate, PassByPass, candidates, compare, rows_to_draw, spread_rows
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
    (exact,), sampled, _ = comparing.count_rows(LENGTHS, tried)
    assert sampled is None
    monkeypatch.setattr(comparing, "MIXED_EXACTLY", 200)
    (estimated,), sampled, _ = comparing.count_rows(LENGTHS, tried)
    assert sampled == 200
    (sample,) = comparing.listed(LENGTHS[:200], plan("bfd", LENGTHS[:200], tried.options))
    assert estimated.tally.homogeneity.result() == sample.tally.homogeneity.result()
    assert estimated.tally.piece_lengths.tolist() == exact.tally.piece_lengths.tolist()
    assert (estimated.rows, estimated.tally.padding) == (exact.rows, exact.tally.padding)
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
    (found,), _, _ = comparing.count_rows(LENGTHS, tried)
    (listed,) = comparing.listed(LENGTHS, plan("concat", LENGTHS, tried.options))
    assert found.tally.documents_in_row.tolist() == listed.tally.documents_in_row.tolist()
    (whole,), _, _ = comparing.count_rows(LENGTHS, *candidates(["concat"], [64]))
    # Short atoms of many documents are joined, so rows hold more of them.
    assert found.tally.documents_in_row @ np.arange(65) > whole.tally.documents_in_row @ np.arange(65)


def test_what_a_worker_sends_is_what_is_found_here() -> None:
    lengths = np.random.default_rng(0).integers(1, 300, 2000)
    tried = candidates(["all"], [128])

    class Elsewhere(Processes):
        def run(self, function: Any, tasks: Any, **_: Any) -> Any:
            for number, task in enumerate(tasks):
                sent = pickle.dumps(function(task, Worker()))
                assert len(sent) < 60_000, "the lengths stay where they are"
                yield number, pickle.loads(sent)

    twice = np.concatenate([lengths, lengths[1000:]])
    passes = PassByPass(twice, [len(lengths), len(twice)])
    for documents, each in ((lengths, None), (np.sort(twice), passes)):
        here = compare(documents, tried, passes=each)
        there = compare(documents, tried, passes=each, engine=Elsewhere(2))
        assert msgspec.structs.replace(here, timings=[]) == msgspec.structs.replace(there, timings=[])


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
    rows = rows_to_draw(lengths, Candidate("buckets", PackOptions(buckets=(8, 32), padding_threshold=Fraction(1, 2))))
    assert rows.groups == PICTURED
    assert rows.tokens().tolist() == [32] * PICTURED


FEW = np.array([3, 9, 40, 17, 5, 64, 2, 30] * 20)


def comparison(names: list[str], sizes: list[int], parameters: int | None = None) -> Comparison:
    tried = candidates(names, sizes, {"buckets": [(16, 64)]} if "buckets" in names else None)
    return compare(FEW, tried, batch_size=4, parameters=parameters)


def test_entries_say_what_was_tried_and_how_to_pack_it() -> None:
    found = comparison(["concat", "seamless", "buckets"], [32, 64])
    assert [(entry.strategy, entry.sequence_length) for entry in found.entries] == [
        ("concat", 32),
        ("concat", 64),
        ("seamless", 32),
        ("seamless", 64),
        ("buckets", None),
    ]
    seamless = found.entries[3]
    assert seamless.options["max_repetition"] == 0.3
    assert seamless.options["extra_capacity"] == 50
    assert found.entries[4].options["buckets"] == [16, 64]
    assert found.entries[0].command == "packtool pack store -o packed --strategy concat --sequence-length 32"
    assert len(found.timings) == len(found.entries)


def test_attention_is_a_share_of_that_of_the_joined_stream() -> None:
    found = comparison(["concat"], [32, 64])
    base = found.attention_baseline
    tokens = int(FEW.sum())
    for entry in found.entries:
        assert entry.sequence_length is not None
        rows = -(-tokens // entry.sequence_length)
        pairs = rows * entry.sequence_length * (entry.sequence_length + 1) // 2
        assert entry.attention == pytest.approx(pairs / (-(-tokens // base) * base * (base + 1) // 2))
        assert entry.training is None


def test_longer_documents_are_foreseen_for_each_row_length() -> None:
    found = comparison(["concat", "bfd"], [64, 32])
    assert [(each.sequence_length, each.longer_texts) for each in found.sliding] == [(32, 40), (64, 0)]
    assert comparison(["concat"], [32], parameters=10**9).entries[0].training is not None
