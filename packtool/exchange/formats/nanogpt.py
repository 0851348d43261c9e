"""nanoGPT's `train.bin`: ids of 16 bits, one after the other, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from packtool.exchange.files import Place, Written
from packtool.exchange.formats.raw import fill, ids_in
from packtool.exchange.model import Contents, Format, Found, Part, ReadOptions

_IDS = np.dtype("<u2")


def part(place: Place, contents: Contents, part: Part) -> list[Written]:
    return fill(place, "train.bin", contents, part, _IDS)


def finish(place: Place, _: Contents, written: list[list[Written]]) -> list[Written]:
    return [place.publish("train.bin", written)]


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
