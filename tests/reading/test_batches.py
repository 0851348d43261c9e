"""The global order of samples: the same for any number of ranks, and after stopping anywhere."""

import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import packtool
from packtool.errors import DataError, UsageError
from packtool.reading.batch import KNOWN
from packtool.reading.batches import GlobalBatches
from packtool.reading.sharing import MicroBatch
from packtool.reading.stream import ROW, Stream
from tests.examples import examples
from tests.making import Make, drawn_lengths
from tests.reading.opening import numbers, opened, stopped


def test_a_batch_of_a_bucket_may_not_have_a_row_for_every_rank(rows: Path) -> None:
    batches = GlobalBatches(Stream(rows.parent / "buckets", epochs=2, batch_tokens=128), rank=0, world_size=3)
    with pytest.raises(UsageError, match=r"batch_tokens: batch \d+ has \d rows, which can't be divided evenly among 3"):
        list(batches)


BUCKETS = {"batch_tokens": 128}
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("rows", {}, {"batch_size": 0}, "batch_size: 0 is not a positive whole number"),
    ("rows", {}, {"batch_size": 8.0}, "batch_size: 8.0 is not a positive whole number"),
    ("rows", {}, {"batch_size": True}, "batch_size: True is not a positive whole number"),
    ("rows", {}, {"micro_batch_size": 0}, "micro_batch_size: 0 is not a positive whole number"),
    ("rows", {}, {"micro_batch_size": 2.0}, "micro_batch_size: 2.0 is not a positive whole number"),
    ("rows", {}, {"batch_size": 8, "world_size": 3}, "batch_size: 8 samples can't be divided evenly among 3 ranks"),
    ("rows", {}, {"rank": 2, "world_size": 2, "batch_size": 2}, "rank: 2 is not a rank of 2"),
    ("rows", {}, {"rank": True, "world_size": 2, "batch_size": 2}, "rank: True is not a rank of 2"),
    ("rows", {}, {"rank": 0, "world_size": 1.5, "batch_size": 2}, "rank: 0 is not a rank of 1.5"),
    ("rows", {}, {"balance": "ranks"}, "balance: unknown balance 'ranks'. Give 'step' or 'turn'"),
    ("rows", BUCKETS, {"batch_size": 8}, "batch_size: 8 rows, but batch_tokens make 4. Give one of the two"),
    ("buckets", BUCKETS, {"batch_size": 2}, "batch_size: the dataset's batches are the global batches"),
    ("rows", {"epochs": 0}, {}, "epochs: 0 is out of range"),
    ("rows", {"epochs": None}, {}, "epochs: None is out of range. Give 1 or more"),
    ("rows", {"epoch": 8}, {}, "epoch: no such option. Did you mean epochs?"),
    ("rows", {"label": 8}, {}, "label: no such option. Did you mean labels?"),
    ("rows", {"batch_tokens": 40}, {}, "batch_tokens: 40 is not a multiple of the 32 tokens of a row"),
    ("index", {"repack": True, "shuffle": False}, {}, "repack: an epoch that is packed anew has an order of its own"),
]
OF_A_BATCH: list[tuple[dict[str, Any], str]] = [
    ({"labels": "hf"}, "labels: 'hf' is not a kind of labels. Give 'next', or 'same' for a model that"),
    ({"fields": ["x"]}, f"fields: 'x' is not a field. Choose from {', '.join(KNOWN)}, column.NAME, or, in a data"),
    ({"labels": "same", "extra_token": True}, "extra_token: a model that shifts labels itself reads whole rows"),
]


@pytest.mark.parametrize(
    ("name", "options", "arguments", "message"),
    [*REFUSED, *(("rows", options, {}, message) for options, message in OF_A_BATCH)],
)
def test_what_makes_no_sense(
    rows: Path, name: str, options: dict[str, Any], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        GlobalBatches(Stream(rows.with_name(name), **options), **arguments)
    assert str(caught.value).startswith(message)
    if (options, message) in OF_A_BATCH:
        with pytest.raises(UsageError) as caught:
            opened(rows).batch([0], **options)
        assert str(caught.value).startswith(message)


def test_a_batch_that_no_pass_fills_is_refused(rows: Path) -> None:
    stream = Stream(rows, epochs=2)
    message = f"batch_size: a batch of {len(stream) + 1} samples is more than the {len(stream)} of a pass"
    with pytest.raises(UsageError, match=message):
        GlobalBatches(stream, len(stream) + 1)
    assert len(list(GlobalBatches(stream, len(stream)))) == 1
    assert len(list(GlobalBatches(stream, len(stream) + 1, drop_last=False))) == 1
    buckets = Stream(rows.parent / "buckets", batch_tokens=1 << 20, drop_rest=True)
    with pytest.raises(UsageError, match="batch_tokens: a batch of 1 sample is more than the 0 of a pass"):
        GlobalBatches(buckets)


Rows = list[list[list[int]]]
"""The addresses of the rows of some turns."""


def rows_of(turns: Iterable[MicroBatch]) -> Rows:
    return [turn.addresses.tolist() for turn in turns]


def test_only_a_loader_gets_rows_that_fill(rows: Path) -> None:
    stream = Stream(rows)
    ranks = len(stream) - 1  # the last batch has one row
    batches = GlobalBatches(stream, ranks, rank=1, world_size=ranks, drop_last=False, fill=True)
    assert [(len(batch.addresses), batch.filled) for batch in batches] == [(1, 0), (0, 0)]
    batches.position.reset()
    assert [(len(batch.addresses), batch.filled) for batch in batches.begin()] == [(1, 0), (1, 1)]


def test_an_epoch_stays_open_until_another_is_read(rows: Path) -> None:
    source = Stream(rows).source(0)
    first, again, other = source.epoch(1), source.epoch(1), source.epoch(2)
    assert first is again
    assert other is not first


def test_a_loop_is_moved_to_what_there_is(rows: Path) -> None:
    batches = GlobalBatches(Stream(rows), 8)
    batches.set_epoch(1)
    batches.load_state_dict(stopped(batches, 2))
    for number in (0, 2):
        with pytest.raises(UsageError, match=rf"set_epoch: epoch {number} has the samples .* is at {batches.consumed}"):
            batches.set_epoch(number)
    for wrong in (-1, 1.5, True, "1"):
        with pytest.raises(UsageError, match=rf"epoch: {wrong!r} is no whole number from 0\. Give 0 or more"):
            batches.set_epoch(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"samples: -8 is no whole number from 0\. Give 0 or more"):
        batches.position.skip(-8)


def test_a_loop_that_something_else_moved_on_raises_when_it_is_continued(rows: Path) -> None:
    stream = Stream(rows)
    state = stopped(GlobalBatches(stream, 8), 2)
    moves: list[Callable[[GlobalBatches], object]] = [
        lambda each: each.load_state_dict(state),
        lambda each: each.set_epoch(1),
        lambda each: each.position.skip(8),
        lambda each: next(iter(each)),
        lambda each: each.position.reset(),
    ]
    for move in moves:
        batches = GlobalBatches(stream, 8)
        loop = iter(batches)
        next(loop)
        move(batches)
        place = batches.consumed
        with pytest.raises(UsageError, match="loader: another loop, set_epoch, skip or load_state_dict has moved"):
            next(loop)
        assert batches.consumed == place


def test_a_rank_may_be_known_late_but_not_change_after_something_was_read(rows: Path) -> None:
    stream = Stream(rows)
    late = GlobalBatches(stream, 8)
    late.settle(1, 2)
    assert rows_of(late) == rows_of(GlobalBatches(stream, 8, rank=1, world_size=2))
    with pytest.raises(UsageError, match="rank: read as rank 1 of 2, but this process is rank 0 of 2 now"):
        late.settle(0, 2)
    with pytest.raises(UsageError, match="batch_size: 8 samples can't be divided evenly among 3 ranks"):
        GlobalBatches(stream, 8).settle(0, 3)


def test_a_state_names_dataset_order_and_seed(rows: Path, tmp_path: Path) -> None:
    """As many batches of another size, or without their rest, are other samples under the same numbers, too."""
    packtool.pack(rows.parent / "store", tmp_path / "other", strategy="concat", sequence_length=32, seed=7)
    streams = {
        "computed": Stream(rows),
        "seed 7": Stream(rows, seed=7),
        "stored": Stream(rows, shuffle=False),
        "dataset": Stream(tmp_path / "other", seed=42),
        "several": Stream(rows.parent / "buckets", batch_tokens=256),
        "of fewer tokens": Stream(rows.parent / "buckets", batch_tokens=128),
        "without the rest": Stream(rows.parent / "buckets", batch_tokens=256, drop_rest=True),
        "of the index": Stream(rows.parent / "index"),
        "repacked": Stream(rows.parent / "index", repack=True),
    }
    size = dict.fromkeys(("computed", "seed 7", "stored", "dataset", "of the index", "repacked"), 4)
    named = (
        "(items|dataset|order|seed|batch_tokens|drop_rest): .* in the state, .* in this loader|(no|has) batch_tokens"
    )
    for name, stream in streams.items():
        state = stopped(GlobalBatches(stream, size.get(name, 1)))
        for other, loader in streams.items():
            batches = GlobalBatches(loader, size.get(other, 1))
            if name == other:
                batches.load_state_dict(state)
                continue
            with pytest.raises(DataError, match=named):
                batches.load_state_dict(state)
    for name, other, message in [
        ("seed 7", "computed", r"seed: 7 in the state, 42 in this loader\. Resume with the dataset, ord"),
        ("repacked", "of the index", "order: repacked in the state, computed in this loader"),
    ]:
        with pytest.raises(DataError, match=message):
            GlobalBatches(streams[other], 4).load_state_dict(stopped(GlobalBatches(streams[name], 4)))


@examples(40, HealthCheck.function_scoped_fixture)
@given(data=st.data())
def test_balanced_batches_have_the_same_rows_and_states(rows: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(["rows", "index", "buckets"]))
    world = data.draw(st.sampled_from([1, 2, 4]), label="world size")
    drop = data.draw(st.booleans(), label="drop last")
    options: dict[str, Any] = {
        "world_size": world,
        "drop_last": drop,
        "micro_batch_size": data.draw(st.sampled_from([None, 1, 2])),
    }
    several: dict[str, Any] = {"batch_tokens": 256, "drop_rest": True} if path == "buckets" else {}
    stream = Stream(rows.parent / path, epochs=2, repack=path == "index", **several)
    size = 1 if several else data.draw(st.sampled_from([4, 8, 12]))
    way = data.draw(st.sampled_from(["step", "turn"]))
    skipped = GlobalBatches(stream)
    skipped.position.skip(data.draw(st.integers(0, len(stream))))
    state = skipped.state_dict()
    seen: list[dict[int, list[Any]]] = [{}, {}]
    for rank in range(world):
        sizes: list[list[tuple[int, int]]] = []
        for found, balance in zip(seen, (None, way), strict=True):
            batches = GlobalBatches(stream, size, rank=rank, balance=balance, **options)
            batches.load_state_dict(state)
            taken = []
            for turn in batches:  # all turns of a global batch lead up to its end
                found.setdefault(turn.ahead, []).extend(turn.addresses.tolist())
                taken.append((turn.ahead, len(turn.addresses)))
            sizes.append(taken)
        assert sizes[0] == sizes[1]
    plain, balanced = ({place: sorted(rows) for place, rows in each.items()} for each in seen)
    assert plain == balanced


@pytest.mark.parametrize("kind", ["rows", "small-atoms", "large-atoms"])
def test_a_row_costs_the_pairs_of_tokens_that_attend_to_each_other(
    packed: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    """Of stored rows, and of rows that are put together anew in every epoch; those that are stored are counted once."""
    items = len(opened(packed[kind]))
    expected = []
    for number in range(2):
        epoch = opened(packed[kind]).epoch(number)
        for row in range(items):
            expected.append(sum(int(n) * (int(n) + 1) // 2 for n in epoch.segments(row)["length"]))
    for _ in range(2):
        stream = Stream(packed[kind], epochs=2, cache=tmp_path)
        assert stream.pairs(stream.addresses(0, len(stream))).tolist() == expected
    assert len(list((tmp_path / "row-pairs").iterdir())) == 1  # of the rows as they are stored


def test_balanced_ranks_attend_equally_long(make: Make) -> None:
    lengths = np.minimum(np.random.default_rng(1).lognormal(3.5, 1.3, 3000).astype(int) + 1, 512).tolist()
    stream = Stream(make(lengths, rows={"strategy": "bfd", "sequence_length": 512}) / "rows")
    pairs = stream.pairs(stream.addresses(0, len(stream)))
    for way, worst in ((None, 0.15), ("step", 0.003)):
        ranks = [
            [
                pairs[turn.addresses[:, ROW]].sum()
                for turn in GlobalBatches(stream, 32, rank=rank, world_size=4, balance=way)  # type: ignore[arg-type]
            ]
            for rank in range(4)
        ]
        loads = np.array(ranks)
        found = (1 - loads.mean(axis=0) / loads.max(axis=0)).mean()
        assert (found > worst) if way is None else (found <= worst)


@pytest.mark.parametrize("rows_ahead", [0, 13])
def test_turns_without_rows_are_read_alone_at_first(rows: Path, rows_ahead: int) -> None:
    """Their global batches may have rows of different lengths, and a group is read with one length."""
    stream = Stream(rows)
    none = stream.addresses(0, 0)
    turns = [MicroBatch(none, 32, 1, 1), MicroBatch(none, 64, 2, 2)]
    assert list(GlobalBatches(stream, 1).grouped(turns, rows_ahead)) == [[turn] for turn in turns]


def test_turns_that_are_read_at_once(rows: Path) -> None:
    """One at first, then twice as many rows each time, up to a limit; alone where there is none."""
    stream = Stream(rows, epochs=20)
    batches = GlobalBatches(stream, 4, rank=1, world_size=2)
    groups = list(batches.grouped(batches.begin(), 13))
    assert [len(group) for group in groups][:6] == [1, 2, 4, 6, 6, 6]
    samples = numbers(stream, [turn for group in groups for turn in group])
    assert [sample for turn in samples for sample in turn] == list(range(1, len(batches) * 4, 2))
    alone = list(batches.grouped(batches.begin(), 0))
    assert [len(group) for group in alone] == [1] * len(batches)


def test_epochs_that_are_packed_anew_are_those_that_pack_writes(make: Make) -> None:
    """Those of the first pass, and those of the next; of windows so small that epochs differ in their rows."""
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "window_tokens": 400}
    packed = {f"{epoch}": {**options, "epoch": epoch} for epoch in range(4)}
    place = make(drawn_lengths(200, 59, 3), index={**options, "index_only": True}, **packed)
    epochs = [packtool.open(place / name)[:] for name in packed]
    assert len(set(map(len, epochs))) > 1
    for number, passes in ((4, 1), (2, 2)):
        stream = Stream(place / "index", epochs=number, repack=True)
        assert len(stream) == sum(map(len, epochs[:number]))
        turns = [turn.addresses for batches in [GlobalBatches(stream, 4, drop_last=False)] * passes for turn in batches]
        found = pickle.loads(pickle.dumps(stream)).batch(np.concatenate(turns))["input_ids"]
        assert np.array_equal(found, np.concatenate(epochs))
