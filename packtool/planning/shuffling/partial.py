"""The partial shuffle: word order stays, but other texts meet in a batch in every epoch.

The stream of all documents is laid out as B long lanes, B the batch size; each lane is rotated by its own random
number of tokens; then all lanes are cut to rows of L tokens, and the rows are written in the order in which batches
of B read them: the first row of each lane, then the second, and so on. Lanes have a whole number of rows, and the
rest of the stream is dropped; or they have N // B of its N tokens, and their last rows are shorter.
Paper: Partially Shuffling the Training Data to Improve Language Models.
"""

from __future__ import annotations

import numpy as np

from packtool.errors import UsageError
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.plan import I64, Ints, Plan, Segments, between, offsets_of
from packtool.planning.shuffling.permutation import Purpose, keys


class PartialPlan(Plan):
    """Rows of a rotated stream, in the order in which batches read them.

    Args:
        sequence_length: tokens in a row, L.
        ends: documents + 1 offsets of the documents in the stream: `offsets_of` their lengths.
        rotation: number of tokens of each lane that move to its end; there are as many lanes as rows in a batch, B.
        lane: tokens in a lane. If that is no multiple of L, the last row of a lane is shorter.

    Tokens beyond the last lane are left out, and counted.

    The paper's example: twelve tokens A to L, B = 2, L = 3, rotations 2 and 5 give CDE LGH, then FAB IJK.

    >>> plan = PartialPlan(3, np.array([0, 12]), np.array([2, 5]), lane=6)
    >>> segments = plan.segments(np.arange(plan.units))
    >>> "".join("ABCDEFGHIJKL"[s : s + n] for s, n in zip(segments.start, segments.length))
    'CDELGHFABIJK'
    """

    def __init__(self, sequence_length: int, ends: I64, rotation: I64, lane: int) -> None:
        tokens, lanes = int(ends[-1]), len(rotation)
        omitted = len(ends) - int(np.searchsorted(ends, lane * lanes, side="right"))
        super().__init__(
            sequence_length=sequence_length,
            unit=sequence_length,
            units=-(-lane // sequence_length) * lanes,
            dropped=tokens - lane * lanes - omitted,
            eos_omitted=omitted,
        )
        self._ends = ends
        self._rotation = rotation
        self._lane = lane

    def segments(self, units: Ints) -> Segments:
        step, lane = np.divmod(np.asarray(units, np.int64), len(self._rotation))
        inside = (step * self.sequence_length + self._rotation[lane]) % self._lane
        tokens = np.minimum(self.sequence_length, self._lane - step * self.sequence_length)
        # A row that reaches the end of its lane continues at the lane's beginning: one stretch of the stream, or two.
        head = np.minimum(tokens, self._lane - inside)
        begin = np.stack([inside, np.zeros_like(inside)], 1) + (lane * self._lane)[:, None]
        length = np.stack([head, tokens - head], 1)
        some = length > 0
        begin, length = begin[some], length[some]
        document, start, length, offsets = between(self._ends, begin, begin + length)
        return Segments(document, start, length, np.zeros_like(document), offsets[offsets_of(some.sum(1))])


def rotations(lanes: int, lane_tokens: int, *, seed: int, epoch: int) -> I64:
    """Draw a uniform number in [0, `lane_tokens`) for each lane, independent for each epoch.

    >>> drawn = rotations(4, 1000, seed=42, epoch=0)
    >>> bool((drawn == rotations(8, 1000, seed=42, epoch=0)[:4]).all())
    True
    """
    return np.array([int(key) * lane_tokens >> 64 for key in keys(seed, Purpose.ROTATION, epoch, 0, lanes)], np.int64)


def plan(
    lengths: Ints,
    *,
    sequence_length: int,
    batch_size: int,
    seed: int,
    epoch: int,
    short_rows: bool = False,
    rotate: bool = True,
    arrays: Arrays = IN_MEMORY,
) -> PartialPlan:
    """Plan the partial shuffle of documents of these lengths (EOS included), for one epoch.

    Args:
        lengths: tokens of each document.
        sequence_length: tokens in a row, L.
        batch_size: rows in a batch, B.
        seed: of the rotations.
        epoch: other epochs draw other rotations.
        short_rows: the last row of each lane may be shorter, so that less than B tokens are left out; else less than
            B × L.
        rotate: lanes are rotated; else all epochs are the same, as in training without the method.
        arrays: allocates the arrays of the plan.

    Raises:
        UsageError: the tokens do not fill a batch (with short rows, one of rows of a single token).
    """
    ends = arrays.offsets(lengths)
    lane = lane_tokens(int(ends[-1]), batch_size, 1 if short_rows else sequence_length)
    drawn = rotations(batch_size, lane, seed=seed, epoch=epoch) if rotate else np.zeros(batch_size, np.int64)
    return PartialPlan(sequence_length, ends, drawn, lane)


def lane_tokens(tokens: int, batch_size: int, multiple: int) -> int:
    """Compute the tokens in each lane, of as many lanes as a batch has rows, as a multiple of a number.

    >>> lane_tokens(100, 4, 10), lane_tokens(100, 4, 1)
    (20, 25)

    Raises:
        UsageError: there are too few tokens for one multiple in a lane.
    """
    steps = tokens // (batch_size * multiple)
    if not steps:
        what = f"{tokens} tokens do not fill one batch of {batch_size} rows of {multiple}"
        remedy = "give a smaller batch size or sequence length"
        raise UsageError("too-few-tokens", what, remedy=remedy, where="--batch-size")
    return steps * multiple
