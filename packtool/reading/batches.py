"""Choose the rows that a rank reads, batch by batch: the same global order for any number of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from packtool.errors import UsageError
from packtool.reading.order import BlendOrder
from packtool.reading.position import Position
from packtool.reading.sharing import GlobalBatch, MicroBatch, Sharing, require_size
from packtool.reading.state import restore, written
from packtool.reading.stream import LENGTH, Stream
from packtool.support.sizes import plural

_DEALT = 512  # global batches that are dealt at once, by the costs of their rows
_LOCATED = 64  # global batches whose rows are located at once, without costs


class GlobalBatches:
    """The batches of one rank, pass after pass, and the position of the run in them: a batch sampler of PyTorch.

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
        micro_batch_size: rows that a rank reads at a time; a global batch then takes several micro-batches.
        drop_last: leave out samples at the end of a pass that do not fill a global batch. Otherwise the last batch is
            smaller, and ranks may differ by a row.
        balance: deal the rows of a global batch so that ranks attend equally long: ``step`` where ranks meet once a
            step, ``turn`` where ranks meet at every micro-batch, as with FSDP. Global batches and states stay the
            same. A last batch that ranks can't share equally is dealt as without `balance`.
        fill: if ranks can't share a global batch equally, ranks with fewer rows get the first row of the batch again:
            only in the micro-batches of `begin`, which have the number of these rows in `filled`.

    Attributes:
        even: without `drop_last`, make all batches of a pass as equal as possible, rather than the last one small.
        position: behind the last global batch, the same on every rank; it can be reset, and skip samples.
        sharing: what this rank gets of a global batch.
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
        require_size(batch_size, "batch_size")
        self.stream = stream
        self.batch_size = _agreed(stream, batch_size)
        size = plural(self.batch_size, "sample")
        what = f"a batch of {size} is more than the {len(stream)} of a pass, so there would be no batch"
        remedy = "give a smaller batch, more epochs, or drop_last=False"
        enough = not drop_last or len(stream) >= self.batch_size
        _require(enough, what, remedy, "batch_tokens" if stream.bucketed else "batch_size")
        self.drop_last = drop_last
        self.even = False
        self.sharing = self._able(Sharing(rank, world_size, micro_batch_size, balance, fill))
        self.position = Position(stream.order, self.batch_size if drop_last else 1, stream.name)
        self._read = False  # whether batches were read as this rank

    def __iter__(self) -> Iterator[MicroBatch]:
        """Iterate over the rest of this pass, or over the next if this one came to its end."""
        batches = self.begin()
        generation = self.position.generation
        for batch in batches:
            self.position.require_unmoved(generation)
            self.position.advance(batch.consumed)
            self.position.ahead = batch.ahead
            yield batch._replace(addresses=batch.addresses[: len(batch.addresses) - batch.filled], filled=0)

    def __len__(self) -> int:
        """Count the batches that this rank reads in a pass; for a blend in its run, also after the run has ended.

        If a length is 0, Lightning takes no batch from the loader, now or later.
        """
        return self._count(*self.position.whole)

    @property
    def remaining(self) -> int:
        """Batches that this rank has yet to read in this pass."""
        return self._count(self.position.samples, self.position.end)

    @property
    def consumed(self) -> int:
        """The number of samples before the next global batch, in all passes, the same on every rank."""
        return self.position.samples

    @property
    def left_out(self) -> int:
        """The number of rows of a pass, of every length, that are in no global batch."""
        if self.stream.bucketed:
            return self.stream.left_out(self.position.number)
        if not self.drop_last:
            return 0
        first, last = self.position.whole
        return (last - first) % self.batch_size

    @property
    def rows(self) -> dict[str, int]:
        """The number of samples that each source has given so far, by name; the source of a dataset has the name ""."""
        given = self.stream.order.before(self.consumed).tolist()
        return dict(zip(self.stream.sources, given, strict=True))

    def reweight(self, weights: Mapping[str, float], ramp_rows: int = 0) -> int:
        """Change a blend's weights, as `BlendOrder.reweight` does, behind all batches that were read ahead.

        Raises:
            UsageError: not a blend.
        """
        order = self.stream.order
        if not isinstance(order, BlendOrder):
            raise UsageError("bad-option", "not a blend", remedy="give the loader a blend", where="weights")
        return order.reweight(weights, self.position.ahead, ramp_rows)

    def settle(self, rank: int, world_size: int) -> None:
        """Read as this rank from now on, for a process that learns its rank after its loader was made.

        Raises:
            UsageError: batches were read as another rank already; or there is no such rank.
        """
        now = self.sharing
        if (rank, world_size) == (now.rank, now.world_size):
            return
        what = f"read as rank {now.rank} of {now.world_size}, but this process is rank {rank} of {world_size} now"
        _require(not self._read, what, "make the loader anew, or give it rank and world_size", "rank")
        self.sharing = self._able(replace(now, rank=rank, world_size=world_size))

    def set_epoch(self, number: int) -> None:
        """Have the pass of this number in the next loop, by the name that trainers look for on a sampler."""
        self.position.set_epoch(number)

    def begin(self) -> Iterator[MicroBatch]:
        """Begin the rest of this pass, or the next pass if nothing is left. Every rank has as many micro-batches.

        Raises:
            UsageError: the run of a blend ended many loops ago.
        """
        first, last = self.position.begin()
        self._read = True
        return self._micro_batches(first, last)

    def grouped(self, batches: Iterable[MicroBatch], rows: int) -> Iterator[list[MicroBatch]]:
        """Group micro-batches that are read at once: first a single one, so that training begins soon, then more.

        A group never reaches beyond a block of a blend: so `reweight` has the same effect as if micro-batches were read
        one by one.

        Args:
            rows: most rows of a group; 0 to leave every micro-batch alone.
        """
        group: list[MicroBatch] = []
        size = most = settled = 0  # rows in the group; rows that it may have; end of the block that it begins in
        for batch in batches:
            # With `most` 0 a micro-batch is alone even if neither it nor the next one has rows.
            if group and (not most or size + len(batch.addresses) > most or batch.ahead > settled):
                self.position.ahead = group[-1].ahead
                yield group
                # Groups double. A group may be small because a block ended, so the larger of the two is doubled.
                group, size, most = [], 0, min(2 * max(size, most), rows)
            if not group:
                # `reweight` may still change the samples behind this block before the next micro-batch is read.
                settled = self.stream.order.next_block(batch.ahead)
            group.append(batch)
            size += len(batch.addresses)
        if group:
            self.position.ahead = group[-1].ahead
            yield group

    def fewest(self) -> Iterator[tuple[int, int]]:
        """Yield for each micro-batch of a pass the rows of its global batch, and the fewest of them that a rank gets.

        A validation refuses micro-batches of which a rank gets none.
        """
        for _, _, rows in self._batches(*self.position.whole):
            for fewest in self.sharing.fewest(rows):
                yield rows, fewest

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
        self.position.resume(restore(self.stream, state))

    def _after(self, taken: int) -> int:
        """Return the number of samples that are consumed after some micro-batches of this iteration."""
        consumed = self.position.started
        for _, last, rows in self._batches(consumed, self.position.end):
            taken -= self.sharing.count(rows)
            if taken < 0:  # a global batch counts with its last micro-batch: until then a resumed run reads it again
                break
            consumed = last
        return consumed

    def _count(self, first: int, last: int) -> int:
        """Count the batches that this rank reads from the samples ``first:last``."""
        if self.stream.bucketed or self.sharing.micro_batch_size is not None:
            return sum(self.sharing.count(rows) for _, _, rows in self._batches(first, last))
        whole, rest = divmod(last - first, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def _able(self, sharing: Sharing) -> Sharing:
        """Return a sharing by which ranks get equally many samples of a global batch; refuse any other."""
        what = f"{self.batch_size} samples can't be divided evenly among {sharing.world_size} ranks"
        even = self.stream.bucketed or self.batch_size % sharing.world_size == 0
        _require(even, what, "give a multiple of the world size", "batch_size")
        return sharing

    def _batches(self, consumed: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield of each global batch of the samples ``consumed:end`` the first, the first after it, and the rows."""
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
            yield consumed, last, self.stream.rows_of(consumed, last)
            consumed = last

    def _micro_batches(self, consumed: int, end: int) -> Iterator[MicroBatch]:
        """Yield the micro-batches of this rank in the samples ``consumed:end``."""
        while batches := self._next_batches(consumed, end):
            consumed = batches[-1].last
            shares = self.sharing.shares(batches, self.stream.pairs)
            for batch, share in zip(batches, shares, strict=True):
                yield from self.sharing.micro_batches(batch, share)

    def _next_batches(self, consumed: int, end: int) -> list[GlobalBatch]:
        """Return the next global batches, whose rows are located at once: many take little more time than one.

        All of them lie in one block of a blend: for later blocks `reweight` may still change the weights.
        """
        most = _DEALT if self.sharing.balance else _LOCATED
        bounds: list[tuple[int, int, int]] = []
        settled = 0
        for first, last, rows in self._batches(consumed, end):
            if bounds and (last > settled or len(bounds) == most):
                break
            if not bounds:
                settled = self.stream.order.next_block(last)
            bounds.append((first, last, rows))
        return self._located(bounds)

    def _located(self, bounds: Sequence[tuple[int, int, int]]) -> list[GlobalBatch]:
        """Return global batches with the addresses of their rows, by their first and last samples, and their rows."""
        if not bounds:
            return []
        addresses = self.stream.addresses(bounds[0][0], bounds[-1][1])
        batches = []
        start = 0
        for first, last, rows in bounds:
            length = int(addresses[start, LENGTH])
            batch = GlobalBatch(first, last, length, addresses[start : start + rows])
            self._require_even(batch)
            batches.append(batch)
            start += rows
        return batches

    def _require_even(self, batch: GlobalBatch) -> None:
        """Refuse a batch that ranks can't share evenly, of a dataset with several row lengths.

        The last batch of a length in an epoch may be smaller than a full one, and is not refused. If the size of a full
        batch is unknown (None), every uneven batch is refused.
        """
        rows, ranks = len(batch.addresses), self.sharing.world_size
        if not self.stream.bucketed or rows % ranks == 0:
            return
        if self.stream.source(0).full_rows(batch.length) in (None, rows):
            what = f"batch {batch.first} has {rows} rows, which can't be divided evenly among {ranks} ranks"
            remedy = "give batch_tokens so that every batch has a multiple of the world size"
            raise UsageError("bad-option", what, remedy=remedy, where="batch_tokens")


def _agreed(stream: Stream, given: int | None) -> int:
    """Return the samples in a global batch: the given number, or that of the stream; refuse two that differ."""
    samples, origin = stream.batch_size
    if stream.bucketed:
        _require(
            given in (None, 1), "the dataset's batches are the global batches", "give batch_tokens alone", "batch_size"
        )
        return 1
    if samples is None or given is None:
        return given or samples or 1
    _require(given == samples, f"{given} rows, but {origin} {samples}", "give one of the two", "batch_size")
    return samples


def _require(holds: bool, what: str, remedy: str, where: str) -> None:
    """Raise a UsageError unless a condition holds."""
    if not holds:
        raise UsageError("bad-option", what, remedy=remedy, where=where)
