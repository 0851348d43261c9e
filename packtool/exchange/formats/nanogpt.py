"""nanoGPT's `train.bin`: ids of 16 bits, one after the other, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from packtool.exchange.files import publish
from packtool.exchange.formats.raw import fill, ids_in
from packtool.exchange.model import Contents, Format, Found, Part, ReadOptions
from packtool.formats.schema import ExportedFile

_IDS = np.dtype("<u2")


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    return fill(directory, "train.bin", contents, part, _IDS)


def finish(directory: Path, _: Contents, written: list[ExportedFile]) -> list[ExportedFile]:
    return [publish(directory / "train.bin", written)]


def read(path: Path, _: ReadOptions) -> Iterator[Found]:
    return ids_in(path, _IDS)


FORMAT = Format(
    name="nanogpt",
    summary="nanoGPT's train.bin: bare ids of 16 bits",
    files="*.bin",
    shared=True,
    dtypes={2: "<u2", 4: None},
    part=part,
    finish=finish,
    read=read,
)
