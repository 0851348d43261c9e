"""`verify`: hold a dataset against its manifest: files, sizes, checksums, ids, segments, ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError, PacktoolError
from packtool.metrics import Accounts, Tally
from packtool.metrics.ledger import require_balance
from packtool.plan import INSERTED_EOS, PADDING, Segments
from packtool.progress import Progress
from packtool.storage import manifest as manifests
from packtool.storage.files import FileEntry, digest, open_array
from packtool.storage.manifest import OrderManifest, StoreManifest
from packtool.storage.packed import PackedBucket, PackedDataset
from packtool.storage.token_store import TokenStore
from packtool.writing.layout import BATCH_TOKENS

_AGAIN = "make the dataset again"


@dataclass(frozen=True)
class VerifyResult:
    """What `verify` checked.

    Attributes:
        path: the dataset.
        kind: its format.
        files, bytes: checked against the manifest.
        tokens: checked against the vocabulary size.
        problems: everything that is wrong; empty for a sound dataset.
    """

    path: Path
    kind: str
    files: int
    bytes: int
    tokens: int
    problems: list[PacktoolError]


def verify(path: Path | str, *, quiet: bool = True) -> VerifyResult:
    """Check a token store, a packed dataset or an order against its manifest.

    Every file must be there with its size and checksum; every id must lie below the vocabulary size; documents must
    end with EOS; segments must fill their rows, lie inside their documents and, with the ledger, account for every
    token. Reads every byte once for the checksums and once for the ids.

    Raises:
        DataError: the manifest itself is missing or unreadable.
    """
    path = Path(path)
    manifest = manifests.read(path)
    files = list(_files(path, manifest))
    problems: list[PacktoolError] = []
    with Progress(sum(entry.bytes for _, entry in files), "verify", quiet=quiet) as bar:
        for directory, entry in files:
            problems += _check_file(directory / entry.name, entry)
            bar.advance(entry.bytes)
    tokens = 0
    if not problems:
        tokens, found = _check_content(path, manifest)
        problems += found
    return VerifyResult(path, manifest.format, len(files), sum(entry.bytes for _, entry in files), tokens, problems)


def _files(path: Path, manifest: manifests.Manifest) -> Iterator[tuple[Path, FileEntry]]:
    if isinstance(manifest, StoreManifest):
        for store_shard in manifest.shards:
            yield path, store_shard.tokens
            yield path, store_shard.offsets
        return
    if manifest.batches is not None:
        yield path, manifest.batches
    if isinstance(manifest, OrderManifest):
        for order in manifest.orders:
            yield path, order
        return
    report = manifest.report
    yield path, FileEntry(report.name, (), report.bytes, report.xxh3_128)
    if manifest.lengths is not None:
        yield path, manifest.lengths
    for bucket in manifest.buckets:
        for shard in bucket.shards:
            for entry in (shard.tokens, shard.segments, shard.segment_offsets, shard.atoms):
                if entry is not None:
                    yield path / bucket.directory, entry


def _check_file(path: Path, entry: FileEntry) -> list[PacktoolError]:
    try:
        size = path.stat().st_size
        if size != entry.bytes:
            what = f"has {size} bytes, but the manifest says {entry.bytes}"
            return [DataError("wrong-size", what, remedy=_AGAIN, where=str(path))]
        if digest(path) != entry.xxh3_128:
            what = "its checksum differs from the manifest's: the file has changed since it was written"
            return [DataError("wrong-checksum", what, remedy=_AGAIN, where=str(path))]
    except FileNotFoundError:
        what = "named in the manifest, but not there"
        return [DataError("missing-shard", what, remedy=_AGAIN, where=str(path))]
    return []


def _check_content(path: Path, manifest: manifests.Manifest) -> tuple[int, list[PacktoolError]]:
    if isinstance(manifest, StoreManifest):
        return _check_store(path)
    if isinstance(manifest, OrderManifest):
        return 0, _check_order(path, manifest)
    return _check_packed(path)


def _check_order(path: Path, manifest: OrderManifest) -> list[PacktoolError]:
    problems: list[PacktoolError] = []
    for entry in manifest.orders:
        order = open_array(path, entry)
        seen = np.zeros(len(order), np.bool_)
        seen[order[(order >= 0) & (order < len(order))]] = True
        if not seen.all():
            what = f"atom {int(np.flatnonzero(~seen)[0])} is not in it"
            problems.append(DataError("bad-order", what, remedy=_AGAIN, where=str(path / entry.name)))
    return problems


def _check_store(path: Path) -> tuple[int, list[PacktoolError]]:
    store = TokenStore(path)
    tokenizer, counts = store.manifest.tokenizer, store.manifest.counts
    problems: list[PacktoolError] = []
    documents = tokens = 0
    for entry, ids, offsets in zip(store.manifest.shards, store.shards, store.offsets, strict=True):
        where = str(path / entry.tokens.name)
        problems += _check_ids(ids, tokenizer.vocab_size, where)
        if entry.first_document != documents:
            what = f"begins at document {entry.first_document}, but {documents} come before it"
            problems.append(DataError("bad-offsets", what, remedy=_AGAIN, where=where))
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(ids) or (np.diff(offsets) < 1).any():
            what = f"its offsets do not divide its {len(ids)} tokens into documents"
            problems.append(DataError("bad-offsets", what, remedy=_AGAIN, where=where))
        elif len(offsets) > 1 and (missing := np.flatnonzero(ids[offsets[1:] - 1] != tokenizer.eos_id)).size:
            what = f"document {documents + int(missing[0])} does not end with EOS ({tokenizer.eos_id})"
            problems.append(DataError("missing-eos", what, remedy=_AGAIN, where=where))
        documents += len(offsets) - 1
        tokens += len(ids)
    for name, found in (("documents", documents), ("tokens", tokens)):
        if counts[name] != found:
            what = f"holds {found} {name}, but the manifest says {counts[name]}"
            problems.append(DataError("wrong-count", what, remedy=_AGAIN, where=str(path)))
    return tokens, problems


def _check_ids(ids: npt.NDArray[Any], vocab_size: int, where: str) -> list[PacktoolError]:
    flat = ids.reshape(-1)
    for first in range(0, len(flat), BATCH_TOKENS):
        largest = int(flat[first : first + BATCH_TOKENS].max())
        if largest >= vocab_size:
            what = f"holds id {largest}, but the vocabulary ends at {vocab_size - 1}"
            return [DataError("id-out-of-range", what, remedy=_AGAIN, where=where)]
    return []


def _check_packed(path: Path) -> tuple[int, list[PacktoolError]]:
    dataset = PackedDataset(path)
    manifest = dataset.manifest
    problems: list[PacktoolError] = []
    for bucket in dataset.buckets:
        for shard, described in zip(bucket.shards, bucket.entry.shards, strict=True):
            where = str(bucket.path / described.tokens.name)
            problems += _check_ids(shard, manifest.tokenizer.vocab_size, where)
        if bucket.first_rows[-1] != bucket.rows:
            what = f"holds {bucket.first_rows[-1]} rows, but the manifest says {bucket.rows}"
            problems.append(DataError("wrong-count", what, remedy=_AGAIN, where=str(bucket.path)))
    problems += _attempt(lambda: require_balance(manifest.ledger, manifest.documents))
    if dataset.has_segments and not problems:
        problems += _attempt(lambda: _check_segments(dataset))
    return sum(b.rows * b.sequence_length for b in dataset.buckets), problems


def _attempt(check: Callable[[], None]) -> list[PacktoolError]:
    try:
        check()
    except PacktoolError as problem:
        return [problem]
    return []


def _check_segments(dataset: PackedDataset) -> None:
    """The segment table against the rows, the documents and the ledger."""
    manifest = dataset.manifest
    lengths = dataset.lengths()
    accounts = Accounts(0, 0, 0, 0, 0, 0, 0)
    for bucket in dataset.buckets:
        tally = Tally(lengths, bucket.sequence_length)
        step = max(1, BATCH_TOKENS // bucket.sequence_length)
        for first in range(0, bucket.rows, step):
            last = min(first + step, bucket.rows)
            rows = bucket.segments(first, last)
            _check_rows(dataset, bucket, first, rows, np.asarray(lengths))
            tally.add(rows)
        accounts += tally.accounts()
    ledger = manifest.ledger
    found = {"placed": accounts.placed, "repeated": accounts.repeated, "eos": accounts.eos, "padding": accounts.padding}
    for name, value in found.items():
        if getattr(ledger, name) != value:
            raise DataError(
                "ledger-unbalanced",
                f"the rows hold {value} tokens {name}, but the ledger says {getattr(ledger, name)}",
                remedy=_AGAIN,
                where=str(dataset.path),
            )


def _check_rows(
    dataset: PackedDataset, bucket: PackedBucket, first: int, rows: Segments, lengths: npt.NDArray[Any]
) -> None:
    manifest = dataset.manifest
    real = rows.document >= 0
    known = rows.document[real] < manifest.documents
    inside = np.zeros(len(rows), bool)
    inside[real] = known & (rows.start[real] + rows.length[real] <= lengths[np.where(known, rows.document[real], 0)])
    inside |= (rows.document == PADDING) | ((rows.document == INSERTED_EOS) & (rows.length == 1))
    _require_rows(bucket, first, rows, inside, "a segment lies outside its document")
    if (wrong := np.flatnonzero(rows.tokens() != bucket.sequence_length)).size:
        raise _bad_row(bucket, first + int(wrong[0]), "its segments do not add up to the sequence length")
    tokens = bucket.tokens(first, first + rows.groups).reshape(-1)
    ends = np.cumsum(rows.length)
    final = real & (rows.start + rows.length == lengths[np.where(rows.document >= 0, rows.document, 0)])
    ended = ~final | (tokens[ends - 1] == manifest.tokenizer.eos_id)
    ended &= (rows.document != INSERTED_EOS) | (tokens[ends - 1] == manifest.tokenizer.eos_id)
    _require_rows(bucket, first, rows, ended, "a document's end is not EOS")
    padded = np.repeat(rows.document == PADDING, rows.length)
    wrong_pad = np.flatnonzero(tokens[padded] != manifest.pad_id)
    if wrong_pad.size:
        place = int(np.flatnonzero(padded)[wrong_pad[0]])
        raise _bad_row(bucket, first + place // bucket.sequence_length, "its padding holds something else")


def _require_rows(bucket: PackedBucket, first: int, rows: Segments, holds: npt.NDArray[np.bool_], what: str) -> None:
    if not holds.all():
        raise _bad_row(bucket, first + int(rows.group_of()[np.flatnonzero(~holds)[0]]), what)


def _bad_row(bucket: PackedBucket, row: int, what: str) -> DataError:
    return DataError("bad-segments", f"row {row}: {what}", remedy=_AGAIN, where=str(bucket.path))
