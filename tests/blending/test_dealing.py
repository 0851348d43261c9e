"""Every row of a blend: exact shares after any block, even shares between, each row of a source in its turn."""

from fractions import Fraction

import numpy as np
import pytest

from packtool.blending.dealing import BLOCK, Dealing
from packtool.blending.schedule import Exhausted, Schedule, Stage

LAW = 1.1
"""Rows by which a source may be off the integral of its share after a block."""
BEGINS = [Fraction(each) for each in ("0.5", "0.11803399", "0.73606798", "0.35410197", "0.97213595")]
MANY = [120, pytest.param(1000, marks=pytest.mark.slow)]
"""Random blends."""


def schedule(
    stages: list[Stage], samples: int, limits: dict[str, int] | None = None, stops: frozenset[str] = frozenset()
) -> Schedule:
    names = sorted({name for stage in stages for name in stage.weights})
    return Schedule(tuple(names), samples, tuple(stages), limits or {}, stops)


def drawn(rng: np.random.Generator, *, stops: bool = False) -> Schedule:
    """A random blend: 2 to 40 sources, weights from 1e-4, up to five stages, some of them ramps."""
    names = [f"s{number:02}" for number in range(int(rng.integers(2, 41)))]
    samples, stages = int(rng.integers(1, 60_000)), int(rng.integers(1, 6))
    firsts = [0, *sorted({int(each) for each in rng.integers(1, samples + 1, stages - 1)})]
    out = []
    for number, first in enumerate(firsts):
        weights = {name: Fraction(f"{10 ** rng.uniform(-4, 0):.6f}") * (rng.random() > 0.2) for name in names}
        weights[names[0]] += Fraction(1, 10_000)
        reached = int(rng.integers(first + 1, samples + 1000)) if number and rng.random() < 0.5 else None
        out.append(Stage(first, weights, reached))
    some = {name: int(rng.integers(1, samples + 2)) for name in names[1:] if stops and rng.random() < 0.3}
    return Schedule(tuple(names), samples, tuple(out), some, frozenset(some))


def integral(whole: Schedule, ends: np.ndarray) -> np.ndarray:
    """What each source should have given before these samples: summed up piece by piece by the trapezoid rule."""
    out = np.zeros((len(ends), len(whole.names)))
    for piece in whole.pieces:
        at = np.clip(ends, piece.first, piece.last)
        middle = np.array([(piece.start + piece.at(place)) / 2 for place in at.tolist()])
        out += (at - piece.first)[:, None] * middle
    return out


def recounted(dealing: Dealing, samples: int) -> tuple[np.ndarray, np.ndarray]:
    source, row = dealing.locate(np.arange(samples))
    for number in range(dealing.given.shape[1]):  # rows of a source come one after the other, each once
        assert (row[source == number] == np.arange(np.count_nonzero(source == number))).all()
    return source, row


@pytest.mark.parametrize("blends", MANY)
@pytest.mark.parametrize("stops", [False, True])
def test_after_any_block_each_source_is_where_it_should_be(stops: bool, blends: int) -> None:
    rng, worst = np.random.default_rng(int(stops)), 0.0
    for _ in range(blends):
        whole = drawn(rng, stops=stops)
        dealing = Dealing(whole)
        assert (np.diff(dealing.given, axis=0) >= 0).all()
        assert (dealing.given.sum(axis=1) == dealing.ends).all()
        assert (np.diff(dealing.ends) <= BLOCK).all()
        worst = max(worst, float(np.abs(dealing.given - integral(whole, dealing.ends)).max()))
        for name, limit in whole.limits.items():
            assert dealing.given[-1, whole.names.index(name)] <= limit
    assert worst <= LAW


@pytest.mark.parametrize("blends", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_naive_recount_of_every_sample(blends: int) -> None:
    rng = np.random.default_rng(5)
    for _ in range(blends):
        whole = drawn(rng)
        dealing = Dealing(whole)
        source, row = recounted(dealing, whole.samples)
        counted = np.zeros(len(whole.names), np.int64)
        for n in range(0, whole.samples, 97):
            assert dealing.before(n).tolist() == np.bincount(source[:n], minlength=len(counted)).tolist()
        some = rng.integers(0, whole.samples, 50)
        one, other = Dealing(whole).locate(some)  # in any order
        assert (one == source[some]).all()
        assert (other == row[some]).all()
        for n in some.tolist():
            assert dealing.sample_of(int(source[n]), int(row[n])) == n
        assert dealing.sample_of(0, int(dealing.given[-1, 0])) is None


@pytest.mark.parametrize("samples", [1000, 9000])
def test_the_same_as_dealt_by_hand_with_fractions(samples: int) -> None:
    """Weights that binary numbers hold exactly, so that every tie is one here, too."""
    rng = np.random.default_rng(samples)
    for _ in range(15):
        shares = [int(each) for each in rng.multinomial(64, np.ones(5) / 5)]
        weights = {name: Fraction(each) for name, each in zip("abcde", shares, strict=True)}
        second = int(rng.integers(1, samples))
        stages = [Stage(0, weights), Stage(second, {**weights, "a": weights["e"], "e": weights["a"]})]
        source, _ = Dealing(schedule(stages, samples)).locate(np.arange(samples))
        assert source.tolist() == by_hand(stages, samples)


def by_hand(stages: list[Stage], samples: int) -> list[int]:
    """Blocks of 4,096, cut where a stage begins: floor of what is due, the rest to the largest remainders; then rows by
    when they are due, from ½ and multiples of the golden section."""
    names = sorted(stages[0].weights)
    ends = sorted({*range(BLOCK, samples, BLOCK), samples, *(each.first for each in stages)})
    target, given, out, begin = dict.fromkeys(names, Fraction(0)), dict.fromkeys(names, 0), [], 0
    for end in ends[1:]:
        stage = [each for each in stages if each.first <= begin][-1]
        for name in names:
            target[name] += (end - begin) * stage.weights[name] / sum(stage.weights.values())
        due = {name: target[name] - given[name] for name in names}
        counts = {name: max(0, int(due[name] // 1)) for name in names}
        for name in sorted(names, key=lambda name: counts[name] - due[name])[: end - begin - sum(counts.values())]:
            counts[name] += 1
        begins = dict(zip([name for name in names if counts[name]], BEGINS, strict=False))
        rows = [((j + begins[name]) / counts[name], k) for k, name in enumerate(names) for j in range(counts[name])]
        out += [k for _, k in sorted(rows)]
        given = {name: given[name] + counts[name] for name in names}
        begin = end
    return out


@pytest.mark.parametrize("blends", [30, pytest.param(150, marks=pytest.mark.slow)])
def test_any_stretch_holds_its_share(blends: int) -> None:
    """Of any 512 samples each source has its share within a few rows, also across blocks and on ramps."""
    rng, worst = np.random.default_rng(9), 0.0
    for _ in range(blends):
        whole = drawn(rng)
        if whole.samples < 600:
            continue
        source, _ = Dealing(whole).locate(np.arange(whole.samples))
        starts = rng.integers(0, whole.samples - 512, 40)
        wanted = integral(whole, starts + 512) - integral(whole, starts)
        for start, share in zip(starts.tolist(), wanted, strict=True):
            held = np.bincount(source[start : start + 512], minlength=len(share))
            worst = max(worst, float(np.abs(held - share).max()))
    assert worst < 4.1


def test_a_block_goes_on_from_what_was_given() -> None:
    """From sample 1,000 on with other rows than the schedule would have given: made up for at the next block's end."""
    stages = [Stage(0, {"a": Fraction(1), "b": Fraction(1)})]
    dealing = Dealing(schedule(stages, 20_000), (1000, {"a": 480, "b": 520}))
    assert dealing.before(1000).tolist() == [480, 520]
    assert dealing.before(BLOCK).tolist() == [2048, 2048]
    source, row = dealing.locate(np.arange(1000, 20_000))
    assert row[source == 0].tolist() == list(range(480, 10_000))
    assert row[source == 1].tolist() == list(range(520, 10_000))


def test_sources_that_are_gone_give_nothing() -> None:
    stages = [Stage(0, {"a": Fraction(1), "b": Fraction(1)}), Stage(500, {"a": Fraction(1)})]
    dealing = Dealing(schedule(stages, 2000), (500, {"a": 253, "b": 247}), gone=["b"])
    assert dealing.before(2000).tolist() == [1753, 247]
    never = [Stage(0, {"a": Fraction(1), "b": Fraction(0)})]
    assert Dealing(schedule(never, 2000), (500, {"a": 500}), gone=["b"]).before(2000).tolist() == [2000, 0]


def test_no_rows_left() -> None:
    stages = [Stage(0, {"a": Fraction(1), "b": Fraction(1)})]
    with pytest.raises(Exhausted) as caught:
        Dealing(schedule(stages, 9000, {"a": 3000, "b": 3000}))
    assert caught.value.sample == BLOCK


def test_an_added_source_changes_no_order_of_others() -> None:
    """Only how often each comes; the rows of each are its own, one after the other."""
    few = Dealing(schedule([Stage(0, {"b": Fraction(1), "d": Fraction(1)})], 5000))
    more = Dealing(schedule([Stage(0, {"a": Fraction(0), "b": Fraction(1), "d": Fraction(1)})], 5000))
    one, other = few.locate(np.arange(5000)), more.locate(np.arange(5000))
    assert (one[0] + 1 == other[0]).all()
    assert (one[1] == other[1]).all()
