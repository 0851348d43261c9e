"""Build training batches from rows and their segments: vectorised, NumPy in, NumPy out.

A *sequence* here is a stretch of a row in which tokens attend to each other: a segment of a document, with the EOS that
the strategy inserted after it, or a run of padding. Every part of a document that was cut is a sequence of its own,
with positions from 0.

If documents begin at multiples (`pack --document-multiple`), padding lies between them. A batch then has two arrays of
boundaries, with and without this padding, as kernels that split documents among a group of devices take them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypedDict, cast

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.formats.kept_columns import absent
from packtool.options.check import is_whole, suggest
from packtool.planning.plan import I64, INSERTED_EOS, PADDING, Segments, offsets_of, ranges
from packtool.reading.column_fields import PREFIX, Values, columns_in, require_columns

IGNORED = -100
"""The label of places without a target, as PyTorch's losses expect it."""


class Batch(TypedDict, total=False):
    """Rows as a model takes them. T is the length of a row (one less with ``extra_token``).

    A batch has the fields that the caller chose; by default all but `loss_mask`, and `cu_seqlens_padded` and
    `max_seqlen_padded` only where documents begin at multiples. A field `column.NAME` has the values of a kept column,
    one for each sequence of `cu_seqlens`: float64 for numbers, NaN if a value is missing; or int32 for categories, the
    place in the list of names, -1 if a value is missing. Values of padding are missing.

    Attributes:
        input_ids: (rows, T) int64.
        labels: (rows, T) int64, `IGNORED` where there is no target.
        position_ids: (rows, T) int64, from 0 in each sequence.
        document_ids: (rows, T) int32: the number, in its row, of the token's sequence; -1 for padding.
        cu_seqlens: (sequences + 1) int32: where the sequences of all rows begin, the rows laid end to end; then the
            number of tokens. In a batch with `cu_seqlens_padded` runs of padding are no sequences, and these places
            count the tokens without padding.
        max_seqlen: the length of the longest of the sequences of `cu_seqlens`, in tokens.
        cu_seqlens_padded: (sequences + 1) int32: where the same sequences begin in the rows laid end to end; then the
            number of places. Padding belongs to the sequence before it.
        max_seqlen_padded: the length of the longest sequence with its padding.
        loss_mask: (rows, T) float32: 1 where `labels` has a target, 0 where it has `IGNORED`.
        source: (rows, T) int32: in a blend the number of the source of a token's row; in a dataset, if the caller asks,
            the number of the token store of a token, -1 for padding.
    """

    input_ids: I64
    labels: I64
    position_ids: I64
    document_ids: npt.NDArray[np.int32]
    cu_seqlens: npt.NDArray[np.int32]
    max_seqlen: int
    cu_seqlens_padded: npt.NDArray[np.int32]
    max_seqlen_padded: int
    loss_mask: npt.NDArray[np.float32]
    source: npt.NDArray[np.int32]


class BatchField(NamedTuple):
    """What is known of a field of a batch."""

    dtype: type[np.generic]  # of its values
    shape: Literal["tokens", "bounds", "number"]  # (rows, T); (sequences + 1); one number
    needs: Literal["tokens", "targets", "sequences", "multiples"]  # what it depends on
    default: bool = True  # a batch has it by default; if it needs multiples, only where documents begin at these


KNOWN: Mapping[str, BatchField] = {
    "input_ids": BatchField(np.int64, "tokens", "tokens"),
    "labels": BatchField(np.int64, "tokens", "targets"),
    "position_ids": BatchField(np.int64, "tokens", "sequences"),
    "document_ids": BatchField(np.int32, "tokens", "sequences"),
    "cu_seqlens": BatchField(np.int32, "bounds", "sequences"),
    "max_seqlen": BatchField(np.int64, "number", "sequences"),
    "cu_seqlens_padded": BatchField(np.int32, "bounds", "multiples"),
    "max_seqlen_padded": BatchField(np.int64, "number", "multiples"),
    "loss_mask": BatchField(np.float32, "tokens", "targets", default=False),
}
"""The fields that a batch of a dataset may have."""


def _fields(holds: Callable[[BatchField], bool]) -> tuple[str, ...]:
    """List the names of the fields for which something holds, in the order of the table."""
    return tuple(name for name, field in KNOWN.items() if holds(field))


OF_TOKENS = _fields(lambda field: field.shape == "tokens")
"""The fields of shape (rows, T)."""
TARGETS = frozenset(_fields(lambda field: field.needs == "targets"))
"""The fields that depend on which tokens are targets."""
SEQUENCES = frozenset(_fields(lambda field: field.needs in ("sequences", "multiples")))
"""The fields that depend on where sequences begin."""
PADDED = frozenset(_fields(lambda field: field.needs == "multiples"))
"""The fields that depend on where sequences begin, each with the padding behind it."""
FIELDS = _fields(lambda field: field.default and field.needs != "multiples")
"""The fields that a batch has by default."""
FIELDS_OF_MULTIPLES = _fields(lambda field: field.default)
"""The fields that a batch has by default if documents begin at multiples."""


def make_batch(
    tokens: npt.NDArray[Any],
    segments: Segments | None,
    loss: npt.NDArray[Any] | None = None,
    following: I64 | None = None,
    columns: Mapping[str, Values] | None = None,
    *,
    documents: bool = True,
    labels: Literal["next", "same"] = "next",
    extra_token: bool = False,
    train_on_repeated: bool = True,
    train_across_documents: bool = True,
    pad_cu_seqlens: int | None = None,
    trim: bool = False,
    fields: Collection[str] = FIELDS,
) -> Batch:
    """Make the inputs, targets and masks of some rows.

    A target is a token that the model learns to predict from the token before it in the row, padding aside. The first
    token of a row and padding are no targets. EOS is a target, whether it was stored or inserted. Of these targets,
    `loss` leaves out the tokens for which it is 0.

    Args:
        tokens: (rows, sequence_length).
        segments: of these rows; None to take every row for one sequence without padding.
        loss: (rows, sequence_length), 0 for tokens that are no targets; None if all tokens train.
        following: (rows), the targets of the last tokens of rows whose text goes on in a row of a later batch;
            `IGNORED` for other rows. For ``next`` labels without an extra token.
        columns: values of the segments' documents, by the name of the column; a missing value for padding.
        documents: every segment of a document is a sequence; otherwise every row is, for plain causal attention.
        labels: ``next``: the label at a place is the token after it, for a loss on all outputs. ``same``: the label at
            a place is its own token, for models that shift labels themselves, as those of `transformers` do (the first
            token after padding is the label where the padding begins, which the token before it predicts).
        extra_token: rows have one token more than the model reads: the last one is only a target, so that every place
            of the model's input has a target.
        train_on_repeated: tokens that an earlier row has already are targets again.
        train_across_documents: the first token of a sequence is a target too: the sequence before it predicts it.
        pad_cu_seqlens: number of documents in a row for which `cu_seqlens` and `cu_seqlens_padded` have room, so that
            their shape is the same in every batch: empty sequences follow the last one. None for no more room than
            needed. In a batch without `cu_seqlens_padded` a run of padding is a sequence, so there is room for one more
            sequence in every row.
        trim: leave out the places at the end that are padding in every row: T is the length of the longest row.
        fields: fields to compute, from `KNOWN`, and `column.NAME` for columns.

    Raises:
        UsageError: ``same`` labels of rows with an extra token; labels of another kind; an unknown field; an extra
            token or `trim` where documents begin at multiples; more sequences than `pad_cu_seqlens` has room for; an
            unknown column, or a column where every row is one sequence.

    >>> one = np.array
    >>> rows = Segments(one([3, 8, -1]), one([5, 0, 0]), one([2, 3, 1]), one([0, 0, 0]), one([0, 3]))
    >>> batch = make_batch(one([[11, 2, 12, 13, 2, 2]]), rows)
    >>> batch["labels"].tolist(), batch["position_ids"].tolist(), batch["document_ids"].tolist()
    ([[2, 12, 13, 2, -100, -100]], [[0, 1, 0, 1, 2, 0]], [[0, 0, 1, 1, 1, -1]])
    >>> batch["cu_seqlens"].tolist(), batch["max_seqlen"]
    ([0, 2, 5, 6], 3)
    >>> make_batch(one([[11, 2, 12, 13, 2, 2]]), rows, pad_cu_seqlens=3)["cu_seqlens"].tolist()
    [0, 2, 5, 6, 6]
    >>> scores = {"score": one([0.5, 2.0, float("nan")])}
    >>> make_batch(one([[11, 2, 12, 13, 2, 2]]), rows, columns=scores, fields=["column.score"])["column.score"].tolist()
    [0.5, 2.0, nan]
    >>> loss = one([[0, 1, 0, 1, 1, 0]])
    >>> batch = make_batch(one([[11, 2, 12, 13, 2, 2]]), rows, loss, fields=["labels", "loss_mask"])
    >>> batch["labels"].tolist(), batch["loss_mask"].tolist()
    ([[2, -100, 13, 2, -100, -100]], [[1.0, 0.0, 1.0, 1.0, 0.0, 0.0]])

    Documents of 3 and 2 tokens that begin at multiples of 4:

    >>> rows = Segments(one([3, -1, 8, -1]), one([0] * 4), one([3, 1, 2, 2]), one([0] * 4), one([0, 4]))
    >>> batch = make_batch(one([[11, 12, 2, 0, 13, 2, 0, 0]]), rows, fields=FIELDS_OF_MULTIPLES, pad_cu_seqlens=3)
    >>> batch["labels"].tolist()
    [[12, 2, 13, -100, 2, -100, -100, -100]]
    >>> batch["cu_seqlens"].tolist(), batch["cu_seqlens_padded"].tolist()
    ([0, 3, 5, 5], [0, 4, 8, 8])
    """
    columns = columns or {}
    _require(labels, fields, columns, extra_token=extra_token, trim=trim)
    require_room(pad_cu_seqlens)
    if trim and segments is not None:
        tokens, segments, loss, columns = _trimmed(tokens, segments, loss, columns)
    length = tokens.shape[1] - extra_token
    batch = _space({name: KNOWN[name].dtype for name in OF_TOKENS if name in fields}, (len(tokens), length))
    if "input_ids" in fields:
        batch["input_ids"][:] = tokens[:, :length]
    if not TARGETS.isdisjoint(fields):
        # With an extra token targets have one column more than labels, so they need an array of their own.
        direct = "labels" in fields and not extra_token
        targets = batch["labels"] if direct else np.empty(tokens.shape, KNOWN["labels"].dtype)
        ahead = labels == "next" and not extra_token
        without = _no_targets(segments, loss, train_on_repeated, train_across_documents)
        _fill_targets(targets, tokens, segments, without, ahead)
        if following is not None and ahead:  # last, as `_fill_targets` ignores the last token of every row
            targets[:, -1] = following
        targets = targets[:, extra_token:]
        if "labels" in fields and not direct:
            batch["labels"][:] = targets
        if "loss_mask" in fields:
            batch["loss_mask"][:] = targets != IGNORED
    if not SEQUENCES.isdisjoint(fields):
        _attend(batch, tokens.shape, length, segments if documents else None, fields)
    column_names = columns_in(fields)
    if column_names:
        if segments is None or not documents:
            raise _one_sequence(column_names[0])
        pieces = _pieces(segments, tokens.shape[1], length, fields)
        for name in column_names:
            batch[PREFIX + name] = columns[name][pieces]
    if pad_cu_seqlens is not None:
        _make_room(batch, pad_cu_seqlens, len(tokens), fields)
    return cast("Batch", batch)


def longest(segments: Segments, length: int) -> int:
    """Return the length of the longest row without the padding at its end.

    Args:
        segments: of the rows.
        length: of a row.

    >>> one = np.array
    >>> longest(Segments(one([7, -1, 8, -1]), one([0] * 4), one([2, 6, 5, 3]), one([0] * 4), one([0, 2, 4])), 8)
    5
    """
    end = offsets_of(segments.length)[:-1] % length + segments.length
    return int(end[segments.document != PADDING].max(initial=0)) or length


def _trimmed(
    tokens: npt.NDArray[Any], segments: Segments, loss: npt.NDArray[Any] | None, columns: Mapping[str, Values]
) -> tuple[npt.NDArray[Any], Segments, npt.NDArray[Any] | None, Mapping[str, Values]]:
    """Leave out the places at the end that are padding in every row."""
    width = longest(segments, tokens.shape[1])
    start = offsets_of(segments.length)[:-1] % tokens.shape[1]
    length = np.minimum(start + segments.length, width) - start
    kept = length > 0
    segments = replace(segments, length=length).where(kept)
    if loss is not None:
        loss = loss[:, :width]
    return tokens[:, :width], segments, loss, {name: values[kept] for name, values in columns.items()}


def check_options(options: Mapping[str, Any], *functions: Callable[..., Any]) -> None:
    """Raise a UsageError for an option that is not among the keywords of some functions.

    >>> check_options({"label": "same"}, make_batch)
    Traceback (most recent call last):
    packtool.errors.UsageError: label: no such option. Did you mean labels?
    """
    keywords: list[str] = []
    for function in functions:
        parameters = inspect.signature(function).parameters.values()
        keywords += [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    for name in options:
        if name not in keywords:
            raise UsageError("bad-option", "no such option", remedy=suggest(name, keywords), where=name)


def _require(labels: str, fields: Collection[str], columns: Collection[str], *, extra_token: bool, trim: bool) -> None:
    if labels not in ("next", "same"):
        remedy = "give 'next', or 'same' for a model that shifts them itself"
        raise UsageError("bad-option", f"{labels!r} is not a kind of labels", remedy=remedy, where="labels")
    if extra_token and labels == "same":
        what = "a model that shifts labels itself reads whole rows, so there is no extra token"
        remedy = "give labels='next', or extra_token=False"
        raise UsageError("bad-option", what, remedy=remedy, where="extra_token")
    if (extra_token or trim) and not PADDED.isdisjoint(fields):
        what = "rows without their last tokens are no multiples, so documents can't be split"
        where = "extra_token" if extra_token else "trim"
        remedy = f"leave {where} out, or name fields without cu_seqlens_padded and max_seqlen_padded"
        raise UsageError("bad-option", what, remedy=remedy, where=where)
    require_columns(fields, columns)
    for name in fields:
        if name not in KNOWN and not name.startswith(PREFIX):
            remedy = f"choose from {', '.join(KNOWN)}, {PREFIX}NAME, or, in a dataset or blend, source"
            raise UsageError("bad-option", f"{name!r} is not a field", remedy=remedy, where="fields")


def require_room(documents: Any) -> None:
    """Refuse a `pad_cu_seqlens` that is not a number of documents.

    Raises:
        UsageError: not None, and not a whole number from 1.
    """
    if documents is not None and not (is_whole(documents) and documents > 0):
        what, remedy = f"{documents!r} is not a number of documents", "give 1 or more, or leave it out"
        raise UsageError("bad-option", what, remedy=remedy, where="pad_cu_seqlens")


def _fill_targets(
    targets: I64, tokens: npt.NDArray[Any], segments: Segments | None, without: list[I64], ahead: bool
) -> None:
    """Write the target of every place, `IGNORED` for a place without a target.

    Args:
        targets: (rows, sequence_length), to be filled.
        tokens: of the same shape.
        segments: of these rows; None if every row is one sequence without padding.
        without: places of tokens that are no targets, in the rows laid end to end.
        ahead: the target at a place is the token after it; otherwise its own token.
    """
    if ahead:
        targets[:, :-1] = tokens[:, 1:]
        targets[:, -1] = IGNORED  # the last token of a row has no token after it
    else:
        targets[:] = tokens
        targets[:, 0] = IGNORED  # nothing predicts the first token of a row
    flat = targets.reshape(-1)
    for places in without:
        # If targets are ahead, a token is the target of the place before it. Before the first token of a row that is
        # the last place of another row (index -1 is the last place of all), which has no target anyway.
        flat[places - ahead] = IGNORED
    if segments is not None:
        _predict_across_padding(flat, segments, ahead)


def _no_targets(
    segments: Segments | None, loss: npt.NDArray[Any] | None, train_on_repeated: bool, train_across_documents: bool
) -> list[I64]:
    """List the places of tokens that are no targets, in the rows laid end to end."""
    places: list[I64] = []
    if segments is not None:
        ends = offsets_of(segments.length)
        places.append(_places(ends, segments.length, segments.document == PADDING))
        if not train_on_repeated:
            places.append(_places(ends, segments.repeated, segments.repeated > 0))
        if not train_across_documents:
            places.append(ends[:-1][_begins(segments)])
    if loss is not None:
        places.append(np.flatnonzero(loss.reshape(-1) == 0))
    return places


def _predict_across_padding(targets: I64, segments: Segments, ahead: bool) -> None:
    """Let the last token before padding predict the first one after it: padding predicts nothing.

    Args:
        targets: the target at each place of the rows laid end to end; changed in place.
        ahead: the target at a place is the token after it.
    """
    has_before = np.ones(len(segments), np.bool_)
    has_before[segments.offsets[:-1]] = False  # nothing in the row is before its first segment
    after = np.flatnonzero(has_before[1:] & (segments.document[:-1] == PADDING)) + 1
    if not len(after):
        return
    padding = after - 1
    starts = offsets_of(segments.length)
    # The target moves: if it is ahead, from the last place of the padding to the place before its first; otherwise from
    # the token's own place to the first place of the padding, whose label the token before the padding predicts.
    places = starts[after] - ahead
    # Padding that begins a row has no token before it: then nothing predicts the first token after it.
    predicted = has_before[padding]
    moved = targets[places[predicted]]
    targets[places] = IGNORED
    targets[starts[padding[predicted]] - ahead] = moved


def _make_room(batch: dict[str, Any], documents: int, rows: int, fields: Collection[str]) -> None:
    """Add empty sequences to the boundaries of a batch, until there is room for this many documents in every row."""
    in_row = documents + 1  # for the run of padding at the end of a row, which is a sequence
    if not PADDED.isdisjoint(fields):
        in_row = documents  # padding belongs to the document before it
    room = in_row * rows
    for name in ("cu_seqlens", "cu_seqlens_padded"):
        if name in batch:
            missing = room - _require_fit(len(batch[name]) - 1, room)
            batch[name] = np.pad(batch[name], (0, missing), mode="edge")
    for name in columns_in(fields):
        values = batch[PREFIX + name]
        missing = room - _require_fit(len(values), room)
        batch[PREFIX + name] = np.pad(values, (0, missing), constant_values=absent(values.dtype))


def _require_fit(sequences: int, room: int) -> int:
    """Return a number of sequences, if there is room for them."""
    if sequences > room:
        what = f"{sequences} sequences in a batch that has room for {room}"
        remedy = "give more, or pack with --max-documents-per-row of this many"
        raise UsageError("bad-option", what, remedy=remedy, where="pad_cu_seqlens")
    return sequences


def _one_sequence(column: str) -> UsageError:
    """Return the error for a column of a batch in which every row is one sequence."""
    what = f"every row is one sequence, of documents that have a value of {column!r} each"
    remedy = "leave documents=False out, and give a model without boundaries input_ids and labels alone"
    return UsageError("bad-option", what, remedy=remedy, where="fields")


def _attend(
    batch: dict[str, Any], shape: tuple[int, ...], length: int, segments: Segments | None, fields: Collection[str]
) -> None:
    """Fill in the fields that tell attention where sequences begin.

    Args:
        shape: of the tokens.
        length: of the rows that the model reads, shorter by the extra token.
        segments: None where every row is one sequence.
    """
    rows, stored = shape
    if segments is None:
        bounds = np.arange(rows + 1) * stored
        padding = np.zeros(rows, np.bool_)
    else:
        begins = _begins(segments)
        bounds = offsets_of(segments.length)[np.append(begins, True)]
        padding = segments.document[begins] == PADDING
    # Of each sequence: where it begins in the rows laid end to end, in which row, and where in that row.
    starts, lengths = bounds[:-1], bounds[1:] - bounds[:-1]
    row, place = np.divmod(starts, stored)
    if "position_ids" in fields:
        position = np.arange(rows * stored, dtype=np.int32)
        position -= np.repeat(starts.astype(np.int32), lengths)
        batch["position_ids"][:] = position.reshape(shape)[:, :length]
    if "document_ids" in fields:
        first_of_row = np.flatnonzero(place == 0)
        number = np.arange(len(starts)) - first_of_row[row]
        number[padding] = -1
        document_ids = np.repeat(number.astype(KNOWN["document_ids"].dtype), lengths)
        batch["document_ids"][:] = document_ids.reshape(shape)[:, :length]
    if not PADDED.isdisjoint(fields):
        # Rows are whole here, since these fields allow no extra token. Padding goes with the sequence before it.
        own = ~padding
        _fill_bounds(batch, ("cu_seqlens", "max_seqlen"), offsets_of(lengths[own]), fields)
        _fill_bounds(batch, ("cu_seqlens_padded", "max_seqlen_padded"), np.append(starts[own], rows * length), fields)
    elif "cu_seqlens" in fields or "max_seqlen" in fields:
        read = place < length  # else the sequence is the extra token alone
        starts_read = (row * length + place)[read]
        _fill_bounds(batch, ("cu_seqlens", "max_seqlen"), np.append(starts_read, rows * length), fields)


def _fill_bounds(batch: dict[str, Any], names: tuple[str, str], bounds: I64, fields: Collection[str]) -> None:
    """Fill in where sequences begin, and the length of the longest one; either only if it is among the fields.

    Args:
        names: the names of these two fields.
        bounds: (sequences + 1), where each sequence begins; then where the last one ends.
    """
    name_of_begins, name_of_longest = names
    if name_of_begins in fields:
        batch[name_of_begins] = bounds.astype(KNOWN[name_of_begins].dtype)
    if name_of_longest in fields:
        batch[name_of_longest] = int(np.diff(bounds).max(initial=0))


def _pieces(segments: Segments, stored: int, length: int, fields: Collection[str]) -> I64:
    """Return the numbers of the segments with which the sequences of `cu_seqlens` begin, ascending.

    Args:
        stored: tokens in a row.
        length: of the rows that the model reads, shorter by the extra token.
    """
    begins = np.flatnonzero(_begins(segments))
    if not PADDED.isdisjoint(fields):
        kept = segments.document[begins] != PADDING
    else:
        kept = offsets_of(segments.length)[begins] % stored < length
    pieces: I64 = begins[kept]
    return pieces


def _space(types: Mapping[str, npt.DTypeLike], shape: tuple[int, int]) -> dict[str, Any]:
    """Allocate arrays in one piece of memory, widest items first, without filling them.

    The C library returns small pieces to the system as soon as a batch is dropped, and getting them back for the next
    batch takes longer than filling them.
    """
    items = shape[0] * shape[1]
    sizes = {name: np.dtype(kind).itemsize * items for name, kind in types.items()}
    memory, start, out = np.empty(sum(sizes.values()), np.uint8), 0, {}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        out[name] = memory[start : start + sizes[name]].view(types[name]).reshape(shape)
        start += sizes[name]
    return {name: out[name] for name in types}


def _begins(segments: Segments) -> npt.NDArray[np.bool_]:
    """Mark the segments that begin a sequence: all but the inserted EOS of the segment before it in the row."""
    begins = np.ones(len(segments), np.bool_)
    begins[1:] = (segments.document[1:] != INSERTED_EOS) | (segments.document[:-1] == PADDING)
    begins[segments.offsets[:-1]] = True
    return begins


def _places(first: I64, count: I64, which: npt.NDArray[np.bool_]) -> I64:
    """List the places of the segments of a mask: `count` places from `first` on, for each."""
    some = np.flatnonzero(which)
    return ranges(first[some], count[some], offsets_of(count[some]))
