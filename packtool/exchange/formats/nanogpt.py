"""nanoGPT's `train.bin`: ids of 16 bits, one after the other, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from packtool.exchange.files import ExportDirectory, Written
from packtool.exchange.formats.raw import fill, ids_in
from packtool.exchange.model import Contents, Format, Found, Part, ReadOptions

_IDS = np.dtype("<u2")


def part(directory: ExportDirectory, contents: Contents, part: Part) -> list[Written]:
    return fill(directory, "train.bin", contents, part, _IDS)


def finish(directory: ExportDirectory, _: Contents, written: list[Written]) -> list[Written]:
    return [directory.publish("train.bin", written)]


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
