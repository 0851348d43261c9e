"""Whatever a run does, it reads a list of rows: loops that are left or run out, states, skips, epochs that are set."""

from itertools import islice
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import packtool
from packtool.reading.batches import GlobalBatches
from packtool.reading.sharing import MicroBatch
from packtool.reading.stream import LENGTH, Stream
from tests.examples import examples
from tests.making import Make

SIZES = {"rows": (2, 8, 9), "repacked": (4,), "several": (1,), "blend": (2, 8)}
"""Batch sizes that a run of each kind may have."""


@pytest.fixture(scope="module")
def sources(make: Make) -> dict[str, Any]:
    options = {"strategy": "concat", "sequence_length": 32}
    place = make(
        [7, 30, 3, 18, 25, 9, 11, 28, 5, 16] * 6,
        rows=options,
        index={**options, "index_only": True, "seed": 3},
        several={"strategy": "buckets", "buckets": (8, 16, 32)},
    )
    blend = packtool.Blend({"rows": place / "rows", "index": place / "index"}, rows=75)
    return {"rows": place / "rows", "repacked": place / "index", "several": place / "several", "blend": blend}


def joined(ranks: list[list[MicroBatch]]) -> list[list[int]]:
    """The rows of a global batch in their order, from the turns that each rank reads of it."""
    shares = [[row for turn in turns for row in turn.addresses.tolist()] for turns in ranks]
    return [shares[i % len(shares)][i // len(shares)] for i in range(sum(map(len, shares)))]


class Schedule(RuleBasedStateMachine):
    """All ranks of a run, and its place in the list of samples, kept by hand.

    Attributes:
        samples: those that were read or skipped.
        number: of the pass. A blend has a single one, and empty ones after it.
        named: the next loop has this pass, even if nothing is left of it.
        moved: to a place inside this pass, by a state or a skip, and nothing was read since.
    """

    def __init__(self, sources: dict[str, Any]) -> None:
        super().__init__()
        self.sources = sources
        self.samples = self.number = 0
        self.named = self.moved = False

    @initialize(kind=st.sampled_from(list(SIZES)), data=st.data())
    def begin(self, kind: str, data: st.DataObject) -> None:
        self.kind, self.blend = kind, kind == "blend"
        self.make(data)
        self.state = self.ranks[0].state_dict()

    def make(self, data: st.DataObject) -> None:
        """Make all ranks; another time there may be others, that read other passes or batches."""
        options: dict[str, Any] = {"repacked": {"repack": True}, "several": {"batch_tokens": 64}}.get(self.kind, {})
        if not self.blend:
            options["epochs"] = data.draw(st.integers(1, 2), label="epochs")
        self.stream = Stream(self.sources[self.kind], **options)
        self.size = data.draw(st.sampled_from(SIZES[self.kind]), label="batch size")
        self.drop = data.draw(st.booleans(), label="drop last")
        shared = self.size % 2 == 0 or (self.kind == "several" and not self.drop)  # else a rank would have fewer rows
        world = data.draw(st.sampled_from([1, 2] if shared else [1]), label="ranks")
        micro = data.draw(st.sampled_from([None, 1, 3]), label="micro batch size")
        given: dict[str, Any] = {"world_size": world, "micro_batch_size": micro, "drop_last": self.drop}
        self.ranks = [GlobalBatches(self.stream, self.size, rank=rank, **given) for rank in range(world)]

    @property
    def bounds(self) -> tuple[int, int]:
        length = len(self.stream)
        return (0, length) if self.blend else (self.number * length, (self.number + 1) * length)

    @property
    def left(self) -> int:
        """The global batches that are left in this pass."""
        left = self.bounds[1] - self.samples
        return left // self.size if self.drop else -(-left // self.size)

    def go_on(self) -> None:
        """Be where the next loop begins."""
        if not self.left and not self.named and not self.blend:
            self.number += 1
            self.samples, _ = self.bounds

    def move(self, samples: int) -> None:
        self.samples = samples
        self.number = 0 if self.blend else max(samples - 1, 0) // len(self.stream)
        self.named, self.moved = False, True

    @rule(data=st.data(), ahead=st.sampled_from([0, 0, 3]))
    def loop(self, data: st.DataObject, ahead: int) -> None:
        """Read some batches, or all that are left and ask for one more; workers read turns ahead of that."""
        self.go_on()
        self.named = self.moved = False
        batches = None
        if self.left:  # a loop that is asked for nothing does not begin
            batches = data.draw(st.none() | st.just(self.left) | st.integers(1, self.left), label="batches")
        loops, turns = [iter(each) for each in self.ranks], [list[MicroBatch]() for _ in self.ranks]
        came: list[list[list[int]]] = []
        taken = 0
        while len(came) != batches:
            part = [list(islice(loop, 1)) for loop in loops]
            if not any(part):
                break
            taken += 1
            for mine, (turn,) in zip(turns, part, strict=True):
                assert set(turn.addresses[:, LENGTH].tolist()) <= {turn.length}
                mine.append(turn)
            if turns[0][-1].consumed == turns[0][-1].ahead:  # the last turn of its global batch
                came.append(joined(turns))
                turns = [[] for _ in self.ranks]
        if batches is None and self.samples == self.bounds[0] and not self.blend:
            assert all(taken == len(rank) for rank in self.ranks), "a pass is as long as it says"
        read = self.left if batches is None else batches
        first, self.samples = self.samples, min(self.samples + read * self.size, self.bounds[1])
        assert len(came) == read
        assert [row for batch in came for row in batch] == self.stream.addresses(first, self.samples).tolist()
        self.save()
        if ahead and taken:
            for rank, loop in zip(self.ranks, loops, strict=True):
                list(islice(loop, ahead))
                assert rank.state_dict(taken=taken) == self.state
                rank.load_state_dict(self.state)  # what workers read and nobody took is read again
            self.move(self.samples)

    @rule()
    def save(self) -> None:
        self.state, *others = [rank.state_dict() for rank in self.ranks]
        assert all(each == self.state for each in others)

    @rule(data=st.data())
    def load(self, data: st.DataObject) -> None:
        """A state of now or before, as other ranks."""
        self.make(data)
        for rank in self.ranks:
            rank.load_state_dict(self.state)
        self.move(self.ranks[0].consumed)

    @rule(further=st.integers(0, 3))
    def epoch(self, further: int) -> None:
        """Set the epoch of this place, or, where that may be, another one."""
        number, after_the_run = further, self.blend and not self.left
        if self.moved and self.samples and not after_the_run:
            number = self.number + (min(further, 1) if not self.left else 0)
        if self.blend:
            number = min(number, 1)
        for rank in self.ranks:
            rank.set_epoch(number)
        stays = (self.moved and number == self.number and self.samples) or (after_the_run and number)
        self.named = True
        if not stays:
            self.number, self.moved = number, False
            self.samples = number * len(self.stream)

    @rule(samples=st.integers(0, 20))
    def skip(self, samples: int) -> None:
        first, number = self.samples, self.number
        self.go_on()
        if self.blend and self.samples + samples > self.bounds[1]:
            self.samples, self.number = first, number
            return
        for rank in self.ranks:
            rank.position.skip(samples)
        self.move(self.samples + samples)

    @rule()
    def reset(self) -> None:
        for rank in self.ranks:
            rank.position.reset()
        self.samples = self.number = 0
        self.named = self.moved = False

    @invariant()
    def place(self) -> None:
        if hasattr(self, "ranks"):
            for rank in self.ranks:
                assert (rank.consumed, sum(rank.rows.values())) == (self.samples, self.samples)
                assert rank.position.whole[0] == self.bounds[0]
                assert rank.position.finished == (not self.left)


@pytest.mark.filterwarnings("ignore:.*the run ended with its")
def test_a_run_reads_the_list_of_rows(sources: dict[str, Any]) -> None:
    run_state_machine_as_test(lambda: Schedule(sources), settings=examples(150, *HealthCheck))
