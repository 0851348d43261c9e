"""Partitions between two passes: every atom of a plan in the file of one, here or in the store of the output."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from packtool.plan import Plan
from packtool.storage.delivery import Delivery
from packtool.writing.scratch import ScratchFile


class PartitionContents(msgspec.Struct, frozen=True):
    """The atoms, units and segments that a task added to each partition, and the xxh3-128 of each file.

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
        delivery: took them there, or to the store that the directory stands for.
    """

    directory: Path
    plan: Outline
    dtype: np.dtype[Any]
    pad_id: int
    with_segments: bool
    tasks: list[PartitionContents]
    delivery: Delivery

    def files(self, number: int) -> list[ScratchFile]:
        """List the files of a partition in stored order."""
        files = []
        for task, contents in enumerate(self.tasks):
            if contents.atoms[number]:
                place, name = self.delivery.locate(scratch_file(self.directory, number, task))
                files.append(ScratchFile(place, name, contents.xxh3_128[number]))
        return files

    def remove(self, number: int) -> None:
        """Remove the files of a partition, which no row needs any more."""
        self.delivery.remove(scratch_file(self.directory, number, task) for task in range(len(self.tasks)))


def scratch_file(directory: Path, partition: int, task: int) -> Path:
    """Name the file with the share of one partition that one task wrote."""
    return directory / f"{partition:05d}-{task:02d}.atoms"
