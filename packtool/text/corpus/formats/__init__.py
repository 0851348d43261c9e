"""Formats of input, one file each: its name, its suffixes, and how its records come."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePosixPath

from packtool.options.names import TEXT_FORMATS
from packtool.text.corpus.decompress import SUFFIXES
from packtool.text.corpus.text_format import TextFormat

_modules = [import_module(f"{__name__}.{name}") for name in TEXT_FORMATS]
FORMATS: dict[str, TextFormat] = {module.FORMAT.name: module.FORMAT for module in _modules}
"""Every format by its name, in the order of the documentation."""
_BY_SUFFIX = {suffix: format for format in FORMATS.values() for suffix in format.suffixes}
_METADATA = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
"""JSON files that other tools put next to data."""


def by_suffix(name: str) -> TextFormat | None:
    """Return the format that a name's suffix tells, or None.

    >>> by_suffix("a/b.jsonl.gz").name, by_suffix("README.md"), by_suffix("dataset_info.json")
    ('jsonl', None, None)
    """
    if PurePosixPath(name).name in _METADATA:
        return None
    return _BY_SUFFIX.get(suffix_of(name))


def suffix_of(name: str) -> str:
    """Return the last suffix that does not name a compression, in small letters; "" if there is none."""
    path = PurePosixPath(name)
    while path.suffix.lower() in SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()
