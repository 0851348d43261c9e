"""How long ranks wait: against row-by-row sums, and what the command says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.plan import Segments, offsets_of
from packtool.report.page import page
from packtool.report.schema import MeasuredReport, StoreReport
from packtool.report.verdict import judge
from packtool.shuffling.balance import pairs_of, waiting_of
from packtool.storage.packed import PackedDataset
from tests.stores import write_store


def rows_of(pieces: list[list[int]]) -> Any:
    """Rows of documents of these lengths."""
    flat = np.array([length for row in pieces for length in row], np.int64)
    zeros = np.zeros(len(flat), np.int64)
    whole = Segments(zeros, zeros, flat, zeros, offsets_of(np.array([len(row) for row in pieces])))
    return lambda first, last: whole[first:last]


def test_by_hand() -> None:
    # Pairs 36, 20, 20, 12: ranks as dealt have rows 0, 2 and 1, 3; dealt evenly 0, 3 and 1, 2.
    rows = rows_of([[8], [4, 4], [4, 4], [2, 2, 2, 2]])
    found = waiting_of(rows, 4, 8, 2, 4, 0)
    assert found.dealt == pytest.approx(1 - 44 / 56)
    assert found.balanced == pytest.approx(1 - 44 / 48)
    assert found.turns_dealt == pytest.approx(1 - (28 + 16) / (36 + 20))
    assert found.turns_balanced == pytest.approx(1 - (28 + 16) / (36 + 20))
    assert found.least == pytest.approx(1 - 44 / 48)
    assert found.batches == 1
    linear = waiting_of(rows, 4, 8, 2, 4, 50)  # 50 x 8 for each row
    assert linear.dealt == pytest.approx(1 - (44 + 800) / (56 + 800))
    with pytest.raises(UsageError, match="--global-batch: 6 rows, but there are 4 of 8 tokens, so there is no global"):
        waiting_of(rows, 4, 8, 2, 6, 0)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lengths = np.minimum(np.random.default_rng(1).lognormal(3.5, 1.3, 3000).astype(int) + 1, 512).tolist()
    return write_store(tmp_path_factory.mktemp("waiting") / "store", lengths)


def test_stats_says_whether_it_matters(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=512)
    report = packtool.stats(tmp_path / "rows", ranks=4, global_batch=32)
    assert isinstance(report, MeasuredReport)
    (found,) = report.waiting
    pairs = []
    dataset = packtool.open(tmp_path / "rows")
    for row in range(len(dataset) // 32 * 32):
        table = dataset.segments(row)
        pairs.append(sum(int(n) * (int(n) + 1) // 2 for n in table["length"][table["document"] >= 0]))
    loads = np.array(pairs).reshape(-1, 8, 4).sum(axis=1)  # batches, ranks
    assert found.dealt == pytest.approx((1 - loads.mean(axis=1) / loads.max(axis=1)).mean())
    assert found.balanced < 0.002 < found.dealt
    words = judge(report)[-1].words
    assert words.startswith("With rows of 512 tokens, 4 ranks wait ")
    assert 'for the slowest; Loader(balance="step") makes that ' in words
    assert "What ranks do while a step lasts" in page(report)
    short = packtool.stats(tmp_path / "rows", ranks=4, global_batch=32, hidden_size=4096)
    assert isinstance(short, MeasuredReport)
    assert judge(short)[-1].words.endswith("for the slowest: it does not matter here.")
    as_measured = packtool.stats(tmp_path / "rows", ranks=4, global_batch=32, token_cost=5 * 4096)
    assert isinstance(as_measured, MeasuredReport)
    assert as_measured.waiting == short.waiting
    single = packtool.stats(tmp_path / "rows", ranks=32, global_batch=32)
    assert isinstance(single, MeasuredReport)
    assert judge(single)[-1].words.endswith("a rank has 1, too few to even out.")
    assert single.waiting[0].balanced == pytest.approx(single.waiting[0].least)


def test_stats_of_rows_of_several_lengths(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "rows", strategy="buckets", buckets=(128, 512))
    report = packtool.stats(tmp_path / "rows", ranks=2, global_batch=4)
    assert isinstance(report, MeasuredReport)
    assert {each.sequence_length: each.global_batch for each in report.waiting} == {128: 16, 512: 4}


def test_what_makes_no_sense(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=512)
    for options, message in [
        ({"ranks": 4}, r"--global-batch: needed to work out how long ranks wait\. Give --ranks and --global-batch"),
        ({"hidden_size": 64}, "--ranks: needed to work out how long ranks wait"),
        (
            {"ranks": 4, "global_batch": 32, "hidden_size": 64, "token_cost": 320},
            r"--token-cost: two costs of a token, since --hidden-size stands for one, too\. Give one of the two",
        ),
        ({"ranks": 3, "global_batch": 32}, "--global-batch: 32 rows can't be dealt out evenly to 3 ranks"),
    ]:
        with pytest.raises(UsageError, match=message):
            packtool.stats(tmp_path / "rows", **options)
    with pytest.raises(UsageError, match="--ranks: documents are on no rank before they are packed"):
        packtool.stats(store, ranks=2, global_batch=4)


def test_an_order_dealt_to_ranks(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=512)
    packtool.shuffle(tmp_path / "rows", tmp_path / "plain", epoch=1, order_only=True)
    packtool.shuffle(tmp_path / "rows", tmp_path / "dealt", epoch=1, order_only=True, ranks=4, global_batch=32)
    plain, dealt = (np.load(tmp_path / name / "order.npy") for name in ("plain", "dealt"))
    bucket = PackedDataset(tmp_path / "rows").buckets[0]
    waiting = []
    for order in (plain, dealt):
        pairs = pairs_of(bucket.segments_of(order))
        steps = [pairs[first : first + 32].reshape(-1, 4).sum(0) for first in range(0, len(order) - 31, 32)]
        waiting.append(1 - sum(each.mean() for each in steps) / sum(each.max() for each in steps))
    for first in range(0, len(plain), 32):
        assert sorted(plain[first : first + 32].tolist()) == sorted(dealt[first : first + 32].tolist())
    assert waiting[1] < 0.002
    assert waiting[0] > 0.05


def test_an_order_that_can_not_be_dealt(store: Path, tmp_path: Path) -> None:
    rows, atoms, bare = tmp_path / "rows", tmp_path / "atoms", tmp_path / "bare"
    packtool.pack(store, rows, strategy="bfd", sequence_length=512)
    packtool.pack(store, atoms, strategy="concat", sequence_length=512, atom_size=128)
    packtool.pack(store, bare, strategy="bfd", sequence_length=512, segments=False)
    for source, options, message in [
        (rows, {"ranks": 4, "global_batch": 32, "order_only": False}, "--ranks: only an order is dealt to ranks"),
        (rows, {"ranks": 4}, "--global-batch: needed to deal rows to ranks"),
        (rows, {"global_batch": 4}, "--ranks: needed to deal rows to ranks"),
        (rows, {"ranks": 4, "global_batch": 6}, "--global-batch: 6 rows can't be dealt out evenly to 4 ranks"),
        (atoms, {"ranks": 4, "global_batch": 32}, "its rows do not move one by one"),
        (bare, {"ranks": 4, "global_batch": 32}, "written with --no-segments"),
    ]:
        with pytest.raises(UsageError, match=message):
            packtool.shuffle(source, tmp_path / "order", **{"order_only": True, **options})


def test_a_comparison_has_the_waiting_of_the_rows_that_pack_writes(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=512)
    packed = packtool.stats(tmp_path / "rows", ranks=4, global_batch=32)
    report = packtool.stats(
        store, compare="bfd,concat,buckets", sequence_length=512, buckets=[128, 512], ranks=4, global_batch=32
    )
    assert isinstance(packed, MeasuredReport)
    assert isinstance(report, StoreReport)
    assert report.comparison is not None
    entries = {entry.strategy: entry.waiting for entry in report.comparison.entries}
    assert entries["bfd"] == packed.waiting
    assert len(entries["concat"]) == 1
    assert {each.sequence_length for each in entries["buckets"]} == {128, 512}
    assert "waiting where ranks meet once a step" in page(report)
    few = packtool.stats(store, compare="bfd", sequence_length=512, ranks=4, global_batch=4096)
    assert isinstance(few, StoreReport)
    assert few.comparison is not None
    assert few.comparison.entries[0].waiting == []
