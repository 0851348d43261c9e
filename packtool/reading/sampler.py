"""Choose the samples a rank reads, batch by batch: the same global order for any number of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from packtool.errors import UsageError
from packtool.planning.shuffling.balance import STEP, TURN, dealt_in
from packtool.reading.blend_stream import BlendStream
from packtool.reading.stream import Key, Stream

_AHEAD = 512  # global batches that are dealt at once


class Turn(NamedTuple):
    """What a rank trains on at a time: its share of a global batch, or a micro-batch of that.

    Attributes:
        keys: the samples.
        consumed: samples of the stream that are consumed after training on them, whatever the rank.
        ahead: samples of the stream up to the end of their global batch.
        filled: how many of the keys, at the end, are there to be as many as other ranks have: they train nothing.
    """

    keys: list[Key]
    consumed: int
    ahead: int
    filled: int = 0


class GlobalBatches:
    """The batches of one rank: a batch sampler, as PyTorch calls it, whose state is one number.

    A global batch is the next `batch_size` samples of the stream; its sample i goes to rank ``i % world_size``. Where
    samples are batches of a bucket, a global batch is one sample, and its rows are dealt out the same way. So what a
    step trains on does not depend on the number of ranks, and a run that stopped goes on with any other number.

    Each iteration is a pass: the epochs of the stream, then those that follow. It continues a pass that was left early,
    or that of a loaded state even if nothing is left of it; else it begins the next, or the one of `set_epoch`. One
    iteration reads at a time: one that something else moved on raises when it is continued.

    Args:
        stream: the samples.
        batch_size: samples in a global batch, a multiple of `world_size`; 1 where samples are batches. By default what
            the stream's `batch_tokens` make.
        rank, world_size: of this process.
        micro_batch_size: rows that a rank reads at a time; a global batch then takes several turns.
        drop_last: leave out samples that do not fill a global batch, at the end of a pass. Else the last is smaller, on
            some ranks by a row, or empty.
        balance: deal the rows of a global batch so that ranks attend equally long: ``step`` where they meet once a
            step, ``turn`` where they meet at every micro-batch, as FSDP makes them. Global batches and states stay the
            same. A last batch that ranks can't share equally is dealt as without it.
        fill: where a global batch can't be shared equally, give ranks with fewer rows its first one again: in `begin`,
            whose turns say how many of their rows train nothing.

    Attributes:
        even: batches are as equal as possible, rather than all but the last one full: for a pass without `drop_last`.
        consumed: samples of the stream before the next global batch, whatever the rank.
        turn: changes whenever the place does other than by the iteration at work.
    """

    def __init__(
        self,
        stream: Stream | BlendStream,
        batch_size: int | None = None,
        *,
        rank: int = 0,
        world_size: int = 1,
        micro_batch_size: int | None = None,
        drop_last: bool = True,
        balance: Literal["step", "turn"] | None = None,
        fill: bool = False,
    ) -> None:
        _require(balance in (None, STEP, TURN), f"{balance!r} is not a way", "give 'step' or 'turn'", "balance")
        given, batch_size = batch_size, stream.batch_rows if batch_size is None else batch_size
        for name, value in (("batch_size", batch_size), ("micro_batch_size", micro_batch_size)):
            if value is not None:
                _require(
                    _whole(value) and value > 0, f"{value!r} is not a positive whole number", "give 1 or more", name
                )
        if stream.bucketed:
            what = "the dataset's batches are the global batches"
            _require(batch_size == 1, what, "give batch_tokens alone", "batch_size")
        else:
            what = f"{given} rows, but batch_tokens make {stream.batch_rows}"
            _require(given is None or stream.batch_rows in (1, given), what, "give one of the two", "batch_size")
        what = f"{batch_size} samples are more than the {len(stream)} of a pass, so there would be no batch"
        remedy = "give a smaller batch, more epochs, or drop_last=False"
        enough = not drop_last or len(stream) >= batch_size
        _require(enough, what, remedy, "batch_tokens" if stream.bucketed else "batch_size")
        self.stream = stream
        self.batch_size = batch_size
        self.micro_batch_size = micro_batch_size
        self.drop_last = drop_last
        self.balance = balance
        self.fill = fill
        self.even = False
        self.consumed = 0
        self._begun = 0  # where the iteration began
        self._pass = 0
        self._end = len(stream)  # of the pass
        self._ahead = 0  # samples that batches were made of, whoever read ahead
        self._resumed = False  # a state was loaded, and nothing was read since
        self._read = False
        self.turn = 0
        self._take_rank(rank, world_size)

    def __iter__(self) -> Iterator[list[Key]]:
        """Iterate over the rest of this pass, or over the next if this one came to its end."""
        turns = self.begin()
        turn = self.turn
        for part in turns:
            self.require_turn(turn)
            self.consumed, self._ahead = part.consumed, part.ahead
            yield part.keys[: len(part.keys) - part.filled]

    def __len__(self) -> int:
        """Count the batches that this rank reads in a pass."""
        return self._count(*self._bounds(self._pass))

    @property
    def remaining(self) -> int:
        """Batches that this rank has yet to read in this pass."""
        return self._count(self.consumed, self._end)

    @property
    def left_out(self) -> int:
        """Samples at the end of a pass that fill no global batch, and are dropped."""
        return self._samples % self.batch_size if self.drop_last else 0

    @property
    def finished(self) -> bool:
        """Nothing is left of this pass."""
        return self._end - self.consumed < (self.batch_size if self.drop_last else 1)

    @property
    def passed(self) -> int:
        """Samples of this pass before the next global batch."""
        return self.consumed - self._bounds(self._pass)[0]

    def reweight(self, weights: Mapping[str, float], ramp_rows: int = 0) -> int:
        """Give the sources of a blend other weights, as of `BlendStream.add_stage`, after all that was read ahead.

        Raises:
            UsageError: not a blend.
        """
        _require(isinstance(self.stream, BlendStream), "not a blend", "give the loader a blend", "weights")
        return cast("BlendStream", self.stream).add_stage(weights, self._ahead, ramp_rows)

    def settle(self, rank: int, world_size: int) -> None:
        """Read as this rank from now on: a process may learn its rank after its loader was made.

        Raises:
            UsageError: something was read as another rank; or no such rank.
        """
        if (rank, world_size) == (self.rank, self.world_size):
            return
        what = f"read as rank {self.rank} of {self.world_size}, but this process is rank {rank} of {world_size} now"
        _require(not self._read, what, "make the loader anew, or give it rank and world_size", "rank")
        self._take_rank(rank, world_size)

    def require_turn(self, turn: int) -> None:
        """Refuse to continue an iteration after something else moved on: another one, `set_epoch`, a state, `skip`.

        Raises:
            UsageError: `turn` is not what it was when that iteration began.
        """
        what = "another loop, set_epoch, skip or load_state_dict has moved the loader since this loop began"
        _require(turn == self.turn, what, "leave a loop before, and begin another after it", "loader")

    def reset(self) -> None:
        """Begin with the first sample again."""
        self._go_to(0, 0)

    def set_epoch(self, number: int) -> None:
        """Begin a pass, from 0, as PyTorch samplers do; a state inside this pass is resumed.

        Raises:
            UsageError: a state was loaded that lies in another pass: whoever resumes would train other samples than
                they think.
        """
        _require(_whole(number) and number >= 0, f"{number!r} is no whole number from 0", "give 0 or more", "epoch")
        first, last = self._bounds(number)
        if self._resumed and first < self.consumed <= last:
            return
        over = self.finished and number == self._pass + 1  # what filled no batch at the end of a pass is left out
        if self._resumed and self.consumed not in (0, first) and not over:
            what = f"samples {first:,} to {last:,}, but the state that was loaded is at {self.consumed:,}"
            remedy = f"set epoch {self._pass}, where it lies, or call reset before to give it up"
            raise UsageError("state-elsewhere", f"epoch {number} has the {what}", remedy=remedy, where="set_epoch")
        self._go_to(first, number)

    def skip(self, samples: int) -> None:
        """Leave out the next samples, as after a spike of the loss; on every rank alike. It is in the state."""
        _require(
            _whole(samples) and samples >= 0, f"{samples!r} is no whole number from 0", "give 0 or more", "samples"
        )
        self._resume_at(self.consumed + samples)

    def begin(self) -> Iterator[Turn]:
        """Begin the rest of this pass, or the next one if nothing is left: all ranks take the same number of turns."""
        if self.finished and not self._resumed:
            self._go_to(self._end, self._pass + 1)
        self._resumed = False
        self._read = True
        self._begun = self.consumed
        self.turn += 1
        return self._turns(self.consumed, self._end)

    def together(self, turns: Iterable[Turn], rows: int) -> Iterator[list[Turn]]:
        """Group turns that are read at once: one at first, so that it comes soon, then up to this many rows.

        A group ends where a block of a blend does, so `reweight` does after each turn what it would if it were alone.
        """
        group: list[Turn] = []
        size = most = settled = 0
        for turn in turns:
            if group and (size + len(turn.keys) > most or turn.ahead > settled):
                self._ahead = group[-1].ahead
                yield group
                group, size, most = [], 0, min(2 * max(size, most), rows)
            if not group:
                settled = self.stream.next_block(turn.ahead)
            group.append(turn)
            size += len(turn.keys)
        if group:
            self._ahead = group[-1].ahead
            yield group

    def fewest(self) -> Iterator[tuple[int, int]]:
        """Yield for each turn of a pass the rows of its global batch, and the fewest that a rank gets of them in it."""
        for before, after, most, size in self._batches(*self._bounds(self._pass)):
            rows = self.stream.rows_of(before) if self.stream.bucketed else after - before
            for first in range(0, most, size):
                yield rows, max(0, min(size, rows // self.world_size - first))

    def state_dict(self, taken: int | None = None) -> dict[str, Any]:
        """Return the state to resume from: samples consumed, and what identifies dataset, order and seed, or the blend.

        Args:
            taken: batches of this iteration that the training loop has got, where workers of a plain `DataLoader` read
                ahead; by default all.
        """
        consumed = self.consumed
        if taken is not None:
            batches = self._batches(self._begun, self._end)
            ends = (
                after if first + size >= most else before
                for before, after, most, size in batches
                for first in range(0, most, size)
            )
            consumed = max(islice(ends, taken), default=self._begun)
        return self.stream.state(consumed)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where another run stopped, with any world size, batch size or number of epochs.

        Raises:
            DataError: not a state; or that of another dataset, order or seed, or of a blend with another past.
        """
        self._resume_at(self.stream.restore(state))

    @property
    def _samples(self) -> int:
        """Samples of this pass."""
        first, last = self._bounds(self._pass)
        return last - first

    def _bounds(self, number: int) -> tuple[int, int]:
        """Return the first sample of a pass, and that of the next."""
        epochs = self.stream.epochs
        return self.stream.begin_of(number * epochs), self.stream.begin_of((number + 1) * epochs)

    def _count(self, first: int, last: int) -> int:
        """Count the batches that this rank reads of some samples."""
        if self.stream.bucketed or self.micro_batch_size is not None:
            return sum(-(-most // size) for _, _, most, size in self._batches(first, last))
        whole, rest = divmod(last - first, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def _take_rank(self, rank: int, world_size: int) -> None:
        _require(0 <= rank < world_size, f"{rank} is not a rank of {world_size}", "give a rank from 0", "rank")
        what = f"{self.batch_size} samples can't be divided evenly among {world_size} ranks"
        even = self.stream.bucketed or self.batch_size % world_size == 0
        _require(even, what, "give a multiple of the world size", "batch_size")
        self.rank = rank
        self.world_size = world_size

    def _resume_at(self, samples: int) -> None:
        number = 0
        if len(self.stream) and samples:  # the end of a pass belongs to it
            number = self.stream.epoch_of(samples - 1)[0] // self.stream.epochs
        self._go_to(samples, number)
        self._resumed = True

    def _go_to(self, consumed: int, number: int) -> None:
        self.turn += 1
        self.consumed = self._begun = self._ahead = consumed
        self._pass, self._end = number, self._bounds(number)[1]
        self._resumed = False

    def _batches(self, consumed: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield samples consumed before and after each global batch, rows of the first rank, and rows of a turn."""
        while consumed < end:
            size = self.batch_size
            if self.even:
                # As many batches as of the full size; each is at most a row larger than those that follow it.
                left = end - consumed
                size = -(-left // -(-left // size))
            after = min(consumed + size, end)
            if self.drop_last and after - consumed < self.batch_size:
                return
            rows = self.stream.rows_of(consumed) if self.stream.bucketed else after - consumed
            most = max(1, -(-rows // self.world_size))
            yield consumed, after, most, self.micro_batch_size or most
            consumed = after

    def _turns(self, consumed: int, end: int) -> Iterator[Turn]:
        batches = self._batches(consumed, end)
        while ahead := list(islice(batches, _AHEAD if self.balance else 1)):
            keys = [self._keys(before, after) for before, after, _, _ in ahead]
            for (before, after, most, size), whole, mine in zip(ahead, keys, self._shares(keys), strict=True):
                for first in range(0, most, size):
                    chosen = mine[first : first + size]
                    filled = min(size, most - first) - len(chosen) if self.fill else 0
                    chosen = chosen + [whole[0]] * filled
                    if not chosen and self.stream.bucketed:
                        chosen = [(before, -1)]
                    yield Turn(chosen, after if first + size >= most else before, after, filled)

    def _shares(self, batches: Sequence[Sequence[Key]]) -> list[list[Key]]:
        """Return this rank's share of each of some global batches."""
        shares = [list(keys[self.rank :: self.world_size]) for keys in batches]
        if self.balance is None:
            return shares
        for rows in sorted({len(keys) for keys in batches if len(keys) % self.world_size == 0}):
            those = [number for number, keys in enumerate(batches) if len(keys) == rows]
            costs = self.stream.pairs([batches[number] for number in those]).reshape(-1, rows)
            dealt = dealt_in(self.balance, costs, self.world_size, self.micro_batch_size)[:, self.rank]
            for number, mine in zip(those, dealt.tolist(), strict=True):
                shares[number] = [batches[number][row] for row in mine]
        return shares

    def _keys(self, first: int, last: int) -> Sequence[Key]:
        if not self.stream.bucketed:
            return range(first, last)
        rows = self.stream.rows_of(first)
        if rows == self.stream.full_rows_of(first) and rows % self.world_size:
            raise UsageError(
                "bad-option",
                f"batch {first} has {rows} rows, which can't be divided evenly among {self.world_size} ranks",
                remedy="give batch_tokens so that every batch has a multiple of the world size",
                where="batch_tokens",
            )
        return [(first, row) for row in range(rows)]


def _whole(value: object) -> bool:
    """Return whether a value is a whole number, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _require(holds: bool, what: str, remedy: str, where: str) -> None:
    if not holds:
        raise UsageError("bad-option", what, remedy=remedy, where=where)
