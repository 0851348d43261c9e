"""Pieces are done once, whoever does them, and again only where their record or their files are not what they were."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from packtool.engines import Engine, Processes, Threads, Worker
from packtool.errors import DataError
from packtool.formats.files import write_array
from packtool.outputs.output import Output, State
from packtool.outputs.pieces import Pieces
from packtool.places.local import LocalPlace
from packtool.places.npy import FileEntry
from tests.interrupting import DAMAGES

COUNT = 7


@dataclass
class Work:
    """Writes the square of a number to a file of its own.

    Attributes:
        place: directory of the files and records.
        fails: the piece that fails.
        key: of the output.
        calls: pieces that were done.
    """

    place: Path
    fails: int = -1
    key: str = "k"

    def __post_init__(self) -> None:
        self.calls: list[int] = []
        self.place.mkdir(exist_ok=True)

    @property
    def pieces(self) -> Pieces[list[FileEntry]]:
        output = Output(LocalPlace(self.place), self.place, self.place, State("square", self.key))
        (self.place / "lock").touch()
        return Pieces(output, "square", list[FileEntry], lambda entries: entries)

    def __call__(self, number: int, worker: Worker) -> list[FileEntry]:
        if number == self.fails:
            raise DataError("bad", f"piece {number}", remedy="fix it")
        self.calls.append(number)
        return [write_array(self.place / f"tokens-{number:05d}.npy", np.array([number**2]))]

    def run(self, engine: Engine, **options: Any) -> Mapping[int, list[FileEntry]]:
        tasks = {number: number for number in range(COUNT)}
        done = self.pieces.found(tasks, engine)
        return dict(self.pieces.run(self, tasks, engine, done=done, **options))

    def whole(self) -> bool:
        found = [np.load(self.place / f"tokens-{number:05d}.npy") for number in range(COUNT)]
        return [int(each[0]) for each in found] == [number**2 for number in range(COUNT)]


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sets(st.integers(0, COUNT - 1)),
    st.sets(st.integers(0, COUNT - 1)),
    st.sampled_from(DAMAGES),
    st.sampled_from([Threads(2), Processes(1)]),
)
def test_damaged_pieces_are_done_again_and_no_others(
    tmp_path_factory: pytest.TempPathFactory,
    files: set[int],
    records: set[int],
    damage: Callable[[Path], object],
    engine: Engine,
) -> None:
    place = tmp_path_factory.mktemp("work")
    work = Work(place)
    first = work.run(engine)
    assert sorted(work.calls) == sorted(first) == list(range(COUNT))
    for number in files:
        damage(place / f"tokens-{number:05d}.npy")
    for number in records:
        damage(place / work.pieces.name(number))
    again = Work(place)
    assert again.run(engine) == first
    assert sorted(again.calls) == sorted(files | records)
    assert again.whole()


@pytest.mark.parametrize("fails", range(COUNT))
def test_what_was_done_before_a_failure_is_kept(tmp_path: Path, fails: int) -> None:
    work = Work(tmp_path, fails)
    with pytest.raises(DataError, match=f"piece {fails}"):
        work.run(Threads(2))
    kept = work.pieces.numbers()
    assert set(range(fails)) <= set(kept) <= set(work.calls)
    again = Work(tmp_path)
    again.run(Threads(2))
    assert sorted([*kept, *again.calls]) == list(range(COUNT))
    assert again.whole()


def test_a_piece_that_is_forgotten_is_done_again(tmp_path: Path) -> None:
    work = Work(tmp_path)
    work.run(Processes(1))
    work.pieces.forget(3)
    work.run(Processes(1))
    assert work.calls == [*range(COUNT), 3]


def test_a_record_is_of_its_own_piece_and_run(tmp_path: Path) -> None:
    """Copied to the name of another, it would give that one's rows to both."""
    work = Work(tmp_path)
    work.run(Threads(2))
    shutil.copy(tmp_path / work.pieces.name(2), tmp_path / work.pieces.name(5))
    again = Work(tmp_path)
    again.run(Threads(2))
    assert again.calls == [5]
    other = Work(tmp_path, key="other")
    other.run(Threads(2))
    assert sorted(other.calls) == list(range(COUNT))
