"""OLMo-core's token files: called `.npy`, but bare ids without NumPy's header; EOS alone tells documents apart."""

from __future__ import annotations

from pathlib import Path

from packtool.exchange.files import FileWriter
from packtool.exchange.formats.raw import bare_ids, write_ids
from packtool.exchange.model import Contents, Format, Part
from packtool.formats.schema import ExportedFile


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    with FileWriter(directory / f"tokens-{part.number:05d}.npy") as out:
        return [out.finish(*write_ids(out, contents.blocks(part), FORMAT.dtype(contents)))]


FORMAT = Format(
    name="olmo",
    readers="OLMo-core",
    summary="`.npy` without NumPy's header; it finds documents by EOS",
    files="*.npy",
    blocks=True,
    bare=True,
    part=part,
    read=bare_ids,
)
