"""States of loaders: one text, checked whole. One that is refused moves nothing; one that is taken is what it says."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
import xxhash

import packtool
from packtool.errors import DataError, UsageError
from packtool.reading.batches import GlobalBatches
from packtool.reading.state import KEY, LoaderState
from packtool.reading.stream import Stream
from tests.making import Make, drawn_lengths
from tests.reading.opening import sources_of, stopped

STAGES = [{"weights": {"web": 0.6, "code": 0.4}}, {"from": "30%", "ramp": "70%", "weights": {"web": 0.2, "code": 0.8}}]
FUTURE = [STAGES[0], {"from": "2000 rows", "weights": {"web": 1, "code": 7}}]
ROWS = 9000


@pytest.fixture(scope="module")
def place(make: Make) -> dict[str, Path]:
    """Datasets by name."""
    several = make(drawn_lengths(90, 29), several={"strategy": "buckets", "buckets": (8, 16, 32)}) / "several"
    return {**sources_of(make, {"web": 90, "code": 60, "chat": 40}, code={"index_only": True}), "several": several}


def blend(place: dict[str, Path], stages: Any = STAGES, rows: int = ROWS) -> packtool.Blend:
    names = {name for stage in stages for name in stage["weights"]}
    return packtool.Blend({name: place[name] for name in names}, stages, rows=rows)


def kinds(place: dict[str, Path]) -> dict[str, Callable[[], GlobalBatches]]:
    """Loaders of every kind."""
    return {
        "dataset": lambda: GlobalBatches(Stream(place["web"], epochs=2), 4),
        "stored": lambda: GlobalBatches(Stream(place["web"], shuffle=False), 5, drop_last=False),
        "repacked": lambda: GlobalBatches(Stream(place["code"], repack=True, seed=7), 4),
        "several": lambda: GlobalBatches(Stream(place["several"], batch_tokens=64, drop_rest=True), micro_batch_size=3),
        "blend": lambda: GlobalBatches(Stream(blend(place)), 20),
        "reweighted": lambda: reweighted(GlobalBatches(Stream(blend(place)), 20)),
        "changed": lambda: changed(place),
    }


def reweighted(batches: GlobalBatches) -> GlobalBatches:
    list(islice(batches, 3))
    batches.reweight({"code": 3, "web": 0.5}, ramp_rows=500)
    return batches


def changed(place: dict[str, Path]) -> GlobalBatches:
    """Resumed into another future, so that dealing began anew."""
    batches = GlobalBatches(Stream(blend(place, FUTURE)), 20)
    batches.load_state_dict(stopped(GlobalBatches(Stream(blend(place)), 20), 90))
    list(islice(batches, 25))
    return batches


def rest_of(batches: GlobalBatches) -> list[Any]:
    """What comes next: the rest of this pass, and the begin of the next."""
    turns = [*batches, *islice(batches, 2)] if batches.stream.order.endless else list(batches)
    return [(turn.addresses.tolist(), turn.length, turn.consumed) for turn in turns]


@pytest.mark.parametrize("kind", ["dataset", "stored", "repacked", "several", "blend", "reweighted", "changed"])
@pytest.mark.parametrize("where", ["begin", "inside", "skipped", "end", "asked"])
@pytest.mark.filterwarnings("ignore:.*the run ended with its")
def test_a_state_survives_whatever_keeps_it(place: dict[str, Path], kind: str, where: str) -> None:
    """In a new loader, through JSON, pickle and a copy of what a new loader's state holds."""
    make, blends = kinds(place)[kind], {"reweighted": blend(place), "changed": blend(place, FUTURE)}
    batches = make()
    turns = {"begin": 0, "inside": 5, "skipped": 2, "end": batches.remaining, "asked": 10**6}[where]
    state = stopped(batches, turns)
    if where == "skipped":
        batches.position.skip(8)
        state = batches.state_dict()
    assert state.keys() == make().state_dict().keys() == {KEY}
    expected = rest_of(batches)
    for kept in (json.loads(json.dumps(state)), pickle.loads(pickle.dumps(state)), dict(state)):
        again = GlobalBatches(Stream(blends[kind]), 20) if kind in blends else make()
        again.load_state_dict(kept)
        assert again.state_dict() == state
        assert again.rows == json.loads(state[KEY])["rows"]
        assert rest_of(again) == expected


WRONG: list[Any] = [None, True, 0, 1, -1, 1 << 52, 1 << 53, 1 << 70, 1.5, 19.0, "", "19.5", "1e999999999", [], [1], {}]


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a state, as keys and indices."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from places_in(item, (*path, key))


def damaged(state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """States in which one place has another value, is gone, or has a neighbour that does not belong there."""
    for path in places_in(state):
        if path == ("sum",):
            continue
        for value in (*WRONG, "gone", "beside"):
            other = copy.deepcopy(state)
            holder = other
            for key in path[:-1]:
                holder = holder[key]
            if value == "gone":
                del holder[path[-1]]
            elif value == "beside" and isinstance(holder, dict):
                holder["new"] = 5
            else:
                holder[path[-1]] = value
            yield other


def mended(state: dict[str, Any]) -> str:
    """The text of a state with the checksum that it would have."""
    text = json.dumps({**state, "sum": ""}, separators=(",", ":"))
    with suppress(msgspec.MsgspecError):  # types that are wrong are refused before the checksum is looked at
        text = msgspec.json.encode(msgspec.json.decode(text, type=LoaderState)).decode()
    return text.replace('"sum":""', f'"sum":"{xxhash.xxh3_64_hexdigest(text.encode())}"')


def meaning(batches: GlobalBatches) -> dict[str, Any]:
    state = json.loads(batches.state_dict()[KEY])
    return {name: state[name] for name in ("samples", "rows", "added")}


@pytest.mark.parametrize("kind", ["dataset", "repacked", "several", "reweighted", "changed"])
def test_damage_is_refused_or_is_another_state(place: dict[str, Path], kind: str) -> None:
    """Whatever value stands in whatever place: with the old checksum always refused, and nothing moves."""
    source, target = (kinds(place)[kind]() for _ in range(2))
    state = json.loads(stopped(source, 7)[KEY])
    tried = 0
    before = target.state_dict()
    for other in damaged(state):
        for text in (json.dumps({**other, "sum": state["sum"]}), mended(other)):
            tried += 1
            try:
                target.load_state_dict({KEY: text})
            except (DataError, UsageError) as error:
                assert error.code in ("bad-state", "state-differs", "source-exhausted"), error  # noqa: PT017
                assert target.state_dict() == before
            else:
                taken = json.loads(text)
                assert other == state or taken["sum"] != state["sum"]
                assert meaning(target) == {name: taken[name] for name in ("samples", "rows", "added")}
                assert list(islice(target, 1))
                target.load_state_dict(before)
                assert target.state_dict() == before
    assert tried > 400


EARLY = "the state was made before the first release. Begin the run again, or skip the samples that it had."


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (None, "None is not the state of a loader. Give what the loader's state_dict returned."),
        ([], "[] is not the state of a loader."),
        ({}, "{} is not the state of a loader."),
        ({"foo": 1}, "{'foo': 1} is not the state of a loader."),
        ({KEY: None}, "None is not the text of a state."),
        ({KEY: "[" * 100_000}, "not the state of a loader ("),
        ({KEY: '{"version": 2, "\ud800'}, "not the state of a loader ("),
        ({KEY: '{"version": 2}'}, "not the state of a loader (Object missing required field `samples`)."),
        ({KEY: '{"versions": 2}'}, "not the state of a loader (Object missing required field `version`)."),
        ({KEY: '{"version": 3, "place": 7}'}, "version 3 of a state, which a later packtool wrote. Resume with "),
        ({KEY: '{"version": 1, "samples": 8, "over": true}'}, EARLY),
        ({"samples": 8, "items": 56, "dataset": "5f", "order": "stored", "seed": None}, EARLY),
        ({"samples": 8, "past": "5f", "sources": {}, "begin": None, "stages": []}, EARLY),
    ],
)
def test_not_a_state(place: dict[str, Path], state: Any, message: str) -> None:
    batches = kinds(place)["dataset"]()
    with pytest.raises(DataError) as caught:
        batches.load_state_dict(state)
    assert str(caught.value).startswith(f"{place['web']}: {message}")


def test_states_of_blends_and_datasets_are_told_apart(place: dict[str, Path]) -> None:
    made = kinds(place)
    state = {kind: stopped(made[kind]()) for kind in ("dataset", "blend")}
    for kind, other, message in [
        ("dataset", "blend", "the state of a blend, but this is one dataset. Resume with the blend."),
        ("blend", "dataset", "the state of one dataset, but this is a blend. Resume with the dataset."),
    ]:
        with pytest.raises(DataError, match=message):
            made[kind]().load_state_dict(state[other])


def test_a_source_that_is_gone_is_still_known(place: dict[str, Path]) -> None:
    """Its dataset is in the states that follow, so it can come back, and another can't take its name."""
    stages = [STAGES[0], {"from": "2000 rows", "weights": {"web": 1}}]

    def made(**sources: Any) -> GlobalBatches:
        return GlobalBatches(Stream(packtool.Blend({"web": place["web"], **sources}, stages, rows=ROWS)), 20)

    without = made(code={})
    without.load_state_dict(stopped(GlobalBatches(Stream(blend(place)), 20), 100))
    state = stopped(without, 10)
    assert json.loads(state[KEY])["sources"]["code"]["items"] == len(packtool.open(place["code"]))
    back = made(code=place["code"])
    back.load_state_dict(state)
    assert back.rows == without.rows
    with pytest.raises(DataError, match=r"items of code: .* in the state, .* in this loader"):
        made(code=place["chat"]).load_state_dict(state)
