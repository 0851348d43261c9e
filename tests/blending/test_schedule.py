"""Stages become straight lines, which end where sources stop."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.blending.dealing import Dealing
from packtool.blending.schedule import Exhausted, Piece, Schedule, Stage, past_of, pieces_of
from tests.examples import examples

NAMES = ("a", "b", "c")


def stage(first: int, a: float, b: float, c: float, reached: int | None = None) -> Stage:
    weights = {name: Fraction(str(weight)) for name, weight in zip(NAMES, (a, b, c), strict=True) if weight}
    return Stage(first, weights, reached)


def described(pieces: list[Piece]) -> list[tuple[float, float, list[float], list[float]]]:
    return [(each.first, each.last, each.start.round(6).tolist(), each.end.round(6).tolist()) for each in pieces]


A, TO_B = stage(0, 1, 0, 0), stage(100, 0, 1, 0, reached=200)
RAMP = (100, 200, [1, 0, 0], [0, 1, 0])


@pytest.mark.parametrize(
    ("stages", "samples", "last"),
    [
        # Weights hold until the next stage, in any unit.
        (
            [stage(0, 8, 2, 0), stage(60, 0, 0.5, 0.5)],
            100,
            [(0, 60, [0.8, 0.2, 0], [0.8, 0.2, 0]), (60, 100, [0, 0.5, 0.5], [0, 0.5, 0.5])],
        ),
        # A ramp goes from what was to what will be.
        ([A, TO_B], 200, [RAMP]),
        ([A, TO_B], 300, [RAMP, (200, 300, [0, 1, 0], [0, 1, 0])]),
        # One that is cut is as steep, and the next begins where it was; the end of the run cuts it, too.
        (
            [A, TO_B, stage(150, 0, 0, 1, reached=250)],
            250,
            [(100, 150, [1, 0, 0], [0.5, 0.5, 0]), (150, 250, [0.5, 0.5, 0], [0, 0, 1])],
        ),
        ([A, TO_B, stage(400, 0, 0, 1)], 150, [(100, 150, [1, 0, 0], [0.5, 0.5, 0])]),
    ],
)
def test_stages_are_straight_lines(stages: list[Stage], samples: int, last: list[object]) -> None:
    assert described(pieces_of(stages, NAMES, samples))[-len(last) :] == last


def test_a_source_that_stops_leaves_its_share_to_the_others() -> None:
    whole = Schedule(NAMES, 100, (stage(0, 0.5, 0.3, 0.2),), {"a": 20, "b": 24}, frozenset("ab"))
    assert described(whole.pieces) == [
        (0, 40, [0.5, 0.3, 0.2], [0.5, 0.3, 0.2]),
        (40, 60, [0, 0.6, 0.4], [0, 0.6, 0.4]),
        (60, 100, [0, 0, 1], [0, 0, 1]),
    ]
    assert whole.rows(100).tolist() == pytest.approx([20, 24, 56])


def test_a_ramp_to_a_source_that_has_stopped_stays_with_the_others() -> None:
    whole = Schedule(NAMES, 100, (stage(0, 1, 1, 0), stage(50, 1, 0, 0, reached=100)), {"a": 20}, frozenset("a"))
    assert described(whole.pieces)[-1] == (50, 100, [0, 1, 0], [0, 1, 0])


def test_when_all_have_stopped_it_is_said_where() -> None:
    whole = Schedule(NAMES, 100, (stage(0, 1, 1, 0),), {"a": 10, "b": 20}, frozenset("ab"))
    with pytest.raises(Exhausted) as caught:
        _ = whole.pieces
    assert caught.value.sample == 30


def test_what_has_no_weight_takes_over_where_all_are_used() -> None:
    lines = pieces_of([stage(0, 1, 0, 0)], NAMES, 60, {"a": 10, "b": 20, "c": 30}, use_all=True)
    assert described(lines) == [(0, 10, [1, 0, 0], [1, 0, 0]), (10, 60, [0, 0.4, 0.6], [0, 0.4, 0.6])]


def test_the_past_is_what_was_and_not_what_will_be() -> None:
    ramp = pieces_of([stage(0, 1, 0, 0), stage(100, 0, 1, 0, reached=200)], NAMES, 300)
    cut = pieces_of([stage(0, 1, 0, 0), stage(100, 0, 1, 0, reached=200), stage(150, 0, 0, 1)], NAMES, 500)
    steeper = pieces_of([stage(0, 1, 0, 0), stage(100, 0, 1, 0, reached=190)], NAMES, 300)
    assert past_of(ramp, NAMES, 150) == past_of(cut, NAMES, 150)
    assert past_of(ramp, NAMES, 151) != past_of(cut, NAMES, 151)
    assert past_of(ramp, NAMES, 100) == past_of(steeper, NAMES, 100) == [("0", "100", {"a": ["1", "1"]})]
    assert past_of(ramp, NAMES, 101) != past_of(steeper, NAMES, 101)


WIDE = st.builds(lambda digit, power: digit * Fraction(10) ** power, st.integers(1, 9), st.integers(-300, 18))
"""Weights of any size."""


@examples(450)
@given(data=st.data())
def test_whatever_the_weights_every_sample_is_a_row_of_some_source(data: st.DataObject) -> None:
    """At once or on ramps: nobody gives more than it may, and a run that needs every row gets every row."""
    names = tuple("abcdefg"[: data.draw(st.integers(1, 6))])
    limits = {name: data.draw(st.integers(1, 5) | st.integers(1, 3000)) for name in names}
    samples, use_all = sum(limits.values()), data.draw(st.booleans())
    if not use_all:
        stops = data.draw(st.sets(st.sampled_from(names)))
        limits = {name: limit for name, limit in limits.items() if name in stops}
        samples = data.draw(st.integers(1, samples))
        if len(limits) == len(names):
            samples = sum(limits.values())
    # Without `use_all` whoever has rows left needs a weight to the end.
    weight = st.fractions(Fraction(1, 9), 20, max_denominator=1000) | WIDE
    if use_all:
        weight |= st.just(Fraction(0))
    stages, first = [], 0
    while first < samples and len(stages) < 5:
        weights = {name: data.draw(weight) for name in names}
        if not any(weights.values()):
            weights[names[0]] = Fraction(1)
        ramp = data.draw(st.none() | st.integers(first + 1, samples + 9)) if stages else None
        stages.append(Stage(first, weights, ramp))
        first = data.draw(st.integers(first + 1, samples + 1))
    whole = Schedule(names, samples, tuple(stages), limits, frozenset(limits), use_all=use_all)
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        dealing = Dealing(whole)
        source, _ = dealing.locate(np.arange(samples))
    taken = dealing.before(samples).tolist()
    assert np.bincount(source, minlength=len(names)).tolist() == taken
    for name, rows in zip(names, taken, strict=True):
        assert rows <= limits.get(name, samples)
    if samples == sum(limits.values()) and len(limits) == len(names):
        assert taken == list(limits.values())
    assert all(piece.first < piece.last for piece in whole.pieces)


def test_a_ramp_from_the_begin_of_the_run_begins_at_the_weights_that_it_replaces() -> None:
    whole = Schedule(NAMES, 100, (stage(0, 1, 0, 0), stage(60, 0, 0, 1)), {}, frozenset())
    assert described(whole.also(stage(0, 0, 1, 0, reached=40)).pieces) == [
        (0, 40, [1, 0, 0], [0, 1, 0]),
        (40, 60, [0, 1, 0], [0, 1, 0]),
        (60, 100, [0, 0, 1], [0, 0, 1]),
    ]
    assert described(whole.also(stage(0, 0, 1, 0)).pieces)[0] == (0, 60, [0, 1, 0], [0, 1, 0])
