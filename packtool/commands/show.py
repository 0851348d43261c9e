"""`show`: decode one row of a packed dataset, segment by segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from packtool.commands.document_origins import Origins, stores_beside, stores_of
from packtool.commands.places import places_to_read, result_path
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.names import TOKENIZER
from packtool.formats.packed import PackedBucket, PackedDataset
from packtool.options.inspecting import ShowArguments
from packtool.options.signature import takes
from packtool.outputs.tokenizer_files import read_tokenizer
from packtool.places.place import Place
from packtool.planning.plan import INSERTED_EOS, PADDING, offsets_of
from packtool.report.row import Row, RowSegment, Run
from packtool.writing.stored_tokens import open_packed

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Decode: TypeAlias = Callable[[list[int]], str | None]


@takes(ShowArguments)
def show(options: ShowArguments) -> Row:
    """Show one row of a packed dataset.

    Raises:
        UsageError: no such row or bucket, or another tokenizer.
        DataError: the dataset is missing or damaged.
    """
    with places_to_read(options.path) as [place], places_to_read(options.store) as stores:
        dataset = open_packed(place, stores)
        bucket = _bucket(dataset, options.bucket)
        row = options.row + bucket.rows if options.row < 0 else options.row
        if not 0 <= row < bucket.rows:
            what = f"{options.row} is not among its {bucket.rows:,} rows"
            raise UsageError("bad-row", what, remedy="give a number from 0", where="--row")
        decode = _decoder(dataset, options.tokenizer)
        origins, missing = _origins(dataset, stores)
        segments = _segments(dataset, bucket, row, decode, origins)
        marks = _sentinels(dataset.manifest.tokenizer.added_tokens, decode)
        return Row(result_path(options.path), row, bucket.rows, bucket.sequence_length, segments, missing, marks)


def _sentinels(added: Mapping[str, int], decode: Decode) -> list[str]:
    """List what begins prefix, suffix and middle in decoded text; nothing where the tokenizer has no such tokens."""
    from packtool.text.encoding.special import sentinels

    return [text for name in sentinels(added) or () if (text := decode([added[name]]))]


def _origins(dataset: PackedDataset, stores: Sequence[Place]) -> tuple[Origins | None, list[str]]:
    """Find the origins of documents as far as they are known; else name the stores that have them."""
    if not dataset.manifest.index_only and (stores or not dataset.has_segments):
        return (Origins(dataset, stores) if stores else None), []
    beside = stores_of(dataset, stores) if dataset.manifest.index_only else stores_beside(dataset)
    if beside is None:
        return None, manifests.input_names(dataset.place, dataset.manifest.inputs)
    origins = Origins(dataset, beside)
    return (origins if origins.known else None), []


def _bucket(dataset: PackedDataset, wanted: int | None) -> PackedBucket:
    by_length = {bucket.sequence_length: bucket for bucket in dataset.buckets}
    if wanted is None and len(by_length) == 1:
        return dataset.buckets[0]
    if wanted not in by_length:
        what = "the dataset has rows of several lengths" if wanted is None else f"there are no rows of {wanted} tokens"
        lengths = ", ".join(map(str, by_length))
        raise UsageError("bad-bucket", what, remedy=f"give one of {lengths}", where="--bucket")
    return by_length[wanted]


def _decoder(dataset: PackedDataset, source: str | Path | None) -> Decode:
    """Return what decodes ids to text, special tokens included; to None where there is no tokenizer."""
    tokenizer = _tokenizer(dataset, source)
    if tokenizer is None:
        return lambda ids: None
    return lambda ids: str(tokenizer.decode(ids, skip_special_tokens=False))


def _tokenizer(dataset: PackedDataset, source: str | Path | None) -> Tokenizer | None:
    from packtool.text.encoding.encoders import reference_tokenizer
    from packtool.text.encoding.load import load

    made_with = dataset.manifest.tokenizer
    if source is None and (kept := read_tokenizer(dataset.place, dataset.manifest.tokenizer_files)):
        return reference_tokenizer(kept[TOKENIZER])
    loaded = load(source, eos_token=made_with.eos_id if source is not None else None)
    if loaded.info.sha256 == made_with.sha256:
        return reference_tokenizer(loaded.found.data)
    if source is None:
        return None
    raise UsageError(
        "other-tokenizer",
        f"its sha256 is {loaded.info.sha256[:12]}…, but the dataset was made with {made_with.sha256[:12]}…",
        remedy="give the tokenizer that tokenize was given, or leave it out",
        where="--tokenizer",
    )


def _segments(
    dataset: PackedDataset, bucket: PackedBucket, row: int, decode: Decode, origins: Origins | None
) -> list[RowSegment]:
    tokens: list[int] = bucket.tokens(row, row + 1)[0].tolist()
    loss = None if bucket.loss is None else bucket.loss.tokens(row, row + 1)[0]
    if not dataset.has_segments:
        return [RowSegment("unknown", tokens, decode(tokens), runs=_runs(tokens, loss, decode))]
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
            )
        )
    return out


def _runs(tokens: list[int], loss: npt.NDArray[np.uint8] | None, decode: Decode) -> list[Run]:
    """Return the runs of tokens that train and that do not, in turn; none if all train."""
    if loss is None:
        return []
    cuts = [0, *(np.flatnonzero(np.diff(loss)) + 1).tolist(), len(tokens)]
    return [Run(bool(loss[a]), tokens[a:b], decode(tokens[a:b])) for a, b in pairwise(cuts) if a < b]
