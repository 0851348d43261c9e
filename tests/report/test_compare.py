"""Strategies compared on lengths: which are tried with which options, what is exact, and what stands for all."""

import io
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console

import packtool
from packtool.commands.pack_recipe import PackRecipe
from packtool.engines import Processes, Worker
from packtool.errors import UsageError
from packtool.options.check import checked
from packtool.options.declare import declared
from packtool.options.pack import PackArguments
from packtool.planning.packing import STRATEGIES, PackOptions, plan
from packtool.planning.plan import Segments
from packtool.report import compare as comparing
from packtool.report.compare import (
    PICTURED,
    Candidate,
    PlannedDocuments,
    candidates,
    compare,
    rows_to_draw,
    spread_rows,
    tallied,
)
from packtool.report.tables import caveats
from packtool.report.terminal import print_stats
from packtool.report.types import Comparison
from tests.segments import segments
from tests.stores import write_store

LENGTHS = np.random.default_rng(3).lognormal(3, 1, 600).astype(np.int64) + 2


def test_a_large_corpus_is_sampled_unless_all_of_it_is_wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", LENGTHS.tolist())

    def compared(**options: Any) -> Comparison:
        return packtool.stats(store, compare="all", sequence_length=64, buckets=[16, 64], **options).comparison

    whole = compared()
    assert whole.sampled_documents is None
    monkeypatch.setattr(comparing, "EXACT", 599)
    monkeypatch.setattr(comparing, "SAMPLE", 200)
    assert msgspec.structs.replace(compared(exact=True), timings=[]) == msgspec.structs.replace(whole, timings=[])
    sampled = compared()
    assert sampled.sampled_documents == 200
    some = comparing.drawn(600, 200)
    assert (np.diff(some) > 0).all()
    assert {entry.metrics.documents for entry in sampled.entries} == {200}
    assert {entry.ledger.input for entry in sampled.entries} == {int(LENGTHS[some].sum()) - 200}
    said = "Planned on a sample of 200 documents, spread evenly over all: shares hold for all of them, "
    assert caveats(sampled)[0].startswith(said)
    out = io.StringIO()
    print_stats(packtool.stats(store, compare="concat", sequence_length=64), Console(file=out, width=200))
    assert said in out.getvalue()
    assert caveats(whole) == []
    monkeypatch.setattr(comparing, "EXACT", 600)
    assert compared().sampled_documents is None


def test_passes_of_a_sample_end_where_their_documents_do() -> None:
    passes = PlannedDocuments(np.arange(1, 101), [30, 100]).sample(10)
    assert passes.ends == [3, 10]
    assert passes.lengths[2] <= 30 < passes.lengths[3]


def test_atoms_below_a_row_are_in_the_order_of_pack() -> None:
    short, whole = (candidates(["concat"], [64], {"atom_size": size})[0].options for size in (16, 64))
    counted = [tallied(LENGTHS, plan("concat", LENGTHS, each))[0].documents_in_row for each in (short, whole)]
    # Short atoms of many documents are joined, so rows hold more of them.
    assert counted[0] @ np.arange(65) > counted[1] @ np.arange(65)


def test_what_a_worker_sends_is_what_is_found_here() -> None:
    lengths = np.random.default_rng(0).integers(1, 300, 2000)
    tried = candidates(["all"], [128])

    class Elsewhere(Processes):
        def run(self, function: Any, tasks: Any, *_: Any) -> Any:
            for number, task in enumerate(tasks):
                sent = pickle.dumps(function(task, Worker()))
                assert len(sent) < 60_000, "the lengths stay where they are"
                yield number, pickle.loads(sent)

    twice = np.concatenate([lengths, lengths[1000:]])
    passes = PlannedDocuments(twice, [len(lengths), len(twice)])
    for documents, each in ((lengths, None), (np.sort(twice), passes)):
        here = compare(documents, tried, passes=each)
        there = compare(documents, tried, passes=each, engine=Elsewhere(2))
        assert msgspec.structs.replace(here, timings=[]) == msgspec.structs.replace(there, timings=[])


def test_every_strategy_is_tried_once_at_each_row_length() -> None:
    given = {"extra_capacity": 5, "max_repetition": Fraction(1, 10), "buckets": (32, 64)}
    found = candidates(["all", "concat"], [32, 64, 32], given)
    tried = [(each.strategy.name, each.options.sequence_length) for each in found]
    assert len(set(tried)) == len(tried)
    several = {name for name, strategy in STRATEGIES.items() if "sequence_length" not in strategy.accepts}
    assert {name for name, size in tried if size is None} == several == {"buckets", "length-buckets"}
    assert len(tried) == 2 * (len(STRATEGIES) - 2) + 2
    for each in found:
        accepts = each.strategy.accepts
        for option, value in given.items():
            default = getattr(PackOptions(), option)
            assert getattr(each.options, option) == (value if option in accepts else default)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_the_command_gives_the_options_tried(name: str) -> None:
    given: dict[str, Any] = {
        "extra_capacity": 7,
        "max_repetition": Fraction(1, 5),
        "padding_threshold": Fraction(1, 20),
        "buckets": (32, 64),
        "min_bucket": 4,
        "atom_size": 16,
    }
    (tried,) = candidates([name], [64], {k: v for k, v in given.items() if k in STRATEGIES[name].accepts})
    words = tried.arguments()
    typed: dict[str, Any] = dict(zip((w[2:].replace("-", "_") for w in words[::2]), words[1::2], strict=True))
    recipe = PackRecipe.of(checked(PackArguments("store", "packed", **typed)))
    assert recipe.strategy.name == name
    assert all(getattr(recipe.options, option) == getattr(tried.options, option) for option in declared(PackOptions))


@pytest.mark.parametrize(
    ("names", "given", "message"),
    [
        (["concat"], {"extra_capacity": 5}, "extra_capacity: none of the strategies compared takes this"),
        (["best"], {}, "there is no strategy 'best'"),
        (["bfd-extra"], {"extra_capacity": 64}, r"extra_capacity: 64 is out of range"),
    ],
)
def test_refuses_what_makes_no_sense(names: list[str], given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        candidates(names, [64], given)


def one_a_row(first: int, last: int) -> Segments:
    """Row n holds document n, whole."""
    return segments([[(row, 0, 4, 0)] for row in range(first, last)])


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
    rows = rows_to_draw(
        lengths, Candidate(STRATEGIES["buckets"], PackOptions(buckets=(8, 32), padding_threshold=Fraction(1, 2)))
    )
    assert rows.groups == PICTURED
    assert rows.tokens().tolist() == [32] * PICTURED


FEW = np.array([3, 9, 40, 17, 5, 64, 2, 30] * 20)


def test_attention_is_a_share_of_that_of_the_joined_stream() -> None:
    found = compare(FEW, candidates(["concat"], [32, 64]))
    base = found.attention_baseline
    tokens = int(FEW.sum())
    for entry in found.entries:
        rows = -(-tokens // entry.sequence_length)
        pairs = rows * entry.sequence_length * (entry.sequence_length + 1) // 2
        assert entry.attention == pytest.approx(pairs / (-(-tokens // base) * base * (base + 1) // 2))
