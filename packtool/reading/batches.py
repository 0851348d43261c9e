"""Choose the rows that a rank reads, batch by batch: the same global order for any number of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from packtool.errors import UsageError
from packtool.planning.plan import I64
from packtool.planning.shuffling.balance import STEP, TURN, dealt_in
from packtool.reading.order import Dealt
from packtool.reading.state import restore, written
from packtool.reading.stream import LENGTH, Stream
from packtool.support.sizes import plural
from packtool.warnings import warn

_DEALT = 512  # global batches that are dealt at once, by the costs of their rows
_LOCATED = 64  # global batches whose rows are located at once, without costs
_EMPTY_LOOPS = 10_000
"""Empty loops in a row after which a trainer is stopped that would go on for ever. They take a few seconds."""


class RunPlace(NamedTuple):
    """Where a run is in its passes. Both are needed: the first sample of a pass is also the end of the pass before."""

    samples: int  # samples consumed, in all passes
    number: int  # number of the pass, from 0


class Turn(NamedTuple):
    """The rows that a rank trains on at a time: its share of a global batch, or a micro-batch of its share."""

    addresses: I64  # (rows, 4) as in `Stream.addresses`; (0, 4) for a turn without rows
    length: int  # length of the rows of the global batch
    consumed: int  # samples of the stream consumed after this turn, the same on every rank
    ahead: int  # samples of the stream up to the end of the global batch
    filled: int = 0  # rows at the end that only make up the number that other ranks have: they train nothing


class _Global(NamedTuple):
    """A global batch: the samples ``first:last`` of the stream, and the number of rows in them."""

    first: int
    last: int
    rows: int


class _Share(NamedTuple):
    """The share of one rank in a global batch."""

    addresses: I64  # addresses of the rows of this rank
    first: I64  # address of the first row of the global batch: (1, 4)
    length: int  # length of the rows


class GlobalBatches:
    """The batches of one rank, pass after pass, and the place of the run in them: a batch sampler of PyTorch.

    A global batch is the next `batch_size` samples of the stream; its row i goes to rank ``i % world_size``. If samples
    are batches of rows of one length, a global batch is one sample. So the rows of a step do not depend on the number
    of ranks, and a run that stopped goes on with any other number.

    An iteration is a pass: the first pass is the epochs of the stream, the next pass as many epochs after them. An
    iteration has the rest of a pass if a batch is left, in this run or in the run whose state was loaded; otherwise it
    has the next pass. An iteration is empty only if `set_epoch` named a pass that is over. A blend is one pass, and
    later passes are empty. Only the latest iteration can be continued: an earlier iteration raises an error.

    Args:
        stream: the samples.
        batch_size: samples in a global batch, a multiple of `world_size`; not to be given if samples are batches. By
            default as many as the stream's batch_tokens or its blend ask for; otherwise 1.
        rank, world_size: of this process.
        micro_batch_size: rows that a rank reads at a time; a global batch then takes several turns.
        drop_last: leave out samples at the end of a pass that do not fill a global batch. Otherwise the last batch is
            smaller, and ranks may differ by a row.
        balance: deal the rows of a global batch so that ranks attend equally long: ``step`` where ranks meet once a
            step, ``turn`` where ranks meet at every micro-batch, as with FSDP. Global batches and states stay the
            same. A last batch that ranks can't share equally is dealt as without `balance`.
        fill: if ranks can't share a global batch equally, ranks with fewer rows get the first row of the batch again:
            only in the turns of `begin`, which have the number of these rows in `filled`.

    Attributes:
        even: without `drop_last`, make all batches of a pass as equal as possible, rather than the last one small.
        place: behind the last global batch, the same on every rank.
        generation: a number that changes whenever the place moves otherwise than by the present iteration.
    """

    def __init__(
        self,
        stream: Stream,
        batch_size: int | None = None,
        *,
        rank: int = 0,
        world_size: int = 1,
        micro_batch_size: int | None = None,
        drop_last: bool = True,
        balance: Literal["step", "turn"] | None = None,
        fill: bool = False,
    ) -> None:
        _require(balance in (None, STEP, TURN), f"unknown balance {balance!r}", "give 'step' or 'turn'", "balance")
        for name, value in (("batch_size", batch_size), ("micro_batch_size", micro_batch_size)):
            what = f"{value!r} is not a positive whole number"
            _require(value is None or (_whole(value) and value > 0), what, "give 1 or more", name)
        self.stream = stream
        self.batch_size = _agreed(stream, batch_size)
        size = plural(self.batch_size, "sample")
        what = f"a batch of {size} is more than the {len(stream)} of a pass, so there would be no batch"
        remedy = "give a smaller batch, more epochs, or drop_last=False"
        enough = not drop_last or len(stream) >= self.batch_size
        _require(enough, what, remedy, "batch_tokens" if stream.several else "batch_size")
        self.micro_batch_size = micro_batch_size
        self.drop_last = drop_last
        self.balance = balance
        self.fill = fill
        self.even = False
        self.place = self._begun = RunPlace(0, 0)  # `_begun`: of the last iteration, when it began
        self._ahead = 0  # samples in batches that were made so far, those that workers read ahead included
        self._resumed = False  # a state was loaded or samples were skipped, and nothing was read since
        self._named = False  # `set_epoch` named the pass, and nothing was read since
        self._read = False
        self._empty = 0  # loops without a batch, one after another
        self.generation = 0
        self._take_rank(rank, world_size)

    def __iter__(self) -> Iterator[Turn]:
        """Iterate over the rest of this pass, or over the next if this one came to its end."""
        turns = self.begin()
        generation = self.generation
        for turn in turns:
            self.require_unmoved(generation)
            self.take(turn)
            self._ahead = turn.ahead
            yield turn._replace(addresses=turn.addresses[: len(turn.addresses) - turn.filled], filled=0)

    def __len__(self) -> int:
        """Count the batches that this rank reads in a pass; for a blend in its run, also after the run has ended.

        If a length is 0, Lightning takes no batch from the loader, now or later.
        """
        return self._count(*self._whole)

    @property
    def remaining(self) -> int:
        """Batches that this rank has yet to read in this pass."""
        return self._count(self.consumed, self._end)

    @property
    def consumed(self) -> int:
        """The number of samples before the next global batch, in all passes, the same on every rank."""
        return self.place.samples

    @property
    def _end(self) -> int:
        """The first sample after this pass."""
        return self.stream.order.bounds(self.place.number)[1]

    @property
    def left_out(self) -> int:
        """The number of rows of a pass, of every length, that are in no global batch."""
        if self.stream.several:
            return self.stream.left_out(self.place.number)
        if not self.drop_last:
            return 0
        first, last = self._whole
        return (last - first) % self.batch_size

    @property
    def _whole(self) -> tuple[int, int]:
        """The samples of this pass; for a blend, the samples of its run, also after it has ended."""
        return self.stream.order.bounds(self.place.number if self.stream.order.endless else 0)

    @property
    def finished(self) -> bool:
        """Whether no batch is left in this pass."""
        return self._end - self.consumed < (self.batch_size if self.drop_last else 1)

    @property
    def passed(self) -> int:
        """The number of samples of this pass before the next global batch."""
        return self.consumed - self._whole[0]

    @property
    def rows(self) -> dict[str, int]:
        """The number of samples that each source has given so far, by name; the source of a dataset has the name ""."""
        given = self.stream.order.before(self.consumed).tolist()
        return dict(zip(self.stream.sources, given, strict=True))

    def reweight(self, weights: Mapping[str, float], ramp_rows: int = 0) -> int:
        """Change the weights of a blend's sources, as `Dealt.reweight` does, behind all batches that were read ahead.

        Raises:
            UsageError: not a blend.
        """
        order = self.stream.order
        if not isinstance(order, Dealt):
            raise UsageError("bad-option", "not a blend", remedy="give the loader a blend", where="weights")
        return order.reweight(weights, self._ahead, ramp_rows)

    def settle(self, rank: int, world_size: int) -> None:
        """Read as this rank from now on, for a process that learns its rank after its loader was made.

        Raises:
            UsageError: batches were read as another rank already; or there is no such rank.
        """
        if (rank, world_size) == (self.rank, self.world_size):
            return
        what = f"read as rank {self.rank} of {self.world_size}, but this process is rank {rank} of {world_size} now"
        _require(not self._read, what, "make the loader anew, or give it rank and world_size", "rank")
        self._take_rank(rank, world_size)

    def require_unmoved(self, generation: int) -> None:
        """Refuse to continue an iteration after another one, `set_epoch`, `skip` or a loaded state moved the place.

        Args:
            generation: the number in `generation` when the iteration began.

        Raises:
            UsageError: it is another number now.
        """
        what = "another loop, set_epoch, skip or load_state_dict has moved the loader since this loop began"
        _require(generation == self.generation, what, "finish or break out of the loop first", "loader")

    def reset(self) -> None:
        """Begin with the first sample again."""
        self._go_to(RunPlace(0, 0))

    def set_epoch(self, number: int) -> None:
        """Have the pass of this number in the next loop, as `Loader.set_epoch` does; raises what that raises."""
        _require(_whole(number) and number >= 0, f"{number!r} is no whole number from 0", "give 0 or more", "epoch")
        first, last = self.stream.order.bounds(number)
        in_this_pass = self._resumed and first < self.consumed <= last
        # Samples at the end of a blend that fill no batch stay unread: a run that is made longer begins with them.
        after_the_run = not self.stream.order.endless and number > 0 and self.finished
        if not in_this_pass and not after_the_run:
            begins = self.consumed in (0, first)  # at 0 nothing is trained yet, so any pass may begin
            # Samples at the end of a pass that fill no batch are never consumed: so a pass may be over before its end.
            over = self.finished and number == self.place.number + 1
            if self._resumed and not begins and not over:
                what = f"samples {first:,} to {last:,}, but the state that was loaded is at {self.consumed:,}"
                remedy = f"set epoch {self.place.number}, where it lies, or call reset before to give it up"
                raise UsageError("state-elsewhere", f"epoch {number} has the {what}", remedy=remedy, where="set_epoch")
            self._go_to(RunPlace(first, number))
        self._named = True

    def skip(self, samples: int) -> None:
        """Skip the next samples, as `Loader.skip` does; raises what that raises."""
        right = _whole(samples) and samples >= 0
        _require(right, f"{samples!r} is no whole number from 0", "give 0 or more", "samples")
        first = self._next_place().samples
        left = self._end - first
        if not self.stream.order.endless and samples > left:
            what, remedy = f"{samples:,} are to be skipped, but the run has {left:,} left", "skip fewer"
            raise UsageError("run-ended", what, remedy=remedy, where="samples")
        self._resume_at(first + samples)

    def begin(self) -> Iterator[Turn]:
        """Begin the rest of this pass, or the next pass if nothing is left. Every rank takes the same number of turns.

        Raises:
            UsageError: the run of a blend ended many loops ago.
        """
        self.place = self._begun = self._next_place()
        self._resumed = self._named = False
        self._read = True
        self.generation += 1
        self._count_empty_loops()
        return self._turns(self.consumed, self._end)

    def take(self, turn: Turn) -> None:
        """Move on to the place behind a turn of the present iteration."""
        self.place = RunPlace(turn.consumed, self.place.number)

    def together(self, turns: Iterable[Turn], rows: int) -> Iterator[list[Turn]]:
        """Group turns that are read at once: first a single turn, so that training begins soon, then up to `rows` rows.

        A group never reaches beyond a block of a blend: so `reweight` has the same effect as if turns were read one by
        one. With `rows` 0 every turn stays alone.
        """
        group: list[Turn] = []
        size = most = settled = 0  # rows in the group; rows that it may have; end of the block that it begins in
        for turn in turns:
            # With `most` 0 a turn is alone even if neither it nor the next one has rows.
            if group and (not most or size + len(turn.addresses) > most or turn.ahead > settled):
                self._ahead = group[-1].ahead
                yield group
                # Groups double. A group may be small because a block ended, so the larger of the two is doubled.
                group, size, most = [], 0, min(2 * max(size, most), rows)
            if not group:
                # `reweight` may still change the samples behind this block before the next turn is read.
                settled = self.stream.order.next_block(turn.ahead)
            group.append(turn)
            size += len(turn.addresses)
        if group:
            self._ahead = group[-1].ahead
            yield group

    def fewest(self) -> Iterator[tuple[int, int]]:
        """Yield for every turn of a pass the rows of its global batch, and the fewest of them that a rank gets.

        A validation refuses turns in which a rank gets none.
        """
        for batch in self._batches(*self.stream.order.bounds(self.place.number)):
            size = self._size(batch.rows)
            for turn in range(self._turns_of(batch.rows)):
                # Rounded down: the last rank gets the fewest rows, so it runs out first.
                yield batch.rows, max(0, min(size, batch.rows // self.world_size - turn * size))

    def state_dict(self, taken: int | None = None) -> dict[str, str]:
        """Return the state to resume from: one text, with the samples consumed of each source, and their identities.

        Args:
            taken: batches of this iteration that the training loop has received, if workers of a plain `DataLoader`
                read ahead; by default all batches that were made.
        """
        if taken is None:
            return written(self.stream, self.consumed)
        return written(self.stream, self._after(taken))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where another run stopped, as `Loader.load_state_dict` does; raises what that raises."""
        self._resume_at(restore(self.stream, state))

    def _after(self, taken: int) -> int:
        """Return the number of samples that are consumed after some turns of this iteration."""
        consumed = self._begun.samples
        _, end = self.stream.order.bounds(self._begun.number)
        for batch in self._batches(consumed, end):
            taken -= self._turns_of(batch.rows)
            if taken < 0:  # a global batch counts with its last turn: until then a resumed run reads it again
                break
            consumed = batch.last
        return consumed

    def _count(self, first: int, last: int) -> int:
        """Count the batches that this rank reads from the samples ``first:last``."""
        if self.stream.several or self.micro_batch_size is not None:
            return sum(self._turns_of(batch.rows) for batch in self._batches(first, last))
        whole, rest = divmod(last - first, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def _take_rank(self, rank: int, world_size: int) -> None:
        """Become this rank, if there is such a rank and it can share global batches evenly."""
        _require(0 <= rank < world_size, f"{rank} is not a rank of {world_size}", "give a rank from 0", "rank")
        what = f"{self.batch_size} samples can't be divided evenly among {world_size} ranks"
        even = self.stream.several or self.batch_size % world_size == 0
        _require(even, what, "give a multiple of the world size", "batch_size")
        self.rank = rank
        self.world_size = world_size

    def _next_place(self) -> RunPlace:
        """Return the place at which the next iteration begins."""
        if self._named or not self.finished or not self.stream.order.endless:
            return self.place
        number = self.place.number + 1
        return RunPlace(self.stream.order.bounds(number)[0], number)

    def _count_empty_loops(self) -> None:
        """Warn once that a run has ended; stop a trainer that begins one empty loop after another."""
        if not self.finished:
            self._empty = 0
            return
        self._empty += 1
        what, remedy = f"the run ended with its {len(self.stream):,} rows", "make it longer in the blend"
        if self.stream.order.endless:
            return
        if self._empty > _EMPTY_LOOPS:
            raise UsageError("run-ended", what, remedy=remedy, where=self.stream.name)
        if self._empty == 1:
            warn("run-ended", f"{what}, so this loop is empty", remedy=remedy, where=self.stream.name)

    def _resume_at(self, samples: int) -> None:
        """Move to the place after this many samples, to continue the pass that it lies in, or at whose end it lies."""
        number = 0
        if len(self.stream) and samples:  # `pass_of` divides by the items of an epoch: an empty dataset has none
            number = self.stream.order.pass_of(samples - 1)
        self._go_to(RunPlace(samples, number))
        self._resumed = True

    def _go_to(self, place: RunPlace) -> None:
        """Move to a place, of which nothing is read yet."""
        self.generation += 1
        self.place = self._begun = place
        self._ahead = place.samples
        self._resumed = self._named = False

    def _most(self, rows: int) -> int:
        """Return the number of rows that the first rank gets of a global batch: no other rank gets more."""
        return -(-rows // self.world_size)

    def _size(self, rows: int) -> int:
        """Return the rows of a turn: a micro-batch, or all rows of the first rank in a global batch of `rows`."""
        return self.micro_batch_size or max(1, self._most(rows))

    def _turns_of(self, rows: int) -> int:
        """Count the turns of a global batch of this many rows: every rank has as many, even one without rows."""
        return -(-max(1, self._most(rows)) // self._size(rows))

    def _batches(self, consumed: int, end: int) -> Iterator[_Global]:
        """Yield the global batches of the samples ``consumed:end``."""
        while consumed < end:
            size, left = self.batch_size, end - consumed
            if self.even:
                # As many batches as there would be of the full size. Rounding up leaves less for later batches, so none
                # is more than one sample larger than a later one.
                batches = -(-left // size)
                size = -(-left // batches)
            if self.drop_last and left < self.batch_size:
                return
            last = min(consumed + size, end)
            yield _Global(consumed, last, self.stream.rows_of(consumed, last))
            consumed = last

    def _turns(self, consumed: int, end: int) -> Iterator[Turn]:
        """Yield the turns of this rank in the samples ``consumed:end``."""
        while ahead := self._next_batches(consumed, end):
            consumed = ahead[-1].last
            for batch, share in zip(ahead, self._shares(ahead), strict=True):
                size, turns = self._size(batch.rows), self._turns_of(batch.rows)
                for turn in range(turns):
                    mine = share.addresses[turn * size : (turn + 1) * size]
                    filled = 0
                    if self.fill:
                        filled = min(size, self._most(batch.rows) - turn * size) - len(mine)
                        mine = np.concatenate([mine, np.repeat(share.first, filled, axis=0)])
                    # A global batch counts as consumed with its last turn: until then a resumed run reads it again.
                    after = batch.last if turn + 1 == turns else batch.first
                    yield Turn(mine, share.length, after, batch.last, filled)

    def _next_batches(self, consumed: int, end: int) -> list[_Global]:
        """Return the next global batches, whose rows are located at once: many take little more time than one.

        All of them lie in one block of a blend: for later blocks `reweight` may still change the weights.
        """
        most = _DEALT if self.balance else _LOCATED
        batches: list[_Global] = []
        settled = 0
        for batch in self._batches(consumed, end):
            if batches and (batch.last > settled or len(batches) == most):
                break
            if not batches:
                settled = self.stream.order.next_block(batch.last)
            batches.append(batch)
        return batches

    def _shares(self, batches: Sequence[_Global]) -> list[_Share]:
        """Return this rank's share of each global batch."""
        every = self.stream.addresses(batches[0].first, batches[-1].last)
        whole, shares, begin = [], [], 0
        for batch in batches:
            rows = every[begin : begin + batch.rows]
            begin += batch.rows
            whole.append(rows)
            share = _Share(rows[self.rank :: self.world_size], rows[:1], int(rows[0, LENGTH]))
            self._require_even(batch, share.length)
            shares.append(share)
        if self.balance is None:
            return shares
        # Batches with equally many rows of one length go together: their costs are one array (batches, rows).
        groups: dict[tuple[int, int], list[int]] = {}
        for number, (batch, share) in enumerate(zip(batches, shares, strict=True)):
            if batch.rows % self.world_size == 0:
                groups.setdefault((batch.rows, share.length), []).append(number)
        for (size, _), alike in groups.items():
            # (batches, ranks, rows of a rank): numbers of rows in their global batch
            costs = self.stream.pairs(np.concatenate([whole[number] for number in alike])).reshape(-1, size)
            dealt = dealt_in(self.balance, costs, self.world_size, self.micro_batch_size)[:, self.rank]
            for number, mine in zip(alike, dealt, strict=True):
                shares[number] = shares[number]._replace(addresses=whole[number][mine])
        return shares

    def _require_even(self, batch: _Global, length: int) -> None:
        """Refuse a batch that ranks can't share evenly, of a dataset with several row lengths.

        The last batch of a length in an epoch may be smaller than a full one, and is not refused. If the size of a full
        batch is unknown (None), every uneven batch is refused.
        """
        if not self.stream.several or batch.rows % self.world_size == 0:
            return
        if self.stream.source(0).full_rows(length) in (None, batch.rows):
            ranks = f"{self.world_size} ranks"
            what = f"batch {batch.first} has {batch.rows} rows, which can't be divided evenly among {ranks}"
            remedy = "give batch_tokens so that every batch has a multiple of the world size"
            raise UsageError("bad-option", what, remedy=remedy, where="batch_tokens")


def _agreed(stream: Stream, given: int | None) -> int:
    """Return the samples in a global batch: the given number, or that of the stream.

    Raises:
        UsageError: the two differ.
    """
    samples, said = stream.batch_size
    if stream.several:
        _require(
            given in (None, 1), "the dataset's batches are the global batches", "give batch_tokens alone", "batch_size"
        )
        return 1
    if samples is None or given is None:
        return given or samples or 1
    _require(given == samples, f"{given} rows, but {said} {samples}", "give one of the two", "batch_size")
    return samples


def _whole(value: object) -> bool:
    """Return whether a value is a whole number; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _require(holds: bool, what: str, remedy: str, where: str) -> None:
    """Raise a UsageError unless a condition holds."""
    if not holds:
        raise UsageError("bad-option", what, remedy=remedy, where=where)
