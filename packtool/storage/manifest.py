"""Manifests: the last file written, and what makes a directory a dataset.

A manifest holds what the bytes depend on and what they contain; never paths, times, host names, workers or memory, so
that equal input and options give equal manifests. Those other facts go to `run.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import xxhash

from packtool import __version__
from packtool.errors import DataError
from packtool.metrics.ledger import Ledger
from packtool.storage.files import FileEntry, write_bytes

MANIFEST = "manifest.json"
RUN = "run.json"
REPORT = "report.json"
FORMAT_VERSION = 1

TOKEN_STORE = "packtool token store"
PACKED = "packtool packed dataset"
ORDER = "packtool order"

Options = dict[str, Any]


class TokenizerInfo(msgspec.Struct, frozen=True):
    """What later stages must know of the tokenizer.

    Attributes:
        sha256: of the tokenizer.json that was used.
        vocab_size: one more than the largest id it can produce, added tokens included.
        eos_id: id that ends every stored document.
        eos_token: its text.
        bos_id: id that begins every stored document, or None.
        added_tokens: texts and ids of its added tokens, so that later stages can name them.
    """

    sha256: str
    vocab_size: int
    eos_id: int
    eos_token: str
    bos_id: int | None = None
    added_tokens: dict[str, int] = {}


class InputEntry(msgspec.Struct, frozen=True):
    """One input: relative name, bytes, xxh3-128 of its bytes (of a dataset: of its manifest)."""

    name: str
    bytes: int
    xxh3_128: str


class TokenShard(msgspec.Struct, frozen=True):
    """One shard of a token store: its two files and the global number of its first document."""

    tokens: FileEntry
    offsets: FileEntry
    first_document: int


class StoreManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Manifest of a token store. `counts` has documents, tokens, and whatever was left out, by reason."""

    format: str = TOKEN_STORE
    format_version: int = FORMAT_VERSION
    packtool_version: str = __version__
    options: Options
    inputs: list[InputEntry]
    tokenizer: TokenizerInfo
    dtype: str
    counts: dict[str, int]
    shards: list[TokenShard]


class PackedShard(msgspec.Struct, frozen=True):
    """One shard of rows; segment files are absent with `--no-segments`, `atoms` where atoms are uniform."""

    tokens: FileEntry
    segments: FileEntry | None = None
    segment_offsets: FileEntry | None = None
    atoms: FileEntry | None = None


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one length. A dataset of a single length has one bucket, in the dataset's own directory.

    Attributes:
        directory: relative to the manifest; "" for the dataset's own.
        unit: tokens in a unit (the smaller of atom size and sequence length).
        units: units that hold anything; what the last row has beyond them is padding.
        atom_units: units in an atom, where atoms are uniform; 0 where `atoms` files list them.
        last_atom_stays: the last atom is incomplete, and every shuffle leaves it last.
    """

    directory: str
    sequence_length: int
    rows: int
    unit: int
    units: int
    atom_units: int
    last_atom_stays: bool
    shards: list[PackedShard]


class Shuffle(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the rows came into their order.

    Attributes:
        method: atom, partial or bucket (docs/shuffling.md).
        atom_size: tokens in an atom; None where atoms are rows.
        seed: of every random choice.
        epoch: which order of that seed, from 0.
        batch_size: rows in a batch, for ``partial``.
        batch_tokens: tokens in a batch, for ``bucket``.
        unbatched_rows, unbatched_tokens: what ``bucket`` with ``--remainder drop`` leaves out of every batch: rows of
            the dataset, and the tokens they hold, padding included.
    """

    method: str
    atom_size: int | None
    seed: int
    epoch: int
    batch_size: int | None = None
    batch_tokens: int | None = None
    unbatched_rows: int | None = None
    unbatched_tokens: int | None = None


class PackedManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Manifest of a packed dataset.

    Attributes:
        strategy: its registered name.
        options: what the strategy was given; with the inputs, all that the rows depend on.
        shuffle: how the rows were ordered; None for corpus order.
        inputs: the token stores, in order, by the digests of their manifests.
        store_documents: documents in each of them: documents are numbered through, so this tells each one's source.
        documents: their sum.
        lengths: the file of document lengths; None with `--no-segments`.
        batches: the file of batches that the ``bucket`` shuffle made.
    """

    format: str = PACKED
    format_version: int = FORMAT_VERSION
    packtool_version: str = __version__
    strategy: str
    options: Options
    shuffle: Shuffle | None
    inputs: list[InputEntry]
    store_documents: list[int]
    tokenizer: TokenizerInfo
    dtype: str
    pad_id: int
    documents: int
    ledger: Ledger
    lengths: FileEntry | None
    report: InputEntry
    buckets: list[Bucket]
    batches: FileEntry | None = None


class OrderManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Manifest of an order: what a shuffle with `--order-only` writes instead of rows.

    Attributes:
        base: the packed dataset that it orders, by the digest of its manifest.
        shuffle: how the order was made; its `atom_size` tells the atoms that it counts.
        orders: for each bucket of the base, the file of its order: the movable atom of the base at each place.
        batches: the file of batches that the ``bucket`` shuffle made.
    """

    format: str = ORDER
    format_version: int = FORMAT_VERSION
    packtool_version: str = __version__
    base: InputEntry
    shuffle: Shuffle
    orders: list[FileEntry]
    batches: FileEntry | None = None


Manifest = StoreManifest | PackedManifest | OrderManifest
_CALLED = {TOKEN_STORE: "a token store", PACKED: "a packed dataset", ORDER: "an order"}
_Content = TypeVar("_Content")


def encode(value: Any) -> bytes:
    """Stable, readable JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def called(manifest: Manifest) -> str:
    """What a directory with this manifest is, in a sentence."""
    return _CALLED[manifest.format]


def write(directory: Path, manifest: Manifest) -> None:
    """Write the manifest: from now on the directory is a dataset."""
    write_bytes(directory / MANIFEST, encode(manifest))


def write_report(directory: Path, report: msgspec.Struct) -> InputEntry:
    """Write `report.json` and return its entry for the manifest."""
    data = encode(report)
    write_bytes(directory / REPORT, data)
    return InputEntry(REPORT, len(data), xxhash.xxh3_128_hexdigest(data))


def read_report(directory: Path, kind: type[_Content]) -> _Content:
    """The contents of a finished output's `report.json`, of this type."""
    return _decode((directory / REPORT).read_bytes(), kind, directory / REPORT)


def read_run(directory: Path) -> dict[str, Any]:
    """The contents of a finished output's `run.json`."""
    return _decode((directory / RUN).read_bytes(), dict[str, Any], directory / RUN)


def input_entry(directory: Path) -> InputEntry:
    """A dataset as the input of another: its name without the path, and the digest of its manifest."""
    data = (directory / MANIFEST).read_bytes()
    return InputEntry(directory.resolve().name, len(data), xxhash.xxh3_128_hexdigest(data))


def read(directory: Path) -> Manifest:
    """The manifest of a token store or packed dataset.

    Raises:
        DataError: no such directory, no manifest, or one this version can't read.
    """
    path = directory / MANIFEST
    if not directory.is_dir():
        raise DataError("missing-input", "no such directory", remedy="check the path", where=str(directory))
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(
            "no-manifest",
            f"no {MANIFEST}, so this is not a finished token store or packed dataset",
            remedy="give the output directory of a packtool command that finished",
            where=str(directory),
        ) from None
    kind = _decode(raw, _Kind, path)
    if kind.format_version != FORMAT_VERSION or kind.format not in _TYPES:
        raise DataError(
            "unknown-format",
            f"format {kind.format!r} version {kind.format_version} is not one this version reads",
            remedy=f"use packtool {kind.packtool_version} or later",
            where=str(path),
        )
    return _decode(raw, _TYPES[kind.format], path)


class _Kind(msgspec.Struct):
    format: str
    format_version: int
    packtool_version: str


_TYPES: dict[str, type[Manifest]] = {TOKEN_STORE: StoreManifest, PACKED: PackedManifest, ORDER: OrderManifest}


def _decode(raw: bytes, kind: type[_Content], path: Path) -> _Content:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.MsgspecError as error:
        raise DataError(
            "bad-manifest",
            f"not a valid manifest: {error}",
            remedy="run the command that made it again",
            where=str(path),
        ) from None
