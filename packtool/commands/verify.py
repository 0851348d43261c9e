"""`verify`: check a dataset against its manifest, and its contents for contradictions.

Stores are checked document by document; of packed datasets, rows are checked against segments, segments against each
other, and both against the ledger and, where they are given, the stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.choosing.kept_columns import kept_values
from packtool.commands.document_origins import require_same_stores
from packtool.commands.places import places_to_read
from packtool.errors import DataError, PacktoolError
from packtool.formats import manifest as manifests
from packtool.formats.bucket_shards import StoredColumn
from packtool.formats.kept_columns import is_absent
from packtool.formats.names import ORIGIN
from packtool.formats.packed import PackedBucket, PackedDataset
from packtool.formats.schema import ExportManifest, Manifest, PackedManifest, StoreManifest, listed_files
from packtool.formats.token_store import Corpus, TokenStore, count_trained, document_lengths
from packtool.options.check import check_input
from packtool.options.declare import Input
from packtool.options.inspecting import VerifyArguments
from packtool.options.kinds import KeptField
from packtool.options.signature import takes
from packtool.outputs.tokenizer_files import require_tokenizer
from packtool.places.npy import FileEntry
from packtool.places.place import DATASET_AGAIN, Place
from packtool.planning.arrays import blocks
from packtool.planning.metrics.ledger import require_counted
from packtool.planning.metrics.tally import Tally
from packtool.planning.plan import I64, INSERTED_EOS, PADDING, Segments, offsets_of
from packtool.report.dataset_report import packed_sources
from packtool.report.types import PackedReport
from packtool.rows.gather import Gatherer, Locator, LossGatherer
from packtool.rows.layout import BATCH_TOKENS
from packtool.rows.stored_tokens import open_packed, store_places
from packtool.support.progress import Progress
from packtool.support.sizes import plural

SEGMENTS = 1 << 23
"""Segments to hold at a time, about, when looking for overlaps: 400 MB."""
_INPUTS: dict[type[Manifest], Input] = {
    StoreManifest: "token stores",
    PackedManifest: "packed datasets",
    ExportManifest: "exports",
}


@dataclass(frozen=True)
class VerifyResult:
    """The result of `verify`.

    Attributes:
        path: the dataset.
        kind: its format.
        files, bytes: checked against the manifest.
        tokens: number of its tokens; tokens of an export are not looked at, since its files have readers of their own.
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
    """Check a token store, a packed dataset or an export against its manifest.

    The manifest must carry its own checksum. Every file must be there with its size and checksum; every id must lie
    below the vocabulary size; documents must end with EOS; segments must fill their rows and lie inside their
    documents; no token may be placed twice, unless it is marked as repeated; and the sums must be those of the ledger.
    Reads every byte once for the checksums and once for the ids.

    Raises:
        DataError: the manifest itself is missing or damaged; a store is not the one that was packed; an object store
            fails or refuses.
        UsageError: stores are given, but not a packed dataset.
    """
    with places_to_read(options.path) as [place], places_to_read(options.store) as given:
        manifest = manifests.read(place)
        check_input(options, _INPUTS[type(manifest)])
        files, stores = [(place, file) for file in listed_files(manifest)], given
        if isinstance(manifest, PackedManifest) and manifest.index_only:
            stores = store_places(PackedDataset(place), given)
            for store in stores:
                files += [(store, file) for file in listed_files(manifests.read(store))]
        size = sum(file.bytes for _, file in files)
        problems: list[PacktoolError] = []
        with Progress(size, "verify", quiet=options.quiet) as bar:
            for where, file in files:
                problem = where.problem(file)
                if problem:
                    with _collecting(problems):
                        raise problem
                bar.advance(file.bytes)
        tokens = 0
        if not problems:
            tokens = _check_content(place, manifest, stores, problems)
        return VerifyResult(place.shown, manifest.format, len(files), size, tokens, problems)


def _check_content(place: Place, manifest: Manifest, stores: Sequence[Place], problems: list[PacktoolError]) -> int:
    """Check what lies in sound files, collect the problems, and return the number of tokens."""
    with _collecting(problems):
        require_tokenizer(place, manifest.tokenizer_files, manifest.tokenizer.sha256)
    if isinstance(manifest, StoreManifest):
        return _check_store(place, problems)
    if isinstance(manifest, ExportManifest):
        return manifest.tokens  # what is in its files is for their own readers
    dataset = open_packed(place, stores)
    for bucket in dataset.buckets:
        if not isinstance(bucket.tokens, StoredColumn):
            continue
        for tokens, file in zip(bucket.tokens.arrays, bucket.shards.column("tokens"), strict=True):
            with _collecting(problems):
                where = bucket.shards.place.where(file.name)
                _check_ids(tokens, dataset.manifest.tokenizer.vocab_size, where)
    if not problems:
        with _collecting(problems):
            _check_packed(dataset, stores)
    return sum(bucket.rows * bucket.sequence_length for bucket in dataset.buckets)


@contextmanager
def _collecting(problems: list[PacktoolError]) -> Iterator[None]:
    """Add the problem that a check stops at."""
    try:
        yield
    except DataError as problem:
        if problem.code in ("store-unreachable", "store-denied"):
            raise  # every file would wait for a store that does not answer
        problems.append(problem)


def _check_store(place: Place, problems: list[PacktoolError]) -> int:
    store = TokenStore(place)
    documents = 0
    for entry, ids, offsets in zip(store.manifest.shards, store.shards, store.offsets, strict=True):
        where = place.where(entry.tokens.name)
        with _collecting(problems):
            _check_ids(ids, store.manifest.tokenizer.vocab_size, where)
        with _collecting(problems):
            _check_documents(store, documents, ids, offsets, where)
        if entry.documents is not None:
            with _collecting(problems):
                _check_origins(store, entry.documents)
        documents += len(offsets) - 1
    if store.loss is not None:
        with _collecting(problems):
            store.require_trained()
    if store.manifest.shards and store.manifest.shards[0].columns is not None:
        for name in store.kept_fields:
            with _collecting(problems):
                store.column(name)  # that there is a value for each document
    return store.tokens


def _check_origins(store: TokenStore, entry: FileEntry) -> None:
    origins = store.place.array(entry, ORIGIN)
    wrong = np.flatnonzero((origins["file"] >= len(store.manifest.inputs)) | (origins["record"] < 1))
    if wrong.size:
        what = f"document {int(wrong[0])} of the shard comes from no record of an input"
        raise DataError("bad-origins", what, remedy=DATASET_AGAIN, where=store.place.where(entry.name))


def _check_documents(
    store: TokenStore, first: int, ids: npt.NDArray[Any], offsets: npt.NDArray[np.int64], where: str
) -> None:
    document_lengths(offsets, len(ids), where)
    info = store.manifest.tokenizer
    ends, begins = offsets[1:] - 1, offsets[:-1]
    for name, token, places in (("end with EOS", info.eos_id, ends), ("begin with BOS", info.bos_id, begins)):
        if token is None:
            continue
        wrong = np.flatnonzero(ids[places] != token)
        if wrong.size:
            what = f"document {first + int(wrong[0])} does not {name} ({token})"
            raise DataError("missing-eos", what, remedy=DATASET_AGAIN, where=where)


def _check_ids(ids: npt.NDArray[Any], vocab_size: int, where: str) -> None:
    flat = ids.reshape(-1)
    for first in range(0, len(flat), BATCH_TOKENS):
        largest = int(flat[first : first + BATCH_TOKENS].max())
        if largest >= vocab_size:
            what = f"holds id {largest}, but the vocabulary ends at {vocab_size - 1}"
            raise DataError("id-out-of-range", what, remedy=DATASET_AGAIN, where=where)


def _check_packed(dataset: PackedDataset, stores: Sequence[Place]) -> None:
    """Check everything beyond files and ids, and compare tokens with the stores that are given."""
    written = _written_report(dataset)
    dataset.batches()
    dataset.chosen()
    for bucket in dataset.buckets:
        bucket.shards.atom_offsets()
    if not dataset.has_segments:
        if stores:
            dataset.lengths()  # says why there is nothing to compare by
        _check_trained(dataset)
        return
    corpus = None
    if stores:
        corpus = _corpus(dataset, stores)
        if dataset.manifest.has_loss:
            _check_trained_of_stores(dataset, corpus)
    _check_columns(dataset, corpus)
    _check_rows(dataset, corpus)
    _check_once(dataset)
    _check_sources(dataset, written)


def _check_columns(dataset: PackedDataset, corpus: Corpus | None) -> None:
    """Check the columns that were kept of the documents; with the stores at hand, that they have these values."""
    columns = dataset.columns
    for name, entry in columns.entries.items():
        values, missing = columns.values(name), 0
        where = dataset.place.where(entry.values.name)
        for first, last in blocks(len(values)):
            columns.require_listed(name, values[first:last])
            missing += int(np.count_nonzero(is_absent(values[first:last])))
        if missing != entry.missing:
            what = f"column {name} lacks {plural(missing, 'value')}, but the manifest says {entry.missing}"
            raise DataError("bad-columns", what, remedy=DATASET_AGAIN, where=where)
        if corpus is None:
            continue
        kept = kept_values(corpus, KeptField(name, number=entry.categories is None))
        if kept.categories != columns.categories(name):
            what = f"the names of column {name} are not those in the stores"
            raise DataError("bad-columns", what, remedy=DATASET_AGAIN, where=where)
        for first, last in blocks(len(values)):
            here, there = values[first:last], kept.values[first:last]
            wrong = np.flatnonzero((here != there) & ~(is_absent(here) & is_absent(there)))
            if wrong.size:
                what = f"column {name} of document {first + int(wrong[0])} is not the value in its store"
                raise DataError("bad-columns", what, remedy=DATASET_AGAIN, where=where)


def _check_trained_of_stores(dataset: PackedDataset, corpus: Corpus) -> None:
    trained, recorded = corpus.trained(), dataset.manifest.ledger.trained_stored
    if trained != recorded:
        what = f"{trained} tokens of each store train, but its ledger says {recorded}"
        raise DataError("ledger-unbalanced", what, remedy=DATASET_AGAIN, where=str(dataset.place))


def _check_trained(dataset: PackedDataset) -> None:
    """Check that as many tokens train as the ledger says, in rows whose segments are not known."""
    trained = 0
    for bucket in dataset.buckets:
        if isinstance(bucket.loss, StoredColumn):
            trained += sum(count_trained(loss, str(bucket.shards.place)) for loss in bucket.loss.arrays)
    if dataset.manifest.has_loss and trained != dataset.manifest.ledger.trained:
        what = f"the rows hold {trained} trained, but the ledger says {dataset.manifest.ledger.trained}"
        raise DataError("ledger-unbalanced", what, remedy=DATASET_AGAIN, where=str(dataset.place))


def _written_report(dataset: PackedDataset) -> PackedReport:
    """Read the report as it is written, and check that it agrees with the manifest."""
    manifest = dataset.manifest
    written = manifests.read_report(dataset.place, manifest.report, PackedReport)
    for name in ("options", "strategy", "shuffle", "ledger"):
        _require_agreement(dataset, name, getattr(written, name) == getattr(manifest, name))
    return written


def _check_sources(dataset: PackedDataset, written: PackedReport) -> None:
    """Check that the report's figures of each store follow from the manifest and the lengths."""
    manifest, lengths, trained = dataset.manifest, dataset.lengths(), dataset.manifest.ledger.trained_stored
    expected = packed_sources(manifest.inputs, manifest.store_documents, lengths, manifest.choice, trained=trained)
    _require_agreement(dataset, "sources", written.sources in ([], expected))


def _require_agreement(dataset: PackedDataset, name: str, agrees: bool) -> None:
    if not agrees:
        what, where = f"its {name} is not the manifest's", dataset.place.where(dataset.manifest.report.name)
        raise DataError("damaged-report", what, remedy=DATASET_AGAIN, where=where)


def _corpus(dataset: PackedDataset, stores: Sequence[Place]) -> Corpus:
    require_same_stores(dataset, stores)
    corpus = Corpus(stores)
    chosen = dataset.chosen()
    if chosen is not None:
        corpus.choose(chosen)
    if not np.array_equal(corpus.lengths(), dataset.lengths()):
        what = "lengths.npy does not hold the lengths of the documents in the stores"
        raise DataError("wrong-count", what, remedy=DATASET_AGAIN, where=str(dataset.place))
    return corpus


def _batches(dataset: PackedDataset) -> Iterator[tuple[PackedBucket, int, Segments]]:
    """Yield all rows, a few million tokens at a time: bucket, first row and their segments."""
    for bucket in dataset.buckets:
        step = max(1, BATCH_TOKENS // bucket.sequence_length)
        for first in range(0, bucket.rows, step):
            yield bucket, first, bucket.segments.between(first, min(first + step, bucket.rows))
        bucket.release()


def _check_rows(dataset: PackedDataset, corpus: Corpus | None) -> None:
    """Check rows against their segments, and their sums against the ledger."""
    manifest, lengths = dataset.manifest, dataset.lengths()
    sizes = [bucket.sequence_length for bucket in dataset.buckets]
    tallies = {size: Tally(lengths, size, manifest.multiple) for size in sizes}
    gather = gather_loss = None
    if corpus is not None and not manifest.index_only:  # else rows are the stores' anyway
        if manifest.has_loss:
            gather_loss = LossGatherer.of(corpus, max(tallies))
        gather = Gatherer(
            corpus.shards,
            Locator(corpus.shards, corpus.locate),
            dtype=corpus.dtype,
            pad_id=manifest.pad_id,
            eos_id=manifest.tokenizer.eos_id,
            longest_fill=max(tallies),
        )
    for bucket in dataset.buckets:
        bucket.segments.checked_tables()
    for bucket, first, rows in _batches(dataset):
        tokens = bucket.tokens.between(first, first + rows.groups).reshape(-1)
        _check_tokens(dataset, bucket, first, rows, tokens)
        tallies[bucket.sequence_length].add(rows)
        if gather is not None:
            _require_none(gather(rows) != tokens, bucket, first, "its tokens are not the store's")
        if bucket.loss is not None:
            loss = bucket.loss.between(first, first + rows.groups).reshape(-1)
            _check_loss_of_rows(bucket, first, rows, loss)
            tallies[bucket.sequence_length].add_loss(rows, loss)
            if gather_loss is not None:
                what = "its mask of trained tokens differs from that of the store"
                _require_none(gather_loss(rows) != loss, bucket, first, what)
    counted, where = list(tallies.values()), str(dataset.place)
    require_counted(manifest.ledger, counted, has_loss=manifest.has_loss, remedy=DATASET_AGAIN, where=where)


def _check_tokens(
    dataset: PackedDataset, bucket: PackedBucket, first: int, rows: Segments, tokens: npt.NDArray[Any]
) -> None:
    manifest, lengths = dataset.manifest, np.asarray(dataset.lengths())
    real = rows.document >= 0
    final = real.copy()
    final[real] = (rows.start + rows.length)[real] == lengths[rows.document[real]]
    ends = np.cumsum(rows.length) - 1
    wrong = np.flatnonzero((final | (rows.document == INSERTED_EOS)) & (tokens[ends] != manifest.tokenizer.eos_id))
    if wrong.size:
        raise _bad_row(bucket, first, ends[wrong[0]], "a document's end is not EOS")
    begins = offsets_of(rows.length)[:-1][real]
    wrong = np.flatnonzero(begins % dataset.manifest.multiple)
    if wrong.size:
        what = f"a document does not begin at a multiple of {dataset.manifest.multiple}"
        raise _bad_row(bucket, first, begins[wrong[0]], what)
    padded = np.flatnonzero(np.repeat(rows.document == PADDING, rows.length))
    wrong = np.flatnonzero(tokens[padded] != manifest.pad_id)
    if wrong.size:
        raise _bad_row(bucket, first, padded[wrong[0]], "its padding holds something else")


def _check_loss_of_rows(bucket: PackedBucket, first: int, rows: Segments, loss: npt.NDArray[Any]) -> None:
    count_trained(loss, str(bucket.shards.place))
    padded = np.flatnonzero(np.repeat(rows.document == PADDING, rows.length))
    wrong = np.flatnonzero(loss[padded])
    if wrong.size:
        raise _bad_row(bucket, first, padded[wrong[0]], "its padding trains")


def _check_once(dataset: PackedDataset) -> None:
    """Check that no token is placed twice, and that tokens marked as repeated are also placed elsewhere.

    The documents' tokens, one after the other, are a line, and segments are intervals of it: no two may overlap. They
    are compared some millions at a time, so memory stays bounded and the segment table is read again.
    """
    starts = offsets_of(np.asarray(dataset.lengths()))
    segments = sum(map(sum, (bucket.segments.counts for bucket in dataset.buckets)))
    cuts = np.linspace(0, starts[-1], -(-segments // SEGMENTS) + 1).astype(np.int64)
    for low, high in pairwise(cuts.tolist()):
        _check_stretch(dataset, starts, low, high)


def _check_stretch(dataset: PackedDataset, starts: I64, low: int, high: int) -> None:
    """Apply `_check_once` to the places from `low` up to `high`; a place is a token's number on the documents' line."""
    fresh, again = [np.empty((2, 0), np.int64)], [np.empty((2, 0), np.int64)]
    for _, _, rows in _batches(dataset):
        real = rows.document >= 0
        begin = starts[rows.document[real]] + rows.start[real]
        end = begin + rows.length[real]
        first_fresh = begin + rows.repeated[real]  # repeated tokens are a segment's first ones
        fresh.append(_within(first_fresh, end, low, high))
        again.append(_within(begin, first_fresh, low, high))
    begin, end = np.concatenate(fresh, axis=1)
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    # If any two intervals overlap, two that are neighbours in this order do.
    twice = np.flatnonzero(begin[1:] < end[:-1])
    if twice.size:
        raise _placed(dataset, starts, int(begin[twice[0] + 1]), "is placed twice, without being marked as repeated")
    covered = offsets_of(end - begin)
    first, last = np.concatenate(again, axis=1)
    covered_inside = _before(last, begin, end, covered) - _before(first, begin, end, covered)
    lost = np.flatnonzero(covered_inside != last - first)
    if lost.size:
        raise _placed(dataset, starts, int(first[lost[0]]), "is marked as repeated, but placed nowhere")


def _within(begin: I64, end: I64, low: int, high: int) -> I64:
    """Return what lies from `low` up to `high` of intervals ``begin:end``: (2, intervals), without empty ones."""
    clipped = np.stack([np.maximum(begin, low), np.minimum(end, high)])
    return clipped[:, clipped[0] < clipped[1]]


def _before(place: I64, begin: I64, end: I64, covered: I64) -> I64:
    """Count the places before each given one that disjoint intervals ``begin:end`` cover.

    Args:
        begin, end: of the intervals, ascending.
        covered: (intervals + 1), the places that the intervals before each one cover.
    """
    at = np.searchsorted(begin, place, side="right")  # intervals that begin before each place, or at it
    if not len(end):
        return np.zeros_like(at)
    # Each of them is covered as far as its end, but the last one may go on beyond the place.
    beyond = np.maximum(end[np.maximum(at, 1) - 1] - place, 0)
    return covered[at] - np.where(at > 0, beyond, 0)


def _placed(dataset: PackedDataset, starts: I64, place: int, what: str) -> DataError:
    document = int(np.searchsorted(starts, place, side="right")) - 1
    what = f"token {place - int(starts[document])} of document {document} {what}"
    return DataError("placed-twice", what, remedy=DATASET_AGAIN, where=str(dataset.place))


def _require_none(wrong: npt.NDArray[np.bool_], bucket: PackedBucket, first: int, what: str) -> None:
    """Refuse the first token that is wrong, counted from row `first`."""
    places = np.flatnonzero(wrong)
    if places.size:
        raise _bad_row(bucket, first, places[0], what)


def _bad_row(bucket: PackedBucket, first: int, token: np.integer[Any], what: str) -> DataError:
    """Return the error for a row that holds something wrong at this token, counted from row `first`."""
    row = first + int(token) // bucket.sequence_length
    return DataError("bad-segments", f"row {row}: {what}", remedy=DATASET_AGAIN, where=str(bucket.shards.place))
