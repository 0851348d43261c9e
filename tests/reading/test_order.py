"""The samples of a blend: the same for any number of ranks, from any state; the future may change, the past may not."""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.blending.dealing import BLOCK
from packtool.errors import DataError, UsageError
from packtool.reading.batches import GlobalBatches
from packtool.reading.order import BlendOrder
from packtool.reading.sharing import MicroBatch
from packtool.reading.state import restore
from packtool.reading.stream import Stream
from packtool.warnings import PacktoolWarning
from tests.making import Make, drawn_lengths
from tests.reading.opening import batch_of, sources_of, stopped

SIZES = {"web": 600, "code": 260, "chat": 120}
ROWS = 12_000
WEIGHTS = [
    {"weights": {"web": 0.5, "code": 0.4, "chat": 0.1}},
    {"from": "60%", "ramp": True, "weights": {"web": 0.1, "chat": 0.9}},
]


@pytest.fixture(scope="module")
def sources(make: Make) -> dict[str, Any]:
    return sources_of(make, SIZES, web={"seed": 0}, code={"seed": 1}, chat={"seed": 2})


def stream_of(sources: dict[str, Any], stages: Any = WEIGHTS, rows: int = ROWS, **options: Any) -> Stream:
    return Stream(packtool.Blend(sources, stages, rows=rows), **options)


def dealt(stream: Stream) -> BlendOrder:
    assert isinstance(stream.order, BlendOrder)
    return stream.order


Read = list[tuple[str, int]]
"""Rows in the order in which they are trained on: source, and which of its rows."""


def read(batches: GlobalBatches, steps: int | None = None) -> Read:
    """What a rank gets from here on, or in so many steps."""
    return [row for step in taken(batches, steps) for row in step]


def taken(batches: GlobalBatches, steps: int | None = None) -> Iterator[Read]:
    for number, turn in enumerate(batches):
        yield rows_of(batches.stream, turn)
        if number + 1 == steps:
            return


def rows_of(stream: Stream, turn: MicroBatch) -> Read:
    """The source of each row of a turn, and which of its rows that is, counted through its epochs."""
    out = []
    for number, epoch, _, row in turn.addresses.tolist():
        out.append((stream.names[number], stream.source(number).begin_of(epoch) + row))
    return out


def each_once(rows: Read, before: dict[str, int] | None = None) -> None:
    """The rows of each source one after the other, each once, from those before on."""
    for name in {name for name, _ in rows}:
        mine = [row for each, row in rows if each == name]
        first = (before or {}).get(name, 0)
        assert mine == list(range(first, first + len(mine)))


def test_the_rows_are_those_of_the_sequence(sources: dict[str, Any]) -> None:
    """Also those that a worker is asked for, in its copy; and each field where no other is asked for."""
    stream, rows = stream_of(sources), packtool.open(packtool.Blend(sources, WEIGHTS, rows=ROWS))
    samples = [0, 4095, 4096, 7200, 11_999, 17]
    batch, same = batch_of(pickle.loads(pickle.dumps(stream)), samples), rows.batch(samples)
    assert set(batch) == set(same)
    for name, value in batch.items():
        assert np.array_equal(value, same[name])  # type: ignore[literal-required,arg-type]
        some = batch_of(stream_of(sources, fields=(name,)), samples)
        assert set(some) == {name}
        np.testing.assert_array_equal(some[name], value)  # type: ignore[literal-required,call-overload]
    assert len(batch_of(stream, [])["source"]) == 0


def test_documents_at_multiples(make: Make) -> None:
    (path,) = sources_of(make, {"web": 600}, web={"document_multiple": 4}).values()
    alone = packtool.open(path).epoch(0).batch(range(10))
    batch = batch_of(stream_of({"web": path}, (), rows=50), range(10))
    assert set(batch) == {*alone, "source"}
    assert np.array_equal(batch["cu_seqlens_padded"], alone["cu_seqlens_padded"])
    rows = packtool.open(packtool.Blend({"web": path}, rows=50))
    same = rows.batch(range(10), pad_cu_seqlens=16)
    assert set(same) == set(batch)
    assert same["cu_seqlens_padded"][: len(batch["cu_seqlens_padded"])].tolist() == batch["cu_seqlens_padded"].tolist()
    assert len(same["cu_seqlens"]) == len(same["cu_seqlens_padded"]) == 10 * 16 + 1


CHANGED: list[dict[str, Any]] = [
    WEIGHTS[0],
    {"from": "5000 rows", "weights": {"web": 0.2, "code": 0.2, "chat": 0.6}},
    {"from": "8000 rows", "ramp": True, "weights": {"web": 1}},
]


def stopped_at(sources: dict[str, Any], samples: int, stages: Any = WEIGHTS) -> tuple[Read, dict[str, str]]:
    batches = GlobalBatches(stream_of(sources, stages), 50)
    return read(batches, samples // 50), batches.state_dict()


@pytest.mark.parametrize("stages", [CHANGED, [WEIGHTS[0]]])
@pytest.mark.parametrize("samples", [50, 4950, 5000])
def test_another_future(sources: dict[str, Any], samples: int, stages: Any) -> None:
    """Every source goes on where it was; shares are of the new weights after the next block."""
    before, state = stopped_at(sources, samples)
    stream = stream_of(sources, stages, rows=15_000)
    batches = GlobalBatches(stream, 50)
    batches.load_state_dict(state)
    rows = batches.rows
    assert rows == {name: [each for each, _ in before].count(name) for name in stream.names}
    after = read(batches)
    assert len(before) + len(after) == 15_000
    each_once([*before, *after])
    each_once(after, rows)
    whole = dealt(stream).schedule.rows(15_000)
    for number, name in enumerate(stream.names):
        assert abs(len([1 for each, _ in [*before, *after] if each == name]) - whole[number]) <= 1.1


def test_more_epochs_than_allowed_are_refused(sources: dict[str, Any]) -> None:
    """Of weights that are given while training, and of a state that has them."""
    rows = len(packtool.open(sources["code"]))
    limited = {**sources, "code": {"path": sources["code"], "max_epochs": 4000 // rows}}
    free, bound = (GlobalBatches(stream_of(given), 50) for given in (sources, limited))
    for batches in (free, bound):
        read(batches, 3)
    free.reweight({"code": 1})
    again = stream_of(limited)
    for refused_by in (lambda: bound.reweight({"code": 1}), lambda: restore(again, free.state_dict())):
        with pytest.raises(UsageError, match=r"the run takes [\d,]+ rows of code, "):
            refused_by()


def test_sources_come_and_go(sources: dict[str, Any]) -> None:
    first = [{"weights": {"web": 1, "code": 1}}]
    two = {name: sources[name] for name in ("web", "code")}
    before, state = stopped_at(two, 3000, first)
    gone = {"code": sources["code"], "chat": sources["chat"], "web": {}}
    stages = [*first, {"from": "3000 rows", "weights": {"code": 1, "chat": 3}}]
    stream = stream_of(gone, stages)
    batches = GlobalBatches(stream, 50)
    batches.load_state_dict(state)
    after = read(batches, 100)
    each_once([*before, *after])
    assert {name for name, _ in after} == {"code", "chat"}
    again = GlobalBatches(stream_of(gone, stages), 50)
    again.load_state_dict(batches.state_dict())
    rest = read(again)
    each_once([*before, *after, *rest])
    assert rest == read(batches)
    again.position.reset()
    with pytest.raises(
        UsageError, match=r"blend: sample 0 lies before 3,000, from where the blend was changed\. Begin"
    ):
        read(again)
    with pytest.raises(UsageError, match=r"web has no path\. Give it one, or resume from a state in which its rows"):
        batch_of(stream_of(gone, stages), [0])
    with pytest.raises(DataError, match=r"the state has 1,500 rows of web, which the blend no longer names\. Name it"):
        restore(stream_of({"code": sources["code"]}, ()), state)


def refused(stream: Stream, state: Any) -> str:
    with pytest.raises(DataError) as caught:
        restore(stream, state)
    return str(caught.value)


def test_another_past_is_refused(sources: dict[str, Any]) -> None:
    _, state = stopped_at(sources, 9000)
    other = [{"weights": {"web": 0.5, "code": 0.3, "chat": 0.2}}, WEIGHTS[1]]
    remedy = "Write this stage in rows, as it was, and change what comes after."
    for stream, message in [
        (
            stream_of(sources, other),
            "stages[0]: the checkpoint trained samples 0 to 7200 with chat 0.1, code 0.4, web 0.5; now it is samples 0 "
            f"to 7200 with chat 0.2, code 0.3, web 0.5. {remedy}",
        ),
        (
            stream_of(sources, rows=ROWS + 1000),  # 60% begins elsewhere
            "stages[0]: the checkpoint trained samples 0 to 7200 with chat 0.1, code 0.4, web 0.5; now it is samples 0 "
            f"to 7800 with chat 0.1, code 0.4, web 0.5. {remedy}",
        ),
        (
            stream_of(sources, [WEIGHTS[0], {**WEIGHTS[1], "weights": {"chat": 1}}]),
            "stages[1]: the checkpoint trained samples 7200 to 9000 with chat 0.1 to 0.4, code 0.4 to 0.25, web 0.5 to "
            "0.35; now it is samples 7200 to 9000 with chat 0.1 to 0.4375, code 0.4 to 0.25, web 0.5 to 0.3125. "
            f"{remedy}",
        ),
        (
            stream_of(sources, rows=8000),
            "blend: 9,000 samples are consumed, but the run has 8,000. Make it longer in the blend.",
        ),
    ]:
        assert refused(stream, state) == message
    fixed = [WEIGHTS[0], {"from": "7200 rows", "ramp": "12000 rows", "weights": WEIGHTS[1]["weights"]}]
    assert restore(stream_of(sources, fixed, rows=20_000), state) == 9000


def test_other_weights_while_training(sources: dict[str, Any]) -> None:
    """From the next block on, until the blend's next stage; in the state, so that it resumes without being told."""
    batches = GlobalBatches(stream_of(sources), 50)
    before = read(batches, 30)
    assert batches.reweight({"code": 1, "chat": 1}) == BLOCK
    assert isinstance(batches.stream.order, BlendOrder)
    assert batches.stream.order.added[0].reached is None, "at once"
    state = batches.state_dict()
    after = read(batches)
    whole = [*before, *after]
    each_once(whole)
    held = [name for name, _ in whole[BLOCK:7200]]
    assert set(held) == {"code", "chat"}
    assert abs(held.count("code") - (7200 - BLOCK) / 2) <= 2
    assert "web" in [name for name, _ in whole[9000:]]
    again = GlobalBatches(stream_of(sources), 25, rank=1, world_size=5)
    again.load_state_dict(json.loads(json.dumps(state)))
    assert read(again) == whole[1500:][1::5]
    late = GlobalBatches(stream_of(sources), 50)
    late.load_state_dict(json.loads(json.dumps(batches.state_dict())))  # the added stage is past
    assert late.consumed == ROWS


@pytest.mark.parametrize(
    ("steps", "weights", "message"),
    [
        (3, {"coed": 1}, "weights: there is no source 'coed'. Did you mean code?"),
        (3, {"code": -1}, "weights.code: a weight can't be -1. Give a number of 0 or more."),
        (3, {"code": 0}, "weights: all weights are zero. Give a source a weight."),
        (239, {"code": 1}, "blend: the run ends before the next block. Make it longer in the blend."),
    ],
)
def test_weights_that_make_no_sense(sources: dict[str, Any], steps: int, weights: Any, message: str) -> None:
    batches = GlobalBatches(stream_of(sources), 50)
    read(batches, steps)
    state = batches.state_dict()
    with pytest.raises(UsageError) as caught:
        batches.reweight(weights)
    assert str(caught.value).startswith(message)
    assert batches.state_dict() == state


def test_after_the_run_loops_are_empty(sources: dict[str, Any]) -> None:
    """With one warning; a trainer that begins one empty loop after another is ended. A longer run goes on."""
    batches = GlobalBatches(stream_of(sources, WEIGHTS[:1], rows=520), 50)
    whole = read(batches)
    assert (len(whole), batches.consumed, batches.left_out) == (500, 500, 20)
    with pytest.warns(
        PacktoolWarning, match=r"blend: the run ended with its 520 rows, so this loop is empty\. Make it"
    ):
        assert read(batches) == []
    batches.set_epoch(3)
    assert (len(batches), batches.remaining, read(batches)) == (10, 0, [])
    state = batches.state_dict()
    with pytest.raises(UsageError, match=r"blend: the run ended with its 520 rows\. Make it longer in the blend\."):
        for _ in range(10_000):
            read(batches)
    longer = GlobalBatches(stream_of(sources, WEIGHTS[:1], rows=700), 50)
    longer.load_state_dict(state)
    each_once([*whole, *read(longer)])
    assert longer.consumed == 700
    with pytest.raises(UsageError, match=r"samples: 30 are to be skipped, but the run has 20 left\. Skip fewer\."):
        batches.position.skip(30)


@pytest.mark.parametrize("options", [{"epochs": 2}, {"shuffle": False}, {"seed": 3}, {"repack": True}])
def test_what_a_blend_says_itself(sources: dict[str, Any], options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(UsageError, match=f"^{name}: a blend says this itself, of each source. Write it in the blend"):
        stream_of(sources, **options)
    with pytest.raises(UsageError, match="no such option"):
        stream_of(sources, lables="same")
    with pytest.raises(UsageError, match=r"weights: not a blend\. Give the loader a blend\."):
        GlobalBatches(Stream(sources["web"]), 4).reweight({"web": 1})


def test_row_lengths_in_turn(make: Make) -> None:
    options = {"strategy": "decompose", "sequence_length": 64, "min_bucket": 16}
    rows = make(drawn_lengths(300, 119, 8), rows=options) / "rows"
    stages = [{"weights": {"16": 1, "32": 0}}, {"from": "40%", "weights": {"32": 1, "64": 1}}]
    blend = packtool.Blend({"all": rows}, stages, batch_tokens=128)
    stream = Stream(blend, epochs=2, fields=("input_ids",))
    batches = GlobalBatches(stream, rank=1, world_size=2)
    widths = [stream.batch(turn.addresses, turn.length)["input_ids"].shape[1] for turn in batches]
    table = packtool.open(blend).batches["bucket"].tolist()
    assert widths[: len(table)] == table
    assert len(widths) == 2 * len(table)
    state = stopped(batches)
    assert "order: computed, row lengths by weights" in refused(Stream(rows, batch_tokens=128), state)
    stages[0]["weights"] = {"16": 1, "32": 1}
    other = Stream(packtool.Blend({"all": rows}, stages, batch_tokens=128))
    assert "from a run with other weights of row lengths, which place every batch of an" in refused(other, state)
    with pytest.raises(UsageError, match="seed: a blend says this itself, of each source"):
        Stream(blend, seed=3)


def test_a_row_length_is_used_up_on_a_ramp(make: Make) -> None:
    rows = make([8] * 10 + [16] * 5, rows={"strategy": "length-buckets", "buckets": [8, 16]}) / "rows"
    stages: list[dict[str, Any]] = [
        {"weights": {"8": 2, "16": 2}},
        {"from": "96 tokens", "ramp": "128 tokens", "weights": {"8": 1, "16": 5}},
        {"from": "144 tokens", "ramp": True, "weights": {"8": 1, "16": 2}},
    ]
    table = packtool.open(packtool.Blend({"all": rows}, stages, batch_tokens=16)).batches
    assert sorted(table["bucket"].tolist()) == [8] * 5 + [16] * 5
    none = packtool.Blend({"all": rows}, stages, batch_tokens=160)
    with pytest.raises(UsageError, match="batch_tokens: a batch of 1 sample is more than the 0 of a pass"):
        GlobalBatches(Stream(none, drop_rest=True))


@pytest.mark.parametrize("rows", [0, 4000])
@pytest.mark.parametrize("micro", [None, 16])
def test_reading_ahead_changes_nothing_of_other_weights(sources: dict[str, Any], rows: int, micro: int | None) -> None:
    """Whenever weights are changed, they hold from the block after what was handed out, not after what was read."""
    for steps in (1, 3, 80, 81, 82, 83, 90, 143, 144, 145, 163):  # of 50 rows: some batches lie in two blocks
        batches = GlobalBatches(stream_of(sources), 50, micro_batch_size=micro)
        consumed = 0
        for turn in (turn for group in batches.grouped(batches.begin(), rows) for turn in group):
            consumed = turn.consumed
            if consumed == 50 * steps:
                break
        ends = (BLOCK, 7200, 2 * BLOCK)  # the ramp begins at 7,200
        assert batches.reweight({"chat": 1}) == min(end for end in ends if end >= consumed)


def test_other_weights_before_the_first_batch(sources: dict[str, Any]) -> None:
    """They take the place of the first stage's, and a ramp begins at those."""
    for ramp, expected in ((0, 1.0), (BLOCK, 0.4 + 0.6 / 2)):
        batches = GlobalBatches(stream_of(sources), 50)
        assert batches.reweight({"code": 1}, ramp_rows=ramp) == 0
        state = batches.state_dict()
        rows = read(batches)
        each_once(rows)
        share = [name for name, _ in rows[:BLOCK]].count("code") / BLOCK
        assert abs(share - expected) < 0.001
        again = GlobalBatches(stream_of(sources), 50)
        again.load_state_dict(state)
        assert read(again) == rows
    for wrong in (-1, 1.5, True, "9"):
        with pytest.raises(UsageError, match=rf"ramp_rows: {wrong!r} is no whole number from 0\. Give 0 or more\."):
            batches.reweight({"code": 1}, ramp_rows=wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"weights\.code: 1e-30 has too many digits\. Give a weight of at most 18"):
        batches.reweight({"code": 1e-30, "web": 1})


def test_a_source_without_rows_has_no_weight(sources: dict[str, Any], make: Make) -> None:
    none = make([3], none={"strategy": "concat", "sequence_length": 16, "remainder": "drop"}) / "none"
    assert len(packtool.open(none)) == 0
    with pytest.raises(UsageError, match=r"none: the dataset has no rows\. Check what it was packed from"):
        Stream(none)
    both = {"none": none, "web": sources["web"]}
    message = "none has a weight, but no rows. Give it the weight 0, or take it out of the blend."
    with pytest.raises(UsageError) as caught:
        stream_of(both, [{"weights": {"web": 1, "none": 0.1}}], rows=50)
    assert str(caught.value) == f"stages[0].weights.none: {message}"
    batches = GlobalBatches(stream_of(both, [{"weights": {"web": 1, "none": 0}}], rows=5000), 50)
    assert {name for name, _ in read(batches, 3)} == {"web"}
    with pytest.raises(UsageError) as caught:
        batches.reweight({"none": 1, "web": 2})
    assert str(caught.value) == f"weights: {message}"
    by_size = GlobalBatches(Stream(packtool.Blend(both)), drop_last=False)
    assert len(read(by_size)) == len(packtool.open(sources["web"]))


def test_a_size_of_batches_that_the_blend_says(sources: dict[str, Any]) -> None:
    def made(given: dict[str, Any], **written: Any) -> GlobalBatches:
        blend = packtool.Blend(sources, WEIGHTS, rows=ROWS, **written)
        size = given.pop("batch_size", None)
        return GlobalBatches(Stream(blend, **given), size)

    for written in ({"batch_size": 40}, {"batch_tokens": 640}, {"batch_size": 40, "batch_tokens": 640}):
        for given in ({}, {"batch_size": 40}, {"batch_tokens": 640}):
            assert made(dict(given), **written).batch_size == 40
    for given, written, message in [
        (
            {"batch_size": 8},
            {"batch_size": 40},
            "batch_size: 8 rows, but blend says batch-size = 40. Give one of the two",
        ),
        (
            {"batch_size": 8},
            {"batch_tokens": 640},
            "batch_size: 8 rows, but the batch-tokens of blend make 40. Give one",
        ),
        ({"batch_tokens": 160}, {"batch_size": 40}, "batch_tokens: it makes 10 rows, but blend says batch-size = 40."),
        ({}, {"batch_size": 40, "batch_tokens": 160}, "blend: batch-size is 40, but batch-tokens make 10 rows. Leave"),
        ({}, {"batch_tokens": 100}, "blend: batch-tokens: 100 is not a multiple of the 16 tokens of a row."),
    ]:
        with pytest.raises(UsageError) as caught:
            made(given, **written)
        assert str(caught.value).startswith(message)


def test_other_weights_while_rows_are_dealt_by_their_costs(sources: dict[str, Any]) -> None:
    """Batches are planned ahead, but none beyond the block after which other weights may hold."""

    def steps(balance: Any) -> list[Read]:
        ranks = [GlobalBatches(stream_of(sources), 50, rank=rank, world_size=2, balance=balance) for rank in range(2)]
        found = []
        for number, turns in enumerate(zip(*ranks, strict=True)):
            found.append(sorted(row for turn in turns for row in rows_of(ranks[0].stream, turn)))
            if number == 29:
                assert [rank.reweight({"chat": 1}) for rank in ranks] == [BLOCK, BLOCK]
        return found

    plain = steps(None)
    assert {name for step in plain[BLOCK // 50 + 1 : 7200 // 50] for name, _ in step} == {"chat"}
    assert steps("step") == plain
