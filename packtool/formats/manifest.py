"""Read and write manifests: the last file written, and what makes a directory a dataset.

A manifest holds what the bytes depend on and what they contain; never paths, times, host names, workers or memory, so
that equal input and options give equal manifests. Those other facts go to `run.json`. Its last field is a seal: the
hash of all bytes before it, so that a manifest in which a single bit has changed is refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
import xxhash

from packtool.errors import DataError, UsageError
from packtool.formats.names import UNFINISHED
from packtool.formats.schema import (
    EXPORT,
    FIRST_VERSION,
    FORMAT_VERSION,
    PACKED,
    TOKEN_STORE,
    Choice,
    DatasetEntry,
    ExportManifest,
    InputEntry,
    Manifest,
    Options,
    PackedManifest,
    StoreManifest,
)
from packtool.options.check import unfit
from packtool.places.place import Place
from packtool.places.typed import Typed, place_of
from packtool.support.decoding import from_json, from_plain
from packtool.support.json_text import to_json
from packtool.support.version import __version__

MANIFEST = "manifest.json"
RUN = "run.json"


class _Format(NamedTuple):
    kind: type[Manifest]
    described: str


_FORMATS = {
    TOKEN_STORE: _Format(StoreManifest, "a token store"),
    PACKED: _Format(PackedManifest, "a packed dataset"),
    EXPORT: _Format(ExportManifest, "an export"),
}
"""The formats that this version reads."""
_WANTED: dict[type[Manifest], tuple[str, str, str]] = {
    StoreManifest: ("not-a-store", TOKEN_STORE, "the output of packtool tokenize"),
    PackedManifest: ("not-packed", PACKED, "what packtool pack or packtool shuffle wrote"),
}
"""Errors where another kind of dataset lies: the code, the kind that is needed, and what to give."""
_SEALED = re.compile(rb'(.*),\n  "xxh3_128": "([0-9a-f]{32})"\n}\n', re.DOTALL)
_Content = TypeVar("_Content")
_Kinds = TypeVar("_Kinds", StoreManifest, PackedManifest)
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,40}")


class _Kind(msgspec.Struct):
    format: str
    format_version: int
    packtool_version: str


def encode(value: Any) -> bytes:
    """Encode a record as stable, readable JSON; names of files whose bytes are not UTF-8 have backslashes in them."""
    return msgspec.json.format(to_json(value), indent=2) + b"\n"


def sealed(record: msgspec.Struct | dict[str, Any]) -> bytes:
    """Encode a manifest, or another record, with its seal: the last field holds the hash of all bytes before it.

    >>> print(sealed({"format": "example"}).decode(), end="")
    {
      "format": "example",
      "xxh3_128": "4239c0570e39dc3ddcda422d1edbac67"
    }
    """
    body = encode(record).removesuffix(b"\n}\n")
    return body + b',\n  "xxh3_128": "' + xxhash.xxh3_128_hexdigest(body).encode() + b'"\n}\n'


def unsealed(raw: bytes) -> bytes:
    """Return the sealed record, as JSON; raise a ValueError where a single bit of it has changed."""
    match = _SEALED.fullmatch(raw)
    if match is None or xxhash.xxh3_128_hexdigest(match[1]).encode() != match[2]:
        raise ValueError("changed since it was written: its own checksum differs")
    return match[1] + b"\n}"


def described(kind: type[Manifest]) -> str:
    """Describe a directory with a manifest of this type in a few words."""
    return next(entry.described for entry in _FORMATS.values() if entry.kind is kind)


def write(place: Typed, manifest: Manifest) -> bool:
    """Write the manifest, unless there is one: from now on the place is a dataset. Return whether it was this one."""
    return place_of(place).create(MANIFEST, sealed(manifest))


def read_report(place: Typed, entry: InputEntry, kind: type[_Content]) -> _Content:
    """Return the contents of a finished output's `report.json`, of this type, after checking them against its entry."""
    place = place_of(place)
    return _facts(place.checked(entry), kind, place.where(entry.name))


def read_run(place: Typed) -> dict[str, Any]:
    """Return the contents of a finished output's `run.json`."""
    place = place_of(place)
    return _facts(place.read(RUN), dict[str, Any], place.where(RUN))


def _facts(raw: bytes, kind: type[_Content], where: str) -> _Content:
    try:
        return from_json(raw, kind)
    except ValueError as error:
        remedy = "run the command that made it again, with --overwrite=True"
        raise DataError("damaged-report", f"not what packtool wrote: {error}", remedy=remedy, where=where) from None


def input_entry(place: Typed) -> DatasetEntry:
    """Identify a dataset as the input of another: by the digest of its manifest, whatever it is called.

    Raises:
        FileNotFoundError: there is no manifest.
        DataError: it is damaged, perhaps on its way. Without this check it would count as that of another dataset.
    """
    place = place_of(place)
    data = place.read(MANIFEST)
    try:
        unsealed(data)
    except ValueError as error:
        raise _bad(place.where(MANIFEST), str(error)) from None
    return DatasetEntry(len(data), xxhash.xxh3_128_hexdigest(data))


def input_names(place: Typed, inputs: Sequence[DatasetEntry]) -> list[str]:
    """Return the names of a dataset's inputs from its `run.json`; their digests if it is lost."""
    try:
        names = read_run(place).get("inputs")
    except (OSError, DataError):
        names = None
    if isinstance(names, list) and len(names) == len(inputs) and all(isinstance(name, str) for name in names):
        return names
    return [entry.xxh3_128[:12] for entry in inputs]


def kind_at(place: Place) -> str:
    """Name the kind of a finished output, such as "token store"; "dataset" if its manifest can't be read."""
    try:
        return from_json(place.read(MANIFEST), _Kind).format.removeprefix("packtool ")
    except (OSError, ValueError):
        return "dataset"


def read(place: Typed) -> Manifest:
    """Return the manifest of whatever packtool wrote: sealed and complete.

    Raises:
        DataError: nothing is there, no manifest, or one that is damaged or that this version can't read.
    """
    place = place_of(place)
    where = place.where(MANIFEST)
    try:
        raw = place.read(MANIFEST)
    except NotADirectoryError:
        raise a_file(place) from None
    except FileNotFoundError:
        raise _no_manifest(place) from None
    kind = _parse(raw, _Kind, where)
    if kind.format not in _FORMATS or not FIRST_VERSION <= kind.format_version <= FORMAT_VERSION:
        raise _other_version(kind, where)
    try:
        body = unsealed(raw)
    except ValueError as error:
        raise _bad(where, str(error)) from None
    try:
        manifest = from_json(body, _FORMATS[kind.format].kind)
    except ValueError as error:
        raise _not_read(kind, str(error), where) from None
    unfit = _unfit_options(manifest)
    if unfit:
        raise _bad(where, f"not a valid manifest: its option {unfit}")
    if isinstance(manifest, PackedManifest):
        unbalanced = manifest.ledger.unbalanced(manifest.documents)
        if unbalanced:
            remedy = "do not use this dataset; make it again"
            raise DataError("ledger-unbalanced", unbalanced, remedy=remedy, where=where)
    return manifest


def read_as(place: Typed, kind: type[_Kinds]) -> _Kinds:
    """Return the manifest as `read` does; raise a UsageError where it is that of another kind of dataset."""
    manifest = read(place)
    if isinstance(manifest, kind):
        return manifest
    raise other_kind(type(manifest), kind, str(place))


def other_kind(kind: type[Manifest], wanted: type[StoreManifest] | type[PackedManifest], where: str) -> UsageError:
    """Return the error for a dataset of another kind than is needed."""
    code, name, give = _WANTED[wanted]
    what = f"{described(kind)}, where {_FORMATS[name].described} is needed"
    return UsageError(code, what, remedy=f"give {give}", where=where)


def a_file(place: Place) -> DataError:
    """Return the error for a file where a dataset must be."""
    path = Path(str(place))
    if path.name == MANIFEST:
        what, remedy = "the manifest of a dataset", f"give its directory: {shlex.quote(str(path.parent))}"
    elif path.suffix == ".toml":
        what = "a TOML file, not a token store or packed dataset"
        remedy = "`packtool stats` and `packtool.open` take a blend, `packtool run` a configuration"
    else:
        what = "a file, not a token store or packed dataset"
        remedy = f"if it holds text, tokenize it first: packtool tokenize {shlex.quote(str(place))} -o tokens"
    return DataError("no-manifest", what, remedy=remedy, where=str(place))


def _no_manifest(place: Place) -> DataError:
    """Return the error for a place without a manifest."""
    absent = place.absent()
    if absent is not None:
        return absent
    if place.below(UNFINISHED).absent() is None:
        what = "the output of a packtool command that was interrupted"
        remedy = f"finish it first: packtool info {shlex.quote(str(place))} tells how"
    elif place.size(RUN) is not None:
        what = f"{RUN} without {MANIFEST}: a dataset that lost it"
        remedy = "copy the dataset again, or make it again"
    else:
        what = f"no {MANIFEST}, so this is not a finished token store or packed dataset"
        remedy = "give the output directory of a packtool command; text files are tokenized first"
    return DataError("no-manifest", what, remedy=remedy, where=str(place))


def _other_version(kind: _Kind, where: str) -> DataError:
    """Return the error for a manifest of a format, or of a version of it, that is not read."""
    what = f"format {kind.format[:40]!r} version {kind.format_version}"
    if kind.format.startswith("packtool ") and kind.format_version < FIRST_VERSION:
        what += f" was made before the first release, whose formats have version {FIRST_VERSION}"
        return DataError("unknown-format", what, remedy="make it again", where=where)
    what += f" can't be read by packtool {__version__}"
    return DataError("unknown-format", what, remedy=f"use {_writer(kind)} or a later one", where=where)


def _not_read(kind: _Kind, why: str, where: str) -> DataError:
    """Return the error for a manifest as it was written, whose fields are not those that this version writes."""
    unknown = "Object contains unknown field "
    if not why.startswith(unknown):
        return _bad(where, f"not a valid manifest: {why}")
    field = why.removeprefix(unknown).replace(" - at ", " at ")
    what = f"{_writer(kind)} wrote the field {field}, which packtool {__version__} does not know"
    remedy = "use the packtool that wrote it, or make it again with this one"
    return DataError("unknown-format", what, remedy=remedy, where=where)


def _writer(kind: _Kind) -> str:
    """Name the packtool that wrote a manifest by its version, as far as it looks like a version."""
    if _VERSION.fullmatch(kind.packtool_version):
        return f"packtool {kind.packtool_version}"
    return "the packtool that wrote it"


def _unfit_options(manifest: Manifest) -> str:
    """Say which option of a manifest no command can have recorded; "" if none."""
    if isinstance(manifest, StoreManifest):
        return unfit(manifest.options, ["tokenize"])
    problem = ""
    if isinstance(manifest, PackedManifest):
        problem = unfit(manifest.options, ["shuffle", "pack"])
    if isinstance(manifest.choice, Choice):
        problem = problem or unfit(manifest.choice.options, ["pack"]) or _unfit_choice(manifest.choice.options)
    return problem


class _Settled(msgspec.Struct):
    """What follows from the options of a choice, and is recorded beside them."""

    where_stores: dict[str, Annotated[int, msgspec.Meta(ge=0)]] | None = None
    holdout_bound: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,20}\Z")] | None = None
    holdout_hashes: str | None = None
    exclude_xxh3_128: str | list[str] | None = None


def _unfit_choice(recorded: Options) -> str:
    """Say what of a choice is not what its options led to when the documents were chosen; "" if all is."""
    try:
        from_plain(dict(recorded), _Settled)
    except ValueError as error:
        return str(error)
    return ""


def _parse(raw: bytes, kind: type[_Content], where: str) -> _Content:
    try:
        return from_json(raw, kind)
    except ValueError as error:
        raise _bad(where, f"not a valid manifest: {error}") from None


def _bad(where: str, what: str) -> DataError:
    remedy = "run the command that made it again, or copy it again"
    return DataError("bad-manifest", what, remedy=remedy, where=where)
