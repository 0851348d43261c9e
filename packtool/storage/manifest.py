"""Manifests: the last file written, and what makes a directory a dataset.

A manifest holds what the bytes depend on and what they contain; never paths, times, host names, workers or memory, so
that equal input and options give equal manifests. Those other facts go to `run.json`. Its last field is a seal: the
hash of all bytes before it, so that a manifest in which a single bit has changed is refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import xxhash

from packtool.errors import DataError
from packtool.storage.consistency import require_consistent
from packtool.storage.files import write_bytes
from packtool.storage.reading import decode, problem_with, read_file
from packtool.storage.schema import (
    EXPORT,
    FORMAT_VERSION,
    ORDER,
    PACKED,
    TOKEN_STORE,
    Bucket,
    Choice,
    ChosenSource,
    DatasetEntry,
    ExportedFile,
    ExportManifest,
    InputEntry,
    LeftOut,
    Manifest,
    Options,
    OrderManifest,
    PackedManifest,
    PackedShard,
    Shuffle,
    StoreManifest,
    TokenizerInfo,
    TokenShard,
)

__all__ = [
    "Bucket",
    "Choice",
    "ChosenSource",
    "DatasetEntry",
    "ExportManifest",
    "ExportedFile",
    "InputEntry",
    "LeftOut",
    "Manifest",
    "Options",
    "OrderManifest",
    "PackedManifest",
    "PackedShard",
    "Shuffle",
    "StoreManifest",
    "TokenShard",
    "TokenizerInfo",
]

MANIFEST = "manifest.json"
RUN = "run.json"
REPORT = "report.json"
UNFINISHED = "unfinished"

_TYPES: dict[str, type[Manifest]] = {
    TOKEN_STORE: StoreManifest,
    PACKED: PackedManifest,
    ORDER: OrderManifest,
    EXPORT: ExportManifest,
}
_DESCRIPTIONS = {TOKEN_STORE: "a token store", PACKED: "a packed dataset", ORDER: "an order", EXPORT: "an export"}
_SEALED = re.compile(rb'(.*),\n  "xxh3_128": "([0-9a-f]{32})"\n}\n', re.DOTALL)
_Content = TypeVar("_Content")
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")


class _Kind(msgspec.Struct):
    format: str
    format_version: int
    packtool_version: str


def encode(value: Any) -> bytes:
    """Stable, readable JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def sealed(manifest: Manifest | dict[str, Any]) -> bytes:
    """A manifest as it is written: with the hash of all bytes before its last field in that field.

    >>> print(sealed({"format": "example"}).decode(), end="")
    {
      "format": "example",
      "xxh3_128": "4239c0570e39dc3ddcda422d1edbac67"
    }
    """
    body = encode(manifest).removesuffix(b"\n}\n")
    return body + b',\n  "xxh3_128": "' + xxhash.xxh3_128_hexdigest(body).encode() + b'"\n}\n'


def describe(manifest: Manifest) -> str:
    """What a directory with this manifest is, in a sentence."""
    return _DESCRIPTIONS[manifest.format]


def write(directory: Path, manifest: Manifest, name: str = MANIFEST) -> None:
    """Write the manifest: from now on the directory is a dataset, if the manifest has its usual name."""
    write_bytes(directory / name, sealed(manifest))


def write_report(directory: Path, report: msgspec.Struct) -> InputEntry:
    """Write `report.json` and return its entry for the manifest."""
    data = encode(report)
    write_bytes(directory / REPORT, data)
    return InputEntry(REPORT, len(data), xxhash.xxh3_128_hexdigest(data))


def read_report(directory: Path, entry: InputEntry, kind: type[_Content]) -> _Content:
    """The contents of a finished output's `report.json`, of this type.

    Args:
        directory: of the dataset.
        entry: of the report in its manifest.
        kind: what the report is.

    Raises:
        DataError: it is missing, or not what was written.
    """
    if problem := problem_with(directory, entry.name, entry.bytes, entry.xxh3_128):
        raise problem
    return _facts(directory / entry.name, kind)


def read_run(directory: Path) -> dict[str, Any]:
    """The contents of a finished output's `run.json`."""
    return _facts(directory / RUN, dict[str, Any])


def _facts(path: Path, kind: type[_Content]) -> _Content:
    try:
        return decode(read_file(path), kind)
    except ValueError as error:
        remedy = "run the command that made it again, with --overwrite"
        raise DataError("damaged-report", f"not what packtool wrote: {error}", remedy=remedy, where=str(path)) from None


def input_entry(directory: Path) -> DatasetEntry:
    """A dataset as the input of another: the digest of its manifest, whatever its directory is called."""
    data = read_file(directory / MANIFEST)
    return DatasetEntry(len(data), xxhash.xxh3_128_hexdigest(data))


def input_names(directory: Path, inputs: Sequence[DatasetEntry]) -> list[str]:
    """What the inputs of a dataset were called when it was made, by its `run.json`; their digests if that is lost."""
    try:
        names = read_run(directory).get("inputs")
    except (OSError, DataError):
        names = None
    if isinstance(names, list) and len(names) == len(inputs) and all(isinstance(name, str) for name in names):
        return names
    return [entry.xxh3_128[:12] for entry in inputs]


def kind_at(directory: Path) -> str:
    """What a finished directory is, such as "token store"; "dataset" where its manifest can't be read."""
    try:
        return msgspec.json.decode(read_file(directory / MANIFEST), type=_Kind).format.removeprefix("packtool ")
    except (OSError, msgspec.MsgspecError):
        return "dataset"


def read(directory: Path, name: str = MANIFEST) -> Manifest:
    """The manifest of whatever packtool wrote: sealed, complete, and free of contradictions.

    Args:
        directory: of the dataset.
        name: of the manifest's file.

    Raises:
        DataError: no such directory, no manifest, or one that is damaged or that this version can't read.
    """
    path = directory / name
    if directory.is_file():
        raise DataError(
            "no-manifest",
            "a file, not a token store or packed dataset",
            remedy=f"if it holds text, tokenize it first: packtool tokenize {shlex.quote(str(directory))} -o tokens",
            where=str(directory),
        )
    if not directory.is_dir():
        raise DataError("missing-input", "no such directory", remedy="check the path", where=str(directory))
    try:
        raw = read_file(path)
    except FileNotFoundError:
        if (directory / UNFINISHED).is_dir():
            what = "the output of a packtool command that was interrupted"
            remedy = f"finish it first: packtool info {shlex.quote(str(directory))} tells how"
        else:
            what = f"no {MANIFEST}, so this is not a finished token store or packed dataset"
            remedy = "give the output directory of a packtool command; text files are tokenized first"
        raise DataError("no-manifest", what, remedy=remedy, where=str(directory)) from None
    kind = _parse(raw, _Kind, path)
    if kind.format_version != FORMAT_VERSION or kind.format not in _TYPES:
        known = _VERSION.fullmatch(kind.packtool_version)
        raise DataError(
            "unknown-format",
            f"format {kind.format[:40]!r} version {kind.format_version} can't be read by this version",
            remedy="make it again with this version"
            if kind.format_version < FORMAT_VERSION and kind.format in _TYPES
            else f"use packtool {kind.packtool_version if known else ''} or later".replace("  ", " "),
            where=str(path),
        )
    found = _SEALED.fullmatch(raw)
    if found is None or xxhash.xxh3_128_hexdigest(found[1]).encode() != found[2]:
        raise _bad(path, "changed since it was written: its own checksum differs")
    manifest = _parse(found[1] + b"\n}", _TYPES[kind.format], path)
    require_consistent(manifest, str(path))
    return manifest


def _parse(raw: bytes, kind: type[_Content], path: Path) -> _Content:
    try:
        return decode(raw, kind)
    except ValueError as error:
        raise _bad(path, f"not a valid manifest: {error}") from None


def _bad(path: Path, what: str) -> DataError:
    remedy = "run the command that made it again, or copy it again"
    return DataError("bad-manifest", what, remedy=remedy, where=str(path))
