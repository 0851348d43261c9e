"""What other columns say of the token ids beside them: which train, which are padding, where documents begin.

Tools that tokenize and pack write such columns, under a few names. Without them ids would train that should not,
padding would become text, and documents would run into each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

LABELS = ("labels", "label_ids", "targets", "target_ids")
"""The id of a token, not shifted, or -100 where it does not train."""
WEIGHTS = (
    "loss_mask",
    "completion_mask",
    "assistant_masks",
    "assistant_mask",
    "response_mask",
    "label_mask",
    "target_mask",
    "train_mask",
    "loss_weights",
)
"""1 for a token that trains, else 0."""
PADDING = ("attention_mask",)
"""0 for padding; other tokens have 1, or the number of their document."""
UNCLEAR = ("padding_mask", "pad_mask")
"""Padding, too, but some tools write 1 for it, others 0."""
NUMBERS = (
    "document_ids",
    "document_id",
    "doc_ids",
    "doc_id",
    "segment_ids",
    "segment_id",
    "sequence_ids",
    "sequence_id",
    "seq_idx",
    "inputs_segmentation",
    "segmentation",
)
"""The number of the document of a token. Where a value is no list, it is the name of the whole record."""
POSITIONS = ("position_ids", "positions", "inputs_position")
"""The place of a token in its document, from 0."""
SIZES = ("seq_lengths", "seq_lens", "seqlens", "sequence_lengths", "document_lengths")
"""Lengths of the documents of a row."""
BOUNDS = (
    "seq_start_id",
    "cu_seqlens",
    "cu_seq_lens",
    "cu_seqlens_q",
    "cu_seqlens_k",
    "cu_seq_lens_q",
    "cu_seq_lens_k",
    "cu_seqlens_padded",
)
"""Where the documents of a row begin; some end with the length of the row."""
KNOWN = (*LABELS, *WEIGHTS, *PADDING, *UNCLEAR, *NUMBERS, *POSITIONS, *SIZES, *BOUNDS)
"""All of these names."""


class _Kind(NamedTuple):
    """Columns of one kind."""

    names: tuple[str, ...]
    plain: Callable[[list[Any], list[int]], bool]  # (values, ids) to whether the values say nothing that the ids don't
    says: str  # what they say otherwise


_PADS, _SEVERAL = "some are padding or other documents", "several documents are in a row"
_KINDS = (
    _Kind(LABELS, lambda values, ids: values == ids, "some do not train, or have other labels"),
    _Kind(WEIGHTS, lambda values, ids: values == [1] * len(ids), "some do not train"),
    _Kind(PADDING, lambda values, ids: values == [1] * len(ids), _PADS),
    _Kind(UNCLEAR, lambda values, ids: values == values[:1] * len(ids), _PADS),
    _Kind(NUMBERS, lambda values, ids: values == values[:1] * len(ids) and min(values, default=0) >= 0, _SEVERAL),
    _Kind(POSITIONS, lambda values, ids: values == list(range(len(ids))), _SEVERAL),
    _Kind(SIZES, lambda values, ids: values == [len(ids)], _SEVERAL),
    _Kind(BOUNDS, lambda values, ids: values in ([0], [0, len(ids)]), _SEVERAL),
)
_KIND_OF: dict[str, _Kind] = {}
for _kind in _KINDS:
    _KIND_OF |= dict.fromkeys(_kind.names, _kind)


def said(name: str, values: Any, ids: Sequence[int]) -> str:
    """Return what a column says of some ids beyond the ids themselves, in words; "" if that is nothing.

    Args:
        name: of the column, one of `KNOWN`.
        values: of the record that has the ids; None for a value that it lacks.

    >>> said("attention_mask", [1, 1, 0], [5, 6, 0])
    'some are padding or other documents'
    >>> said("labels", [5, 6], [5, 6]), said("document_id", "a7", [5, 6]), said("position_ids", [0, 1], [5, 6])
    ('', '', '')
    """
    is_list = isinstance(values, list | tuple)
    if values is None or (name in (*NUMBERS, *SIZES) and not is_list):
        return ""
    if not is_list or not all(isinstance(value, int | float) for value in values):
        return "it is no list of numbers"
    kind = _KIND_OF[name]
    return "" if kind.plain(list(values), list(ids)) else kind.says
