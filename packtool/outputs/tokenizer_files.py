"""Keep the tokenizer's files with a dataset, so that it can be decoded and added to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from packtool.errors import DataError
from packtool.formats.names import TOKENIZER
from packtool.formats.schema import InputEntry, OtherFile
from packtool.outputs.output import Output
from packtool.places.typed import Typed, place_of


def write_tokenizer(output: Output, files: Mapping[str, bytes]) -> list[OtherFile]:
    """Write a tokenizer's files, by name, and return their entries for the manifest."""
    return [output.file(name, data) for name, data in files.items()]


def read_tokenizer(place: Typed, entries: Sequence[InputEntry]) -> dict[str, bytes]:
    """Return the files of a dataset's tokenizer, by name, after checking them; {} if it has no tokenizer."""
    place = place_of(place)
    return {entry.name: place.checked(entry) for entry in entries}


def copy_tokenizer(source: Typed, entries: Sequence[InputEntry], output: Output) -> list[OtherFile]:
    """Copy a dataset's tokenizer to another dataset."""
    return write_tokenizer(output, read_tokenizer(source, entries))


def require_tokenizer(place: Typed, entries: Sequence[InputEntry], sha256: str) -> None:
    """Raise a DataError unless the tokenizer of a dataset is the one that made its tokens."""
    data = read_tokenizer(place, entries).get(TOKENIZER)
    if data is None:
        return
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        what = f"its sha256 is {digest[:12]}…, but the manifest says {sha256[:12]}…"
        remedy = "make the dataset again, or copy it again"
        raise DataError("other-tokenizer", what, remedy=remedy, where=place_of(place).where(TOKENIZER))
