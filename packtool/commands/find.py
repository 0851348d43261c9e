"""`find`: locate a document in the rows of a packed dataset or in a token store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from packtool.choosing.absent import AbsentDocument, absent_document
from packtool.choosing.documents import StoredDocuments
from packtool.choosing.stored_document import StoredDocument, stored_document
from packtool.commands.document_origins import Origins, documents_named, stores_of
from packtool.commands.places import places_to_read
from packtool.formats import manifest as manifests
from packtool.formats.names import REJECTED
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import StoreManifest
from packtool.formats.token_store import Corpus, TokenStore
from packtool.options.check import check_input
from packtool.options.inspecting import FindArguments
from packtool.options.signature import takes
from packtool.places.place import Place
from packtool.places.typed import place_of


@dataclass(frozen=True)
class FoundSegment:
    """One segment of the document in a row.

    Attributes:
        sequence_length: of the row; tells the bucket.
        row: its number in the bucket.
        document: number of the document in the dataset; it has several after several passes.
        start, length: of the segment, in tokens, counted from the document's first.
        repeated: leading tokens of the segment that an earlier row has.
    """

    sequence_length: int
    row: int
    document: int
    start: int
    length: int
    repeated: int


@dataclass(frozen=True)
class FindResult:
    """The places of a document in a dataset, or its entry in a store.

    Attributes:
        path: the dataset or store.
        record: the id, or the file and line, that was asked for.
        documents: its numbers in the dataset or store; no numbers if it was left out.
        places: its segments, row by row.
        stored: the documents, if they were found in a token store; None for a packed dataset.
        absent: the documents of the stores that go by the name, and are not in the dataset.
        rejected: the files of the stores with the records that can't be used.
    """

    path: Path | str
    record: str
    documents: list[int]
    places: list[FoundSegment]
    stored: list[StoredDocument] | None = None
    absent: list[AbsentDocument] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)


@takes(FindArguments)
def find(options: FindArguments) -> FindResult:
    """Find the rows of a packed dataset that hold a document, given by its id, or by its input file and line.

    In a token store, find the document's number, file, line, tokens, and the columns kept with it.

    Raises:
        UsageError: no such id or file, not FILE:LINE, or other stores than the dataset was packed from.
        DataError: the dataset or a store is missing or damaged.
    """
    with places_to_read(options.path) as [place], places_to_read(options.store) as given:
        if isinstance(manifests.read(place), StoreManifest):
            check_input(options, "token stores")
            return _in_store(place, options.record)
        dataset = PackedDataset(place)
        stores = given or stores_of(dataset, ())
        packed, absent = Origins(dataset, stores).named(options.record)
        documents: list[int] = packed.tolist()
        places = _segments(dataset, documents)
        left_out: list[AbsentDocument] = []
        choice = dataset.manifest.choice
        if absent and choice is not None:
            known = StoredDocuments(Corpus(stores))
            left_out = [absent_document(known, source, number, choice) for source, number in absent]
        rejected = _rejected(map(TokenStore, stores))
        shown = place_of(options.path).shown
        return FindResult(shown, options.record, documents, places, absent=left_out, rejected=rejected)


def _in_store(place: Place, record: str) -> FindResult:
    store = TokenStore(place)
    [numbers] = documents_named([store], record)
    documents: list[int] = numbers.tolist()
    stored = [stored_document(store, number) for number in documents]
    return FindResult(place.shown, record, documents, [], stored=stored, rejected=_rejected([store]))


def _rejected(stores: Iterable[TokenStore]) -> list[str]:
    files = []
    for store in stores:
        if store.manifest.rejected is not None:
            files.append(store.place.where(REJECTED))
    return files


def _segments(dataset: PackedDataset, documents: Sequence[int]) -> list[FoundSegment]:
    out = []
    for bucket in dataset.buckets:
        firsts = bucket.shards.first_rows.tolist()
        for first, (table, offsets) in zip(firsts, bucket.segments.checked_tables(), strict=False):
            for at in np.flatnonzero(np.isin(table["document"], documents)).tolist():
                row = first + int(np.searchsorted(offsets, at, side="right")) - 1
                document, start, length, repeated = map(int, table[at].tolist())
                out.append(FoundSegment(bucket.sequence_length, row, document, start, length, repeated))
    return out
