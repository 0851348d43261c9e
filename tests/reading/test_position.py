"""Where a loop begins, in passes of any sizes, without a stream."""

from bisect import bisect_right
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.errors import UsageError
from packtool.planning.plan import I64
from packtool.reading.position import Position
from tests.examples import examples


class Passes:
    """An order of passes of these sizes; those after the last are as long as the last."""

    endless = True

    def __init__(self, sizes: list[int]) -> None:
        self._ends = list(accumulate([0, *sizes, *[sizes[-1]] * 9]))

    def locate(self, samples: I64) -> tuple[I64, I64]:
        return np.zeros_like(samples), samples

    def before(self, sample: int) -> I64:
        return np.array([sample])

    def next_block(self, sample: int) -> int:
        return sample

    def bounds(self, number: int) -> tuple[int, int]:
        return self._ends[number], self._ends[number + 1]

    def pass_of(self, sample: int) -> int:
        return bisect_right(self._ends, sample) - 1


@examples(200)
@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4), fewest=st.integers(1, 20), data=st.data())
def test_a_loop_has_what_is_left_or_the_next_pass(sizes: list[int], fewest: int, data: st.DataObject) -> None:
    """A pass that was named is begun even where nothing is left of it; a state in the middle of another is kept."""
    order = Passes(sizes)
    samples = data.draw(st.integers(0, sum(sizes)))
    number = order.pass_of(samples - 1) if samples else 0
    first, last = order.bounds(number)
    over = last - samples < fewest
    position = Position(order, fewest, "a run")
    position.resume(samples)
    assert (position.samples, position.number, position.finished) == (samples, number, over)
    if data.draw(st.booleans(), label="named"):
        asked = data.draw(st.integers(0, number + 2))
        stays = asked == number and samples > first
        if not stays and samples not in (0, order.bounds(asked)[0]) and not (over and asked == number + 1):
            with pytest.raises(UsageError, match=f"epoch {asked} has the samples .*Set epoch {number}, where it lies"):
                position.set_epoch(asked)
        else:
            position.set_epoch(asked)
            position.set_epoch(asked)  # trainers set it twice
            begun = samples if stays else order.bounds(asked)[0]
            assert position.begin() == (begun, order.bounds(asked)[1])
            position.set_epoch(0)  # nothing holds it where it is any more
            assert position.begin() == order.bounds(0)
            return
    skipped = data.draw(st.integers(0, 3), label="skipped")
    expected = order.bounds(number + 1)[0] if over else samples
    if skipped:
        position.skip(skipped)
        assert position.samples == expected + skipped
        position.resume(samples)
    generation = position.generation
    assert position.begin() == (expected, order.bounds(number + over)[1])
    with pytest.raises(UsageError, match="another loop, set_epoch, skip or load_state_dict has moved the loader"):
        position.require_unmoved(generation)
    position.require_unmoved(position.generation)
