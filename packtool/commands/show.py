"""`show`: decode one row of a packed dataset, segment by segment, or one document of a token store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from packtool.choosing.stored_document import stored_document
from packtool.commands.document_origins import Origins, PackedDocuments, documents_named, stores_nearby, stores_of
from packtool.commands.places import places_to_read
from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.kept_columns import is_absent
from packtool.formats.names import TOKENIZER
from packtool.formats.packed import PackedBucket, PackedDataset
from packtool.formats.schema import StoreManifest
from packtool.formats.token_store import TokenStore
from packtool.options.check import check_input
from packtool.options.inspecting import ShowArguments
from packtool.options.signature import takes
from packtool.outputs.tokenizer_files import read_tokenizer
from packtool.places.place import Place
from packtool.places.typed import Typed, place_of
from packtool.planning.plan import INSERTED_EOS, PADDING
from packtool.report.row import Row, RowPart, RowSegment, Run
from packtool.rows.stored_tokens import open_packed
from packtool.support.sizes import plural

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Decode: TypeAlias = Callable[[list[int]], str | None]
SHOWN = 1 << 20
"""Most tokens that are shown, from the first on: decoded, each takes about a hundred bytes."""


@takes(ShowArguments)
def show(options: ShowArguments) -> Row:
    """Show one row of a packed dataset, or one document of a token store.

    Raises:
        UsageError: no such row, bucket, document, id or line; an option of rows for a store, or of documents for a
            dataset; another tokenizer.
        DataError: the dataset or store is missing or damaged; no document came from the line.
    """
    with places_to_read(options.path) as [place], places_to_read(options.store) as stores:
        if isinstance(manifests.read(place), StoreManifest):
            check_input(options, "token stores")
            return _document(TokenStore(place), options)
        check_input(options, "packed datasets")
        dataset = open_packed(place, stores)
        bucket = _bucket(dataset, options.bucket)
        row = _number(options.row or 0, bucket.rows, "row")
        tokenizer = _tokenizer(dataset, options.tokenizer)
        found = _stores(dataset, stores)
        missing: list[str] = []
        if found is None and dataset.has_segments:
            missing = manifests.input_names(place, dataset.manifest.inputs)
        segments = _segments(
            dataset,
            bucket,
            row,
            _decoder(tokenizer),
            _origins(dataset, found, asked=bool(stores)),
            _roles(dataset, found or (), tokenizer),
        )
        length = bucket.sequence_length
        shown = place_of(options.path).shown
        return Row(shown, row, bucket.rows, length, segments, missing, left_out=max(0, length - SHOWN))


def _document(store: TokenStore, options: ShowArguments) -> Row:
    """Show a document of a store with what trains of it, as a row of one segment."""
    number, others = _wanted(store, options)
    whole, loss = store.document(number), store.document_loss(number)
    tokens = whole[:SHOWN].tolist()
    if loss is not None:
        loss = loss[:SHOWN]
    tokenizer = _tokenizer(store, options.tokenizer)
    decode = _decoder(tokenizer)
    [roles] = _roles(store, [store.place], tokenizer)
    known = stored_document(store, number)
    columns: dict[str, str | float | None] = {**known.columns}
    identifier = None
    if store.id_field is not None:
        identifier = known.columns[store.id_field]
        del columns[store.id_field]
    segment = RowSegment(
        "document",
        tokens,
        decode(tokens),
        document=number,
        start=0,
        document_length=len(whole),
        origin=known.origin,
        id=identifier,
        runs=_runs(tokens, loss, decode),
        parts=_parts(tokens, 0, roles, store.manifest.tokenizer.eos_id, decode),
        columns=columns,
    )
    shown = place_of(options.path).shown
    left_out = len(whole) - len(tokens)
    return Row(shown, number, store.documents, len(whole), [segment], kind="document", others=others, left_out=left_out)


def _wanted(store: TokenStore, options: ShowArguments) -> tuple[int, list[int]]:
    """Return the number of the document that is asked for, and the numbers of others that go by the same name."""
    if options.find is None:
        return _number(options.document or 0, store.documents, "document"), []
    [numbers] = documents_named([store], options.find)
    if not len(numbers):
        what = f"no document came from {options.find}"
        remedy = "look at that line of the input: it is past the end, empty, or was left out when it was tokenized"
        raise DataError("unknown-line", what, remedy=remedy, where=str(store.place))
    first, *others = numbers.tolist()
    return first, others


def _number(wanted: int, count: int, kind: Literal["row", "document"]) -> int:
    """Return the number of a row or document, counted from the end where it is negative."""
    number = wanted
    if wanted < 0:
        number += count
    if not 0 <= number < count:
        what, remedy = f"{wanted} is not among its {plural(count, kind)}", "give a number from 0"
        if kind == "row":
            raise UsageError("bad-row", what, remedy=remedy, where="--row")
        raise UsageError("bad-document", what, remedy=remedy, where="--document")
    return number


def _stores(dataset: PackedDataset, given: Sequence[Place]) -> Sequence[Typed] | None:
    """Find the stores that a dataset was packed from; None if they are gone."""
    if dataset.manifest.index_only:
        return stores_of(dataset, given)
    if given or not dataset.has_segments:
        return given or None
    return stores_nearby(dataset)


def _origins(dataset: PackedDataset, stores: Sequence[Typed] | None, *, asked: bool) -> Origins | None:
    """Open the origins of documents; None where they are not known.

    Args:
        asked: stores were given. Then a store without origins is an error, as `Origins` says, but not for a dataset
            without tokens, which needs the stores anyway.
    """
    if not stores:
        return None
    origins = Origins(dataset, stores)
    if origins.known or (asked and not dataset.manifest.index_only):
        return origins
    return None


def _roles(
    dataset: PackedDataset | TokenStore, stores: Sequence[Typed], tokenizer: Tokenizer | None
) -> list[dict[int, str]]:
    """Say for each store which tokens begin prefix, suffix and middle, and the text behind it.

    A store that was tokenized to fill in the middle records its sentinels. Where the stores are not at hand, they are
    the tokens that the tokenizer has by the usual names.
    """
    from packtool.text.encoding.special import sentinels

    added = dataset.manifest.tokenizer.added_tokens
    if stores:
        recorded = [manifests.read_as(store, StoreManifest).options.get("fim_tokens") for store in stores]
    else:
        known = sentinels(added)
        recorded = [known.texts if known else None] * max(len(dataset.manifest.inputs), 1)
    ids: Mapping[str, int] = added
    if tokenizer is not None:
        ids = tokenizer.get_vocab()
    return [_roles_of(texts, ids) for texts in recorded]


def _roles_of(texts: Sequence[str] | None, ids: Mapping[str, int]) -> dict[int, str]:
    """Return the part that each sentinel begins, by the sentinel's id."""
    if not texts:
        return {}
    named = zip(texts, ("prefix", "suffix", "middle", "text"), strict=False)  # some models have two, or three
    return {ids[text]: role for text, role in named if text in ids}


def _bucket(dataset: PackedDataset, wanted: int | None) -> PackedBucket:
    by_length = {bucket.sequence_length: bucket for bucket in dataset.buckets}
    if wanted is None and len(by_length) == 1:
        return dataset.buckets[0]
    if wanted in by_length:
        return by_length[wanted]
    what = f"there are no rows of {wanted} tokens"
    if wanted is None:
        what = "the dataset has rows of several lengths"
    lengths = ", ".join(map(str, by_length))
    raise UsageError("bad-bucket", what, remedy=f"give one of {lengths}", where="--bucket")


def _decoder(tokenizer: Tokenizer | None) -> Decode:
    """Return a function that decodes ids to text, special tokens included; without a tokenizer it returns None."""
    if tokenizer is None:
        return lambda ids: None
    return lambda ids: str(tokenizer.decode(ids, skip_special_tokens=False))


def _tokenizer(dataset: PackedDataset | TokenStore, source: str | Path | None) -> Tokenizer | None:
    from packtool.text.encoding.encoders import reference_tokenizer
    from packtool.text.encoding.load import find_tokenizer, info_of

    made_with = dataset.manifest.tokenizer
    if source is None:
        kept = read_tokenizer(dataset.place, dataset.manifest.tokenizer_files)
        if kept:
            return reference_tokenizer(kept[TOKENIZER])
    found = find_tokenizer(source)
    info = info_of(found, eos_token=None if source is None else made_with.eos_id)
    if info.sha256 == made_with.sha256:
        return reference_tokenizer(found.data)
    if source is None:
        return None
    what = f"its sha256 is {info.sha256[:12]}…, but the dataset was made with {made_with.sha256[:12]}…"
    remedy = "give the tokenizer that tokenize was given, or leave it out"
    raise UsageError("other-tokenizer", what, remedy=remedy, where="--tokenizer")


def _segments(
    dataset: PackedDataset,
    bucket: PackedBucket,
    row: int,
    decode: Decode,
    origins: Origins | None,
    roles: Sequence[Mapping[int, str]],
) -> list[RowSegment]:
    tokens: list[int] = bucket.tokens.between(row, row + 1)[0, :SHOWN].tolist()
    loss = None
    if bucket.loss is not None:
        loss = bucket.loss.between(row, row + 1)[0, :SHOWN]
    if not dataset.has_segments:
        parts = _parts(tokens, 0, roles[0], dataset.manifest.tokenizer.eos_id, decode)
        return [RowSegment("unknown", tokens, decode(tokens), runs=_runs(tokens, loss, decode), parts=parts)]
    segments = bucket.segments.between(row, row + 1)
    documents = _Documents(dataset, origins, roles, decode)
    out = []
    at = 0
    for document, start, length, repeated in zip(
        segments.document.tolist(),
        segments.start.tolist(),
        segments.length.tolist(),
        segments.repeated.tolist(),
        strict=True,
    ):
        if at == len(tokens):
            break
        ids, new = tokens[at : at + length], slice(at + repeated, at + length)
        at += len(ids)
        if document == PADDING:
            out.append(RowSegment("padding", ids, decode(ids)))
        elif document == INSERTED_EOS:
            out.append(RowSegment("eos", ids, decode(ids)))
        else:
            trains = None if loss is None else loss[new]
            out.append(documents.segment(document, start, repeated, ids, trains))
    return out


class _Documents(PackedDocuments):
    """What is known of the documents of a dataset, to show segments of them.

    Args:
        roles: of each store, as `_roles` returns them.
    """

    def __init__(
        self, dataset: PackedDataset, origins: Origins | None, roles: Sequence[Mapping[int, str]], decode: Decode
    ) -> None:
        super().__init__(dataset)
        self._lengths: Any = dataset.lengths()
        self._eos = dataset.manifest.tokenizer.eos_id
        self._columns = dataset.columns
        self._origins, self._roles, self._decode = origins, roles, decode

    def segment(
        self, document: int, start: int, repeated: int, ids: list[int], loss: npt.NDArray[np.uint8] | None
    ) -> RowSegment:
        """Return a segment of a document.

        Args:
            repeated: of its first tokens.
            loss: of its other tokens; None where all of them train.
        """
        source, number = self.stored(document)
        again = origin = identifier = None
        if repeated:
            again = self._decode(ids[:repeated])
        if self._origins is not None:
            origin, identifier = self._origins.place(document), self._origins.id(document)
        return RowSegment(
            "document",
            ids,
            self._decode(ids[repeated:]),
            repeated,
            again,
            document,
            source,
            number,
            start,
            int(self._lengths[document]),
            origin,
            identifier,
            _runs(ids[repeated:], loss, self._decode),
            _parts(ids, repeated, self._roles[source], self._eos, self._decode),
            {name: self._value(name, document) for name in self._columns.names},
        )

    def _value(self, name: str, document: int) -> str | float | None:
        """Return the value of a column for a document; None if it has no value."""
        values = self._columns.of(name, np.array([document]))
        [value], categories = values.tolist(), self._columns.categories(name)
        if is_absent(values)[0]:
            return None
        if categories is None:
            return float(value)
        name_of: str = categories[value]
        return name_of


def _runs(tokens: list[int], loss: npt.NDArray[np.uint8] | None, decode: Decode) -> list[Run]:
    """Return the runs of tokens that train and that do not, in turn; no runs if all train."""
    if loss is None:
        return []
    cuts = [0, *(np.flatnonzero(np.diff(loss)) + 1).tolist(), len(tokens)]
    return [Run(bool(loss[a]), tokens[a:b], decode(tokens[a:b])) for a, b in pairwise(cuts) if a < b]


def _parts(ids: list[int], repeated: int, roles: Mapping[int, str], eos: int, decode: Decode) -> list[RowPart]:
    """Return prefix, suffix and middle of a segment, and the sentinels between them; no parts for other segments."""
    if roles.keys().isdisjoint(ids):
        return []
    role, of_ids = "text", []
    for number in ids:
        role = roles.get(number, role)
        if number == eos:
            role = "text"
        of_ids.append("sentinel" if number in roles else role)
    parts = []
    for name, group in groupby(zip(of_ids[repeated:], ids[repeated:], strict=True), itemgetter(0)):
        numbers = [number for _, number in group]
        parts.append(RowPart(name, numbers, decode(numbers)))
    return parts
