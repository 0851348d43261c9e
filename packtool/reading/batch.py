"""What a training step reads, from rows and their segments: vectorised, NumPy in, NumPy out.

A *sequence* here is what attention must not cross: a segment of a document, with the EOS that the strategy inserted
after it, or a run of padding. A document that is cut begins a sequence, with position 0, in every row that has a part
of it.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.plan import I64, INSERTED_EOS, PADDING, Segments, offsets_of, ranges

IGNORED = -100
"""The label of what is not a target, as PyTorch's losses expect it."""


DTYPES: dict[str, npt.DTypeLike] = {
    "input_ids": np.int64,
    "labels": np.int64,
    "position_ids": np.int64,
    "document_ids": np.int32,
    "cu_seqlens": np.int32,
}
"""What the arrays of a batch are."""


class Batch(TypedDict):
    """Rows as a model takes them. T is the length of a row (one less with ``extra_token``).

    Attributes:
        input_ids: (rows, T) int64.
        labels: (rows, T) int64, `IGNORED` where there is no target.
        position_ids: (rows, T) int64, from 0 in each sequence.
        document_ids: (rows, T) int32: the number of each token's sequence in its row; -1 is padding.
        cu_seqlens: (sequences + 1) int32: where the sequences of all rows begin, the rows laid end to end; then the
            number of tokens.
        max_seqlen: the length of the longest sequence, in tokens.
    """

    input_ids: I64
    labels: I64
    position_ids: I64
    document_ids: npt.NDArray[np.int32]
    cu_seqlens: npt.NDArray[np.int32]
    max_seqlen: int


def make_batch(
    tokens: npt.NDArray[Any],
    segments: Segments | None,
    *,
    documents: bool = True,
    labels: Literal["next", "same"] = "next",
    extra_token: bool = False,
    train_on_repeated: bool = True,
    train_across_documents: bool = True,
    narrow: bool = False,
) -> Batch:
    """The inputs, targets and masks of some rows.

    A target is a token that its predecessor in the row predicts. Padding is not one, nor is the first token of a row.
    EOS is, whether the document had it or the strategy inserted it.

    Args:
        tokens: (rows, sequence_length).
        segments: of these rows; None where every row is taken for one sequence without padding.
        documents: a sequence for each segment of a document; else one for each row, for plain causal attention.
        labels: ``next``: the label at a place is the token after it, for a loss on all outputs. ``same``: the label at
            a place is its own token, for models that shift labels themselves, as those of `transformers` do.
        extra_token: rows have one token more than the model reads: the last is a target only, so that no place of the
            model's input lacks one.
        train_on_repeated: tokens that an earlier row has already are targets again.
        train_across_documents: the first token of a sequence is a target of the one before it in the row.
        narrow: in the narrowest integers that hold them, to be sent and then widened to `DTYPES`.

    Raises:
        UsageError: ``same`` labels of rows with an extra token.

    >>> one = np.array
    >>> rows = Segments(one([3, 8, -1]), one([5, 0, 0]), one([2, 3, 1]), one([0, 0, 0]), one([0, 3]))
    >>> batch = make_batch(one([[11, 2, 12, 13, 2, 2]]), rows)
    >>> batch["labels"].tolist(), batch["position_ids"].tolist(), batch["document_ids"].tolist()
    ([[2, 12, 13, 2, -100, -100]], [[0, 1, 0, 1, 2, 0]], [[0, 0, 1, 1, 1, -1]])
    >>> batch["cu_seqlens"].tolist(), batch["max_seqlen"]
    ([0, 2, 5, 6], 3)
    """
    if extra_token and labels == "same":
        raise UsageError(
            "bad-option",
            "a model that shifts labels itself reads whole rows, so there is no extra token",
            remedy="give labels='next', or extra_token=False",
            where="extra_token",
        )
    rows, length = tokens.shape
    starts = np.arange(rows) * length
    padding = np.zeros(rows, np.bool_)
    no_targets = []
    if segments is not None:
        ends = offsets_of(segments.length)
        begins = _begins(segments)
        no_targets.append(_places(ends, segments.length, segments.document == PADDING))
        if not train_on_repeated:
            no_targets.append(_places(ends, segments.repeated, segments.repeated > 0))
        if not train_across_documents:
            no_targets.append(ends[:-1][begins])
        if documents:
            starts, padding = ends[:-1][begins], segments.document[begins] == PADDING
    lengths = np.diff(starts, append=rows * length)
    first = np.searchsorted(starts, np.arange(rows) * length)
    number = np.arange(len(starts)) - first[starts // length] if len(starts) else starts
    number[padding] = -1
    types = _narrow_types(tokens) if narrow else DTYPES
    position = np.arange(rows * length, dtype=np.int32)
    position -= np.repeat(starts.astype(np.int32), lengths)
    position = position.astype(types["position_ids"]).reshape(rows, length)
    document = np.repeat(number.astype(types["document_ids"]), lengths).reshape(rows, length)
    ids = tokens.astype(types["input_ids"], copy=False)
    # Targets, one row after the other. Nothing predicts the first of a row; so read from the second place on, they are
    # the labels of the places before them, and the last of each row has none.
    targets = np.empty(rows * length + 1, types["labels"])
    targets[:-1] = tokens.reshape(-1)
    targets[::length] = IGNORED
    for places in no_targets:
        targets[places] = IGNORED
    shifted = labels == "next" and not extra_token
    wanted = (targets[1:] if shifted else targets[:-1]).reshape(rows, length)
    if extra_token:
        ids, position, document, wanted = ids[:, :-1], position[:, :-1], document[:, :-1], wanted[:, 1:]
        row, place = np.divmod(starts, length)
        length -= 1
        starts = (row * length + place)[place < length]
    cu_seqlens = np.append(starts, rows * length).astype(np.int32)
    return Batch(
        input_ids=np.ascontiguousarray(ids),
        labels=np.ascontiguousarray(wanted),
        position_ids=np.ascontiguousarray(position),
        document_ids=np.ascontiguousarray(document),
        cu_seqlens=cu_seqlens,
        max_seqlen=int(np.diff(cu_seqlens).max(initial=0)),
    )


def _narrow_types(tokens: npt.NDArray[Any]) -> dict[str, npt.DTypeLike]:
    """Types for these rows: of labels signed, for `IGNORED`, as of document ids, for padding."""
    length = tokens.shape[1]
    return {
        "input_ids": tokens.dtype,
        "labels": np.min_scalar_type(-1 - int(tokens.max(initial=0))),
        "position_ids": np.min_scalar_type(length),
        "document_ids": np.min_scalar_type(-length),
    }


def _begins(segments: Segments) -> npt.NDArray[np.bool_]:
    """Which segments begin a sequence: all but the inserted EOS of the segment before it in the row."""
    begins = np.ones(len(segments), np.bool_)
    begins[1:] = (segments.document[1:] != INSERTED_EOS) | (segments.document[:-1] == PADDING)
    begins[segments.offsets[:-1]] = True
    return begins


def _places(first: I64, count: I64, which: npt.NDArray[np.bool_]) -> I64:
    """Some segments' places: `count` from each `first`."""
    some = np.flatnonzero(which)
    return ranges(first[some], count[some], offsets_of(count[some]))
