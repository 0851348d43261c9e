"""`verify`: hold a dataset against its manifest, and what it says against what it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.commands.places import with_places
from packtool.commands.verify_packed import check_packed
from packtool.errors import DataError, PacktoolError
from packtool.options.call import takes
from packtool.options.verify import VerifyArguments
from packtool.progress import Progress
from packtool.storage import manifest as manifests
from packtool.storage.contents import document_lengths, require_order
from packtool.storage.files import FileEntry
from packtool.storage.listing import listed
from packtool.storage.manifest import ExportManifest, OrderManifest, StoreManifest
from packtool.storage.names import OFFSET, ORIGIN
from packtool.storage.packed import PackedDataset
from packtool.storage.reading import open_array, problem_with
from packtool.storage.token_store import TokenStore
from packtool.storage.tokenizer_files import require_tokenizer
from packtool.writing.layout import BATCH_TOKENS

_AGAIN = "make the dataset again, or copy it again"


@dataclass(frozen=True)
class VerifyResult:
    """What `verify` checked.

    Attributes:
        path: the dataset.
        kind: its format.
        files, bytes: checked against the manifest.
        tokens: that it holds; all but those of an export, whose files have readers of their own, were looked at.
        problems: everything that is wrong; empty for a sound dataset.
    """

    path: Path
    kind: str
    files: int
    bytes: int
    tokens: int
    problems: list[PacktoolError]


@takes(VerifyArguments)
@with_places("path", "store", ranged="path")
def verify(options: VerifyArguments) -> VerifyResult:
    """Check a token store, a packed dataset, an order or an export against its manifest.

    The manifest must carry its own checksum and contradict itself nowhere. Every file must be there with its size and
    checksum; every id must lie below the vocabulary size; documents must end with EOS; segments must fill their rows
    and lie inside their documents; no token may be placed twice, unless it is marked as repeated; and all of it must
    add up to the ledger. Reads every byte once for the checksums and once for the ids.

    Raises:
        DataError: the manifest itself is missing or damaged; a store is not the one that was packed.
        UsageError: stores for something else than a packed dataset.
    """
    path = Path(options.path)
    stores = [options.store] if isinstance(options.store, str | Path) else options.store
    manifest = manifests.read(path)
    files = list(listed(manifest))
    problems: list[PacktoolError] = []
    with Progress(sum(file.bytes for file in files), "verify", quiet=options.quiet) as bar:
        for file in files:
            problem = problem_with(path, file.name, file.bytes, file.xxh3_128)
            problems += [problem] if problem else []
            bar.advance(file.bytes)
    tokens = 0
    if not problems:
        tokens, found = _check_content(path, manifest, stores)
        problems += found
    return VerifyResult(path, manifest.format, len(files), sum(file.bytes for file in files), tokens, problems)


def _check_content(
    path: Path, manifest: manifests.Manifest, stores: Sequence[Path | str]
) -> tuple[int, list[PacktoolError]]:
    if isinstance(manifest, OrderManifest):
        return 0, attempt(lambda: _check_order(path, manifest))
    problems = attempt(lambda: require_tokenizer(path, manifest.tokenizer_files, manifest.tokenizer.sha256))
    if isinstance(manifest, StoreManifest):
        tokens, found = _check_store(path)
        return tokens, problems + found
    if isinstance(manifest, ExportManifest):
        return manifest.tokens, problems  # what is in its files is for their own readers
    dataset = PackedDataset(path)
    for bucket in dataset.buckets:
        for shard, described in zip(bucket.shards, bucket.entry.shards, strict=True):
            where = str(bucket.path / described.tokens.name)
            problems += _check_ids(shard, dataset.manifest.tokenizer.vocab_size, where)
    problems += problems or attempt(lambda: check_packed(dataset, stores))
    return sum(bucket.rows * bucket.sequence_length for bucket in dataset.buckets), problems


def attempt(check: Callable[[], None]) -> list[PacktoolError]:
    """The problem that a check stops at."""
    try:
        check()
    except DataError as problem:
        return [problem]
    return []


def _check_order(path: Path, manifest: OrderManifest) -> None:
    for entry in manifest.orders:
        order = open_array(path, entry, OFFSET)
        if manifest.shuffle.method == "partial":
            continue  # rotations of lanes, whose length the base knows
        require_order(order, len(order), str(path / entry.name))


def _check_store(path: Path) -> tuple[int, list[PacktoolError]]:
    store = TokenStore(path)
    problems: list[PacktoolError] = []
    documents = 0
    for entry, ids, offsets in zip(store.manifest.shards, store.shards, store.offsets, strict=True):
        where = str(path / entry.tokens.name)
        problems += _check_ids(ids, store.manifest.tokenizer.vocab_size, where)
        found = attempt(lambda: _check_documents(store, documents, ids, offsets, where))  # noqa: B023 - called at once
        problems += found
        if (origins := entry.documents) is not None:
            problems += attempt(lambda: _check_origins(store, origins))
        documents += len(offsets) - 1
    if store.manifest.shards and store.manifest.shards[0].columns is not None:
        for name in store.kept_fields:
            problems += attempt(lambda: _check_column(store, name))  # noqa: B023 - called at once
    return store.tokens, problems


def _check_column(store: TokenStore, name: str) -> None:
    """There is one value for each document."""
    store.column(name)


def _check_origins(store: TokenStore, entry: FileEntry) -> None:
    found = open_array(store.path, entry, ORIGIN)
    wrong = np.flatnonzero((found["file"] >= len(store.manifest.inputs)) | (found["record"] < 1))
    if wrong.size:
        what = f"document {int(wrong[0])} of the shard comes from no record of an input"
        raise DataError("bad-origins", what, remedy=_AGAIN, where=str(store.path / entry.name))


def _check_documents(
    store: TokenStore, first: int, ids: npt.NDArray[Any], offsets: npt.NDArray[np.int64], where: str
) -> None:
    document_lengths(offsets, len(ids), where)
    info = store.manifest.tokenizer
    ends, begins = offsets[1:] - 1, offsets[:-1]
    for name, token, places in (("end with EOS", info.eos_id, ends), ("begin with BOS", info.bos_id, begins)):
        if token is not None and (wrong := np.flatnonzero(ids[places] != token)).size:
            what = f"document {first + int(wrong[0])} does not {name} ({token})"
            raise DataError("missing-eos", what, remedy=_AGAIN, where=where)


def _check_ids(ids: npt.NDArray[Any], vocab_size: int, where: str) -> list[PacktoolError]:
    flat = ids.reshape(-1)
    for first in range(0, len(flat), BATCH_TOKENS):
        largest = int(flat[first : first + BATCH_TOKENS].max())
        if largest >= vocab_size:
            what = f"holds id {largest}, but the vocabulary ends at {vocab_size - 1}"
            return [DataError("id-out-of-range", what, remedy=_AGAIN, where=where)]
    return []
