"""nanoGPT's `train.bin`: ids of 16 bits (32 with --dtype), one after the other, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from packtool.exchange.files import publish
from packtool.exchange.formats.raw import bare_ids, fill
from packtool.exchange.model import Contents, Format, Part
from packtool.formats.schema import ExportedFile

_IDS = np.dtype("<u2")


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    return fill(directory, "train.bin", contents, part, _IDS)


def finish(directory: Path, _: Contents, written: list[ExportedFile]) -> list[ExportedFile]:
    return [publish(directory / "train.bin", written)]


FORMAT = Format(
    name="nanogpt",
    readers="nanoGPT",
    summary="`train.bin`, 16 bits",
    files="*.bin",
    bare=True,
    shared=True,
    dtypes={2: "<u2", 4: None},
    part=part,
    finish=finish,
    read=bare_ids,
)
