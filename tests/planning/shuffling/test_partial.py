"""The partial shuffle: lanes of a stream, rotated."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from packtool.errors import UsageError
from packtool.planning.plan import offsets_of
from packtool.planning.shuffling.partial import PartialPlan, plan, rotations


def read(partial: PartialPlan, stream: str, ends: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[str]:
    """The rows of a plan over a stream of letters."""
    rows = partial.segments(np.arange(partial.units))
    pieces = [
        stream[ends[d] + s : ends[d] + s + n] for d, s, n in zip(rows.document, rows.start, rows.length, strict=True)
    ]
    return ["".join(pieces[a:b]) for a, b in pairwise(rows.offsets)]


@pytest.mark.parametrize("ends", [[0, 12], [0, 1, 2, 12], [0, 5, 7, 12], list(range(13))])
def test_the_example_of_the_paper(ends: list[int]) -> None:
    """Twelve tokens, B = 2, L = 3, rotations 2 and 5: the batches are CDE LGH, then FAB IJK."""
    offsets = np.array(ends)
    partial = PartialPlan(3, offsets, np.array([2, 5]), lane=6)
    assert read(partial, "ABCDEFGHIJKL", offsets) == ["CDE", "LGH", "FAB", "IJK"]
    assert (partial.dropped, partial.eos_omitted) == (0, 0)


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=12),
    batch_size=st.integers(1, 5),
    sequence_length=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_rows_are_rotated_lanes(lengths: list[int], batch_size: int, sequence_length: int, seed: int) -> None:
    stream = "".join(chr(97 + i % 26) for i in range(sum(lengths)))
    steps = len(stream) // (batch_size * sequence_length)
    assume(steps)
    lane_tokens = steps * sequence_length
    partial = plan(np.array(lengths), sequence_length=sequence_length, batch_size=batch_size, seed=seed, epoch=0)
    rows = read(partial, stream, offsets_of(np.array(lengths)))
    drawn = rotations(batch_size, lane_tokens, seed=seed, epoch=0)
    for lane in range(batch_size):
        text = stream[lane * lane_tokens :][:lane_tokens]
        assert "".join(rows[lane::batch_size]) == text[drawn[lane] :] + text[: drawn[lane]]
    kept = batch_size * lane_tokens
    ended = int((np.cumsum(lengths) <= kept).sum())
    assert partial.eos_omitted == len(lengths) - ended
    assert partial.dropped == len(stream) - kept - partial.eos_omitted


def test_rotations_are_uniform_and_new_in_every_epoch() -> None:
    drawn = np.array([rotations(4, 10, seed=42, epoch=epoch) for epoch in range(500)])
    assert drawn.min() == 0
    assert drawn.max() == 9
    counts = np.bincount(drawn.reshape(-1), minlength=10)
    assert counts.min() > 140  # 200 expected, standard deviation 13
    assert len({tuple(each) for each in drawn}) > 480


def test_too_few_tokens() -> None:
    with pytest.raises(UsageError, match="11 tokens do not fill one batch of 3 rows of 4") as caught:
        plan(np.array([5, 6]), sequence_length=4, batch_size=3, seed=0, epoch=0)
    assert caught.value.code == "too-few-tokens"
