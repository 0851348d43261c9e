"""Where documents begin, as kernels take it that Transformers calls: FlashAttention, and those of other layers.

>>> batch = {"input_ids": torch.tensor([[5, 6, 7], [8, 9, 5]]), "position_ids": torch.tensor([[0, 1, 0], [0, 1, 2]])}
>>> laid = flat(batch)
>>> laid["input_ids"].tolist(), laid["seq_idx"].tolist()
([[5, 6, 7, 8, 9, 5]], [[0, 0, 1, 2, 2, 2]])
>>> laid["cu_seq_lens_q"].tolist(), laid["max_length_q"]
([0, 2, 3, 6], 3)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from packtool.torch.apart import begins


def with_cu_seq_lens(batch: Mapping[str, Any]) -> dict[str, Any]:
    """Add where documents begin, as the models of Transformers hand it to FlashAttention.

    Of several rows they make plain causal attention without it, in which documents see each other.

    Args:
        batch: rows with `position_ids` or `document_ids`.

    Returns:
        The batch with `cu_seq_lens_q` and `cu_seq_lens_k`, (documents + 1) int32: where documents begin in the rows
        laid end to end; and `max_length_q` and `max_length_k`, the length of the longest one.

    Raises:
        UsageError: no field says where documents begin.
    """
    starts = begins(batch).flatten()
    bounds = torch.cat([starts.nonzero()[:, 0], starts.new_tensor([starts.numel()], dtype=torch.int64)]).int()
    longest = int(bounds.diff().max())
    more = {"cu_seq_lens_q": bounds, "cu_seq_lens_k": bounds, "max_length_q": longest, "max_length_k": longest}
    return {**batch, **more}


def flat(batch: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the rows of a batch end to end, as kernels of convolution, recurrent and state-space layers take them.

    With dense masks (sdpa, eager) the mask grows with the square of the rows.

    Args:
        batch: rows with `position_ids` or `document_ids`; labels are ``same``, in which the first token of a row is no
            target.

    Returns:
        The batch as one row, every field of shape (rows, T) laid end to end, with `seq_idx`, (1, rows · T) int32: the
        number of a token's document in the batch; and what `with_cu_seq_lens` adds.

    Raises:
        UsageError: no field says where documents begin.
    """
    laid: dict[str, Any] = with_cu_seq_lens(batch)
    laid["seq_idx"] = begins(batch).flatten().cumsum(0, dtype=torch.int32)[None] - 1
    shape = batch["input_ids"].shape
    for name, value in batch.items():
        if isinstance(value, Tensor) and value.shape == shape:
            laid[name] = value.reshape(1, -1)
    return laid
