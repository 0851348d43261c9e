"""`verify`: check a dataset against its manifest, and stores, orders and packed rows for contradictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.commands.places import places_to_read, result_path
from packtool.commands.verify_packed import AGAIN, check_packed
from packtool.errors import DataError, PacktoolError
from packtool.options.inspecting import VerifyArguments
from packtool.options.signature import takes
from packtool.places.npy import FileEntry
from packtool.places.place import Place
from packtool.progress import Progress
from packtool.storage import manifest as manifests
from packtool.storage.names import OFFSET, ORIGIN, shard_file
from packtool.storage.order import require_order
from packtool.storage.packed import PackedDataset
from packtool.storage.schema import ExportManifest, Manifest, OrderManifest, PackedManifest, StoreManifest, listed
from packtool.storage.token_store import TokenStore, count_trained, document_lengths
from packtool.storage.tokenizer_files import require_tokenizer
from packtool.writing.layout import BATCH_TOKENS
from packtool.writing.stored_tokens import open_packed, store_places


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

    path: Path | str
    kind: str
    files: int
    bytes: int
    tokens: int
    problems: list[PacktoolError]


@takes(VerifyArguments)
def verify(options: VerifyArguments) -> VerifyResult:
    """Check a token store, a packed dataset, an order or an export against its manifest.

    The manifest must carry its own checksum and contradict itself nowhere. Every file must be there with its size and
    checksum; every id must lie below the vocabulary size; documents must end with EOS; segments must fill their rows
    and lie inside their documents; no token may be placed twice, unless it is marked as repeated; and all of it must
    add up to the ledger. Reads every byte once for the checksums and once for the ids.

    Raises:
        DataError: the manifest itself is missing or damaged; a store is not the one that was packed; an object store
            fails or refuses.
        UsageError: stores for something else than a packed dataset.
    """
    with places_to_read(options.path, ranged=["tokens", "loss"]) as [place], places_to_read(options.store) as stores:
        return _verify(place, stores, quiet=options.quiet)


def _verify(place: Place, stores: Sequence[Place], *, quiet: bool) -> VerifyResult:
    manifest = manifests.read(place)
    if isinstance(manifest, PackedManifest) and manifest.index_only:
        stores = store_places(PackedDataset(place), stores)
    files = [(place, file) for file in listed(manifest)]
    if isinstance(manifest, PackedManifest) and manifest.index_only:
        files += [(store, file) for store in stores for file in listed(manifests.read(store))]
    problems: list[PacktoolError] = []
    with Progress(sum(file.bytes for _, file in files), "verify", quiet=quiet) as bar:
        for where, file in files:
            problem = where.problem(file)
            problems += [_of_dataset(problem)] if problem else []
            bar.advance(file.bytes)
    tokens = 0
    if not problems:
        tokens, more = _check_content(place, manifest, stores)
        problems += more
    size = sum(file.bytes for _, file in files)
    return VerifyResult(result_path(place), manifest.format, len(files), size, tokens, problems)


def _check_content(place: Place, manifest: Manifest, stores: Sequence[Place]) -> tuple[int, list[PacktoolError]]:
    if isinstance(manifest, OrderManifest):
        return 0, _attempt(lambda: _check_order(place, manifest))
    problems = _attempt(lambda: require_tokenizer(place, manifest.tokenizer_files, manifest.tokenizer.sha256))
    if isinstance(manifest, StoreManifest):
        tokens, more = _check_store(place)
        return tokens, problems + more
    if isinstance(manifest, ExportManifest):
        return manifest.tokens, problems  # what is in its files is for their own readers
    dataset = open_packed(place, stores)
    for bucket in dataset.buckets:
        for shard, described in zip(bucket.shards, bucket.entry.shards, strict=not bucket.index_only):
            assert described.tokens is not None
            where = bucket.place.where(described.tokens.name)
            problems += _check_ids(shard, dataset.manifest.tokenizer.vocab_size, where)
    if not problems:
        problems = _attempt(lambda: check_packed(dataset, stores))
    return sum(bucket.rows * bucket.sequence_length for bucket in dataset.buckets), problems


def _attempt(check: Callable[[], object]) -> list[PacktoolError]:
    """Run a check; return the problem that it stops at."""
    try:
        check()
    except DataError as problem:
        return [_of_dataset(problem)]
    return []


def _of_dataset(problem: DataError) -> DataError:
    """Return a problem of the dataset.

    Raises:
        DataError: the store does not answer. That says nothing about the dataset, and every file would be waited for.
    """
    if problem.code in ("store-unreachable", "store-denied"):
        raise problem
    return problem


def _check_order(place: Place, manifest: OrderManifest) -> None:
    for entry in manifest.orders:
        order = place.array(entry, OFFSET)
        if manifest.shuffle.method == "partial":
            continue  # rotations of lanes, whose length the base knows
        require_order(order, len(order), place.where(entry.name))


def _check_store(place: Place) -> tuple[int, list[PacktoolError]]:
    store = TokenStore(place)
    problems: list[PacktoolError] = []
    documents = 0
    for entry, ids, offsets in zip(store.manifest.shards, store.shards, store.offsets, strict=True):
        where = place.where(entry.tokens.name)
        problems += _check_ids(ids, store.manifest.tokenizer.vocab_size, where)
        problems += _attempt(lambda: _check_documents(store, documents, ids, offsets, where))  # noqa: B023 - called at once
        if (origins := entry.documents) is not None:
            problems += _attempt(lambda: _check_origins(store, origins))
        documents += len(offsets) - 1
    if store.loss is not None:
        problems += _attempt(lambda: _check_loss(store))
    if store.manifest.shards and store.manifest.shards[0].columns is not None:
        for name in store.kept_fields:
            problems += _attempt(partial(store.column, name))  # that there is a value for each document
    return store.tokens, problems


def _check_loss(store: TokenStore) -> None:
    """Check that every token trains or does not, and that as many do as the manifest says."""
    trained = 0
    for number, loss in enumerate(store.loss or ()):
        trained += count_trained(loss, store.place.where(shard_file("loss", number)))
    if trained != (said := store.manifest.counts["trained_tokens"]):
        what = f"{trained} tokens train, but the manifest says {said}"
        raise DataError("wrong-count", what, remedy=AGAIN, where=str(store.place))


def _check_origins(store: TokenStore, entry: FileEntry) -> None:
    origins = store.place.array(entry, ORIGIN)
    wrong = np.flatnonzero((origins["file"] >= len(store.manifest.inputs)) | (origins["record"] < 1))
    if wrong.size:
        what = f"document {int(wrong[0])} of the shard comes from no record of an input"
        raise DataError("bad-origins", what, remedy=AGAIN, where=store.place.where(entry.name))


def _check_documents(
    store: TokenStore, first: int, ids: npt.NDArray[Any], offsets: npt.NDArray[np.int64], where: str
) -> None:
    document_lengths(offsets, len(ids), where)
    info = store.manifest.tokenizer
    ends, begins = offsets[1:] - 1, offsets[:-1]
    for name, token, places in (("end with EOS", info.eos_id, ends), ("begin with BOS", info.bos_id, begins)):
        if token is not None and (wrong := np.flatnonzero(ids[places] != token)).size:
            what = f"document {first + int(wrong[0])} does not {name} ({token})"
            raise DataError("missing-eos", what, remedy=AGAIN, where=where)


def _check_ids(ids: npt.NDArray[Any], vocab_size: int, where: str) -> list[PacktoolError]:
    flat = ids.reshape(-1)
    for first in range(0, len(flat), BATCH_TOKENS):
        largest = int(flat[first : first + BATCH_TOKENS].max())
        if largest >= vocab_size:
            what = f"holds id {largest}, but the vocabulary ends at {vocab_size - 1}"
            return [DataError("id-out-of-range", what, remedy=AGAIN, where=where)]
    return []
