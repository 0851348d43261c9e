"""What lies between two passes: every atom of a plan in the file of a partition, here or in the store of the output."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from packtool.places.local import LocalPlace
from packtool.plan import Plan
from packtool.storage.output import Destination
from packtool.writing.scratch import ScratchFile


class PartitionContents(msgspec.Struct, frozen=True):
    """What a task put into each partition: atoms, units and segments, and the xxh3-128 of the file.

    The files are not flushed to the disk, since most of them are read and gone before the system would do so: their
    hashes tell whether they are still what was written when a run is resumed.
    """

    atoms: list[int]
    units: list[int]
    segments: list[int]
    xxh3_128: list[str]


class Outline(Plan):
    """The sizes of a plan whose segments lie with its atoms."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(
            sequence_length=plan.sequence_length,
            unit=plan.unit,
            units=plan.units,
            atom_units=plan.atom_units,
            atom_offsets=plan.atom_offsets,
            last_atom_stays=plan.last_atom_stays,
        )

    def segments(self, units: Any) -> Any:
        raise NotImplementedError("the segments lie with the atoms")


@dataclass(frozen=True)
class Partitions:
    """All atoms of a plan on disk.

    Attributes:
        directory: of the files.
        plan: whose atoms they are.
        dtype: of the tokens.
        pad_id: what fills the last row.
        with_segments: segments are known.
        tasks: what each task put there.
        destination: of the output, if the files are in its store; None where they are in the directory.
    """

    directory: Path
    plan: Outline
    dtype: np.dtype[Any]
    pad_id: int
    with_segments: bool
    tasks: list[PartitionContents] = field(default_factory=list)
    destination: Destination | None = None

    def files(self, number: int) -> list[ScratchFile]:
        """The files of a partition in stored order."""
        found = []
        for task, contents in enumerate(self.tasks):
            if contents.atoms[number]:
                path, digest = scratch_file(self.directory, number, task), contents.xxh3_128[number]
                if self.destination is None:
                    found.append(ScratchFile(LocalPlace(self.directory), path.name, digest))
                else:
                    found.append(ScratchFile(self.destination.place, self.destination.name(path), digest))
        return found

    def remove(self, number: int) -> None:
        """Remove the files of a partition; those in a store go with all unfinished work there."""
        if self.destination is None:
            LocalPlace(self.directory).remove(file.name for file in self.files(number))


def scratch_file(directory: Path, partition: int, task: int) -> Path:
    """The share of one partition that one task wrote."""
    return directory / f"{partition:05d}-{task:02d}.atoms"
