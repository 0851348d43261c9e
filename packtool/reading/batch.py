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
from packtool.plan import I64, INSERTED_EOS, PADDING, Segments, offsets_of

IGNORED = -100
"""The label of what is not a target, as PyTorch's losses expect it."""


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
    targets = np.ones(rows * length, np.bool_)
    targets[::length] = False
    starts = np.arange(rows) * length
    padding = np.zeros(rows, np.bool_)
    if segments is not None:
        ends = offsets_of(segments.length)
        targets[np.repeat(segments.document == PADDING, segments.length)] = False
        if not train_on_repeated:
            _clear(targets, ends[:-1], segments.repeated)
        begins = _begins(segments)
        if not train_across_documents:
            targets[ends[:-1][begins]] = False
        if documents:
            starts, padding = ends[:-1][begins], segments.document[begins] == PADDING
    lengths = np.diff(starts, append=rows * length)
    first = np.searchsorted(starts, np.arange(rows) * length)
    number = np.arange(len(starts)) - first[starts // length] if len(starts) else starts
    number[padding] = -1
    position = (np.arange(rows * length) - np.repeat(starts, lengths)).reshape(rows, length)
    document = np.repeat(number.astype(np.int32), lengths).reshape(rows, length)
    ids = tokens.astype(np.int64)
    wanted = np.where(targets.reshape(rows, length), ids, IGNORED)
    if labels == "next" and not extra_token:
        wanted = np.concatenate([wanted[:, 1:], np.full((rows, 1), IGNORED)], axis=1)
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


def _begins(segments: Segments) -> npt.NDArray[np.bool_]:
    """Which segments begin a sequence: all but the inserted EOS of the segment before it in the row."""
    begins = np.ones(len(segments), np.bool_)
    begins[1:] = (segments.document[1:] != INSERTED_EOS) | (segments.document[:-1] == PADDING)
    begins[segments.offsets[:-1]] = True
    return begins


def _clear(targets: npt.NDArray[np.bool_], first: I64, count: I64) -> None:
    """Unset `count` targets from each `first`."""
    some = np.flatnonzero(count)
    for begin, end in zip(first[some].tolist(), (first + count)[some].tolist(), strict=True):
        targets[begin:end] = False
