"""`verify` of a packed dataset: check rows against segments, segments against each other, ledger and stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.commands.document_origins import require_same_stores
from packtool.errors import DataError
from packtool.metrics.ledger import require_counted
from packtool.metrics.tally import Tally
from packtool.places.typed import Typed
from packtool.plan import I64, INSERTED_EOS, PADDING, Ints, Segments, offsets_of
from packtool.report.packed import packed_sources, read_report
from packtool.storage.packed import PackedBucket, PackedDataset
from packtool.storage.token_store import Corpus, count_trained
from packtool.writing.gather import Gatherer, Locator, LossGatherer
from packtool.writing.layout import BATCH_TOKENS

AGAIN = "make the dataset again, or copy it again"
"""What to do about any damage."""
SEGMENTS = 1 << 23
"""Segments, about, that are held at a time to see that no two of them overlap: some 400 MB."""


def check_packed(dataset: PackedDataset, stores: Sequence[Typed], segments_at_once: int = SEGMENTS) -> None:
    """Check everything beyond files and ids.

    Args:
        dataset: is checked.
        stores: that it was packed from, to compare tokens with; none to leave that out.
        segments_at_once: about how many are held to see that no two of them overlap.

    Raises:
        DataError: the first thing that is wrong.
        UsageError: stores are given, but the dataset has no segments to compare them by.
    """
    _check_report(dataset)
    dataset.batches()
    dataset.chosen()
    for bucket in dataset.buckets:
        bucket.atom_offsets()
    if not dataset.has_segments:
        if stores:
            dataset.lengths()  # says why there is nothing to compare by
        _check_trained(dataset)
        return
    corpus = _corpus(dataset, stores) if stores else None
    said = dataset.manifest.ledger.trained_stored
    if corpus is not None and dataset.manifest.has_loss and (trained := corpus.trained()) != said:
        what = f"{trained} tokens of each store train, but its ledger says {said}"
        raise DataError("ledger-unbalanced", what, remedy=AGAIN, where=str(dataset.place))
    _check_rows(dataset, corpus)
    _check_once(dataset, segments_at_once)
    _check_sources(dataset)


def _check_trained(dataset: PackedDataset) -> None:
    """Check that as many tokens train as the ledger says, in rows whose segments are not known."""
    columns = [bucket.loss for bucket in dataset.buckets if bucket.loss is not None]
    trained = sum(count_trained(loss, str(column.place)) for column in columns for loss in column.shards)
    if columns and trained != dataset.manifest.ledger.trained:
        what = f"the rows hold {trained} trained, but the ledger says {dataset.manifest.ledger.trained}"
        raise DataError("ledger-unbalanced", what, remedy=AGAIN, where=str(dataset.place))


def _check_report(dataset: PackedDataset) -> None:
    """Check that the report agrees with the manifest."""
    manifest = dataset.manifest
    report = read_report(dataset.place, manifest)
    for name in ("strategy", "options", "shuffle", "ledger"):
        if getattr(report, name) != getattr(manifest, name):
            what = f"its {name} is not the manifest's"
            where = dataset.place.where(manifest.report.name)
            raise DataError("damaged-report", what, remedy=AGAIN, where=where)


def _check_sources(dataset: PackedDataset) -> None:
    """Check that the report's figures of each store follow from the manifest and the lengths."""
    manifest = dataset.manifest
    reported = read_report(dataset.place, manifest).sources
    expected = packed_sources(
        manifest.inputs,
        manifest.store_documents,
        dataset.lengths(),
        manifest.choice,
        trained=manifest.ledger.trained_stored,
    )
    if reported and reported != expected:
        what, where = "its sources are not the manifest's", dataset.place.where(manifest.report.name)
        raise DataError("damaged-report", what, remedy=AGAIN, where=where)


def _corpus(dataset: PackedDataset, stores: Sequence[Typed]) -> Corpus:
    require_same_stores(dataset, stores)
    corpus = Corpus(stores)
    if (chosen := dataset.chosen()) is not None:
        corpus.choose(chosen)
    if not np.array_equal(corpus.lengths(), dataset.lengths()):
        what = "lengths.npy does not hold the lengths of the documents in the stores"
        raise DataError("wrong-count", what, remedy=AGAIN, where=str(dataset.place))
    return corpus


def _batches(dataset: PackedDataset) -> Iterator[tuple[PackedBucket, int, Segments]]:
    """Yield all rows, a few million tokens at a time: bucket, first row and their segments."""
    for bucket in dataset.buckets:
        step = max(1, BATCH_TOKENS // bucket.sequence_length)
        for first in range(0, bucket.rows, step):
            yield bucket, first, bucket.segments(first, min(first + step, bucket.rows))
        bucket.release()


def _check_rows(dataset: PackedDataset, corpus: Corpus | None) -> None:
    """Check rows against their segments, and their sums against the ledger."""
    manifest, lengths = dataset.manifest, dataset.lengths()
    tallies = {bucket.sequence_length: Tally(lengths, bucket.sequence_length) for bucket in dataset.buckets}
    gather = gather_loss = None
    if corpus is not None and not manifest.index_only:  # else rows are the stores' anyway
        locate, stores = Locator(corpus.shards, corpus.locate), corpus.stores
        columns, counts = [store.loss for store in stores], [len(store.shards) for store in stores]
        gather_loss = LossGatherer(columns, counts, locate, longest=max(tallies)) if manifest.has_loss else None
        gather = Gatherer(
            corpus.shards,
            locate,
            dtype=corpus.dtype,
            pad_id=manifest.pad_id,
            eos_id=manifest.tokenizer.eos_id,
            longest_fill=max(tallies),
        )
    for bucket in dataset.buckets:
        bucket.checked_tables()
    for bucket, first, rows in _batches(dataset):
        tokens = bucket.tokens(first, first + rows.groups).reshape(-1)
        _check_tokens(dataset, bucket, first, rows, tokens)
        tallies[bucket.sequence_length].add(rows)
        if gather is not None and (wrong := np.flatnonzero(gather(rows) != tokens)).size:
            raise _bad_row(bucket, first + int(wrong[0]) // bucket.sequence_length, "its tokens are not the store's")
        if bucket.loss is not None:
            loss = bucket.loss.tokens(first, first + rows.groups).reshape(-1)
            _check_loss_of_rows(bucket, first, rows, loss)
            tallies[bucket.sequence_length].add_loss(rows, loss)
            if gather_loss is not None and (wrong := np.flatnonzero(gather_loss(rows) != loss)).size:
                what = "what trains in it is not what trains in the store"
                raise _bad_row(bucket, first + int(wrong[0]) // bucket.sequence_length, what)
    counted, where = list(tallies.values()), str(dataset.place)
    require_counted(manifest.ledger, counted, has_loss=manifest.has_loss, remedy=AGAIN, where=where)


def _check_tokens(
    dataset: PackedDataset, bucket: PackedBucket, first: int, rows: Segments, tokens: npt.NDArray[Any]
) -> None:
    manifest, lengths = dataset.manifest, np.asarray(dataset.lengths())
    real = rows.document >= 0
    final = real & (rows.start + rows.length == lengths[np.where(real, rows.document, 0)]) if len(lengths) else real
    last = tokens[np.cumsum(rows.length) - 1]
    wrong = np.flatnonzero((final | (rows.document == INSERTED_EOS)) & (last != manifest.tokenizer.eos_id))
    if wrong.size:
        raise _bad_row(bucket, first + int(rows.group_of()[wrong[0]]), "a document's end is not EOS")
    padded = np.repeat(rows.document == PADDING, rows.length)
    if (wrong := np.flatnonzero(tokens[padded] != manifest.pad_id)).size:
        place = int(np.flatnonzero(padded)[wrong[0]])
        raise _bad_row(bucket, first + place // bucket.sequence_length, "its padding holds something else")


def _check_loss_of_rows(bucket: PackedBucket, first: int, rows: Segments, loss: npt.NDArray[Any]) -> None:
    count_trained(loss, str(bucket.place))
    padded = np.flatnonzero(np.repeat(rows.document == PADDING, rows.length))
    if (wrong := np.flatnonzero(loss[padded])).size:
        raise _bad_row(bucket, first + int(padded[wrong[0]]) // bucket.sequence_length, "its padding trains")


def _check_once(dataset: PackedDataset, at_once: int) -> None:
    """Check that no token is placed twice, and that tokens marked as repeated are also placed elsewhere.

    The documents' tokens, one after the other, are a line, and segments are intervals of it: no two may overlap. They
    are compared some millions at a time, so memory stays bounded and the segment table is read again.

    Raises:
        DataError: naming a document.
    """
    starts = offsets_of(np.asarray(dataset.lengths()))
    segments = sum(sum(bucket.segment_counts) for bucket in dataset.buckets)
    cuts = np.linspace(0, starts[-1], -(-segments // at_once) + 1).astype(np.int64)
    for low, high in pairwise(cuts.tolist()):
        _check_stretch(dataset, starts, low, high)


def _check_stretch(dataset: PackedDataset, starts: I64, low: int, high: int) -> None:
    """Apply `_check_once` to the places from `low` up to `high`."""
    fresh_parts: tuple[list[I64], list[I64]] = [], []
    again_parts: tuple[list[I64], list[I64]] = [], []
    for _, _, rows in _batches(dataset):
        real = rows.document >= 0
        begin = starts[rows.document[real]] + rows.start[real]
        fresh, end = begin + rows.repeated[real], begin + rows.length[real]
        for first, last, keep in ((fresh, end, fresh_parts), (begin, fresh, again_parts)):
            here = (np.maximum(first, low) < np.minimum(last, high)) & (first < last)
            keep[0].append(np.maximum(first[here], low))
            keep[1].append(np.minimum(last[here], high))
    begin, end = map(_joined, fresh_parts)
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    if (twice := np.flatnonzero(begin[1:] < end[:-1])).size:
        raise _placed(dataset, starts, int(begin[twice[0] + 1]), "is placed twice, without being marked as repeated")
    covered = offsets_of(end - begin)
    first, last = map(_joined, again_parts)
    lost = np.flatnonzero(_before(last, begin, end, covered) - _before(first, begin, end, covered) != last - first)
    if lost.size:
        raise _placed(dataset, starts, int(first[lost[0]]), "is marked as repeated, but placed nowhere")


def _before(place: I64, begin: I64, end: I64, covered: I64) -> I64:
    """Count the places before each given one that disjoint stretches ``begin:end`` cover."""
    at = np.searchsorted(begin, place, side="right")
    over: Ints = np.where(at > 0, np.maximum(end[np.maximum(at, 1) - 1] - place, 0), 0) if len(end) else at
    return covered[at] - over


def _joined(parts: list[I64]) -> I64:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _placed(dataset: PackedDataset, starts: I64, place: int, what: str) -> DataError:
    document = int(np.searchsorted(starts, place, side="right")) - 1
    token = place - int(starts[document])
    what = f"token {token} of document {document} {what}"
    return DataError("placed-twice", what, remedy=AGAIN, where=str(dataset.place))


def _bad_row(bucket: PackedBucket, row: int, what: str) -> DataError:
    return DataError("bad-segments", f"row {row}: {what}", remedy=AGAIN, where=str(bucket.place))
