"""`show`: decode one row of a packed dataset, segment by segment, or one document of a token store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from packtool.commands.document_origins import Origins, stores_nearby, stores_of
from packtool.commands.places import places_to_read
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
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
from packtool.planning.plan import INSERTED_EOS, PADDING, offsets_of
from packtool.report.row import Part, Row, RowSegment, Run
from packtool.support.sizes import plural
from packtool.writing.stored_tokens import open_packed

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Decode: TypeAlias = Callable[[list[int]], str | None]


@takes(ShowArguments)
def show(options: ShowArguments) -> Row:
    """Show one row of a packed dataset, or one document of a token store.

    Raises:
        UsageError: no such row, bucket or document, an option for the other of the two, or another tokenizer.
        DataError: the dataset or store is missing or damaged.
    """
    with places_to_read(options.path) as [place], places_to_read(options.store) as stores:
        if isinstance(manifests.read(place), StoreManifest):
            check_input(options, "token stores")
            return _document(TokenStore(place), options)
        check_input(options, "packed datasets")
        dataset = open_packed(place, stores)
        bucket = _bucket(dataset, options.bucket)
        row = _number(options.row, bucket.rows, "row")
        tokenizer = _tokenizer(dataset, options.tokenizer)
        found = _stores(dataset, stores)
        origins = Origins(dataset, found) if found else None
        asked = stores and not dataset.manifest.index_only  # which needs stores for its tokens
        if origins is not None and not origins.known and not asked:
            origins = None
        missing = (
            manifests.input_names(place, dataset.manifest.inputs) if found is None and dataset.has_segments else []
        )
        roles = _roles(dataset, found or (), tokenizer)
        segments = _segments(dataset, bucket, row, _decoder(tokenizer), origins, roles)
        return Row(place_of(options.path).shown, row, bucket.rows, bucket.sequence_length, segments, missing)


def _document(store: TokenStore, options: ShowArguments) -> Row:
    """Show a document of a store with what trains of it, as a row of one segment."""
    number = _number(options.document or 0, store.documents, "document")
    tokens = store.document(number).tolist()
    tokenizer = _tokenizer(store, options.tokenizer)
    decode = _decoder(tokenizer)
    [roles] = _roles(store, [store.place], tokenizer)
    segment = RowSegment(
        "document",
        tokens,
        decode(tokens),
        document=number,
        start=0,
        document_length=len(tokens),
        origin=store.origin(number) if store.has_origins else None,
        id=None if store.id_field is None else store.column(store.id_field)[number].as_py(),
        runs=_runs(tokens, store.document_loss(number), decode),
        parts=_parts(tokens, 0, roles, store.manifest.tokenizer.eos_id, decode),
    )
    return Row(place_of(options.path).shown, number, store.documents, len(tokens), [segment], kind="document")


def _number(wanted: int, count: int, kind: Literal["row", "document"]) -> int:
    """Return the number of a row or document, counted from the end where it is negative."""
    number = wanted + count if wanted < 0 else wanted
    if not 0 <= number < count:
        what, remedy = f"{wanted} is not among its {plural(count, kind)}", "give a number from 0"
        if kind == "row":
            raise UsageError("bad-row", what, remedy=remedy, where="--row")
        raise UsageError("bad-document", what, remedy=remedy, where="--document")
    return number


def _stores(dataset: PackedDataset, given: Sequence[Place]) -> Sequence[Typed] | None:
    """Find the stores that a dataset was packed from; None where they are not to be found."""
    if dataset.manifest.index_only:
        return stores_of(dataset, given)
    return given or (stores_nearby(dataset) if dataset.has_segments else None)


def _roles(
    dataset: PackedDataset | TokenStore, stores: Sequence[Typed], tokenizer: Tokenizer | None
) -> list[dict[int, str]]:
    """Say for each store which tokens begin prefix, suffix and middle: those it was tokenized with where it is known,
    else those that the tokenizer has by name."""
    from packtool.text.encoding.special import sentinels

    added = dataset.manifest.tokenizer.added_tokens
    if stores:
        recorded = [manifests.read_as(store, StoreManifest).options.get("fim_tokens") for store in stores]
    else:
        recorded = [sentinels(added)] * max(len(dataset.manifest.inputs), 1)
    ids = added if tokenizer is None else tokenizer.get_vocab()
    return [
        {
            ids[text]: role
            for text, role in zip(texts or (), ("prefix", "suffix", "middle"), strict=bool(texts))
            if text in ids
        }
        for texts in recorded
    ]


def _bucket(dataset: PackedDataset, wanted: int | None) -> PackedBucket:
    by_length = {bucket.sequence_length: bucket for bucket in dataset.buckets}
    if wanted is None and len(by_length) == 1:
        return dataset.buckets[0]
    if wanted not in by_length:
        what = "the dataset has rows of several lengths" if wanted is None else f"there are no rows of {wanted} tokens"
        lengths = ", ".join(map(str, by_length))
        raise UsageError("bad-bucket", what, remedy=f"give one of {lengths}", where="--bucket")
    return by_length[wanted]


def _decoder(tokenizer: Tokenizer | None) -> Decode:
    """Return a function that decodes ids to text, special tokens included; to None where there is no tokenizer."""
    if tokenizer is None:
        return lambda ids: None
    return lambda ids: str(tokenizer.decode(ids, skip_special_tokens=False))


def _tokenizer(dataset: PackedDataset | TokenStore, source: str | Path | None) -> Tokenizer | None:
    from packtool.text.encoding.encoders import reference_tokenizer
    from packtool.text.encoding.load import find, info_of

    made_with = dataset.manifest.tokenizer
    if source is None and (kept := read_tokenizer(dataset.place, dataset.manifest.tokenizer_files)):
        return reference_tokenizer(kept[TOKENIZER])
    found = find(source)
    info = info_of(found, eos_token=made_with.eos_id if source is not None else None)
    if info.sha256 == made_with.sha256:
        return reference_tokenizer(found.data)
    if source is None:
        return None
    raise UsageError(
        "other-tokenizer",
        f"its sha256 is {info.sha256[:12]}…, but the dataset was made with {made_with.sha256[:12]}…",
        remedy="give the tokenizer that tokenize was given, or leave it out",
        where="--tokenizer",
    )


def _segments(
    dataset: PackedDataset,
    bucket: PackedBucket,
    row: int,
    decode: Decode,
    origins: Origins | None,
    roles: Sequence[Mapping[int, str]],
) -> list[RowSegment]:
    tokens: list[int] = bucket.tokens(row, row + 1)[0].tolist()
    loss = None if bucket.loss is None else bucket.loss.tokens(row, row + 1)[0]
    eos = dataset.manifest.tokenizer.eos_id
    if not dataset.has_segments:
        parts = _parts(tokens, 0, roles[0], eos, decode)
        return [RowSegment("unknown", tokens, decode(tokens), runs=_runs(tokens, loss, decode), parts=parts)]
    segments = bucket.segments(row, row + 1)
    lengths: Any = dataset.lengths()
    stores = offsets_of(np.array(dataset.manifest.store_documents, np.int64))
    chosen = dataset.chosen()
    out = []
    at = 0
    for document, start, length, repeated in zip(
        segments.document.tolist(),
        segments.start.tolist(),
        segments.length.tolist(),
        segments.repeated.tolist(),
        strict=True,
    ):
        ids, here = tokens[at : at + length], slice(at + repeated, at + length)
        at += length
        if document in (PADDING, INSERTED_EOS):
            out.append(RowSegment("padding" if document == PADDING else "eos", ids, decode(ids)))
            continue
        source = int(np.searchsorted(stores, document, side="right")) - 1
        out.append(
            RowSegment(
                "document",
                ids,
                decode(ids[repeated:]),
                repeated,
                decode(ids[:repeated]) if repeated else None,
                document,
                source,
                document - int(stores[source]) if chosen is None else int(chosen[source][document - stores[source]]),
                start,
                int(lengths[document]),
                None if origins is None else origins.place(document),
                None if origins is None else origins.id(document),
                _runs(tokens[here], None if loss is None else loss[here], decode),
                _parts(ids, repeated, roles[source], eos, decode),
            )
        )
    return out


def _runs(tokens: list[int], loss: npt.NDArray[np.uint8] | None, decode: Decode) -> list[Run]:
    """Return the runs of tokens that train and that do not, in turn; none if all train."""
    if loss is None:
        return []
    cuts = [0, *(np.flatnonzero(np.diff(loss)) + 1).tolist(), len(tokens)]
    return [Run(bool(loss[a]), tokens[a:b], decode(tokens[a:b])) for a, b in pairwise(cuts) if a < b]


def _parts(ids: list[int], repeated: int, roles: Mapping[int, str], eos: int, decode: Decode) -> list[Part]:
    """Return prefix, suffix and middle of a segment, and the sentinels between them; nothing where there is none."""
    if roles.keys().isdisjoint(ids):
        return []
    role, of_each = "text", []
    for number in ids:
        role = "text" if number == eos else roles.get(number, role)
        of_each.append("sentinel" if number in roles else role)
    alike = groupby(zip(of_each[repeated:], ids[repeated:], strict=True), itemgetter(0))
    divided = [(name, [number for _, number in group]) for name, group in alike]
    return [Part(name, numbers, decode(numbers)) for name, numbers in divided]
