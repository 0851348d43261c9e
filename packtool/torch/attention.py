"""Attention within documents in PyTorch's three forms: a dense mask, FlexAttention, and `varlen`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask
from torch.nn.functional import scaled_dot_product_attention


def document_mask(document_ids: Tensor) -> Tensor:
    """Return which places a place attends to: the places before it in its own sequence, and itself.

    For `scaled_dot_product_attention(..., attn_mask=mask)`. The mask takes memory for every pair of places.

    Args:
        document_ids: (rows, T).

    Returns:
        (rows, 1, T, T) bool: row, any head, from, to.
    """
    same = document_ids[:, :, None] == document_ids[:, None, :]
    return torch.tril(same)[:, None]


def block_mask(document_ids: Tensor) -> BlockMask:
    """Make the same mask for `torch.nn.attention.flex_attention.flex_attention(..., block_mask=mask)`.

    Args:
        document_ids: (rows, T), on the device that attends. For a batch without rows, as the last batch of a rank may
            be, the mask is for any number of rows, since PyTorch makes no mask for no rows.
    """
    rows, length = document_ids.shape

    def causal(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return query >= key

    def attends(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return causal(row, head, query, key) & (document_ids[row, query] == document_ids[row, key])

    if rows == 0:
        return create_block_mask(causal, None, None, length, length, device=document_ids.device)
    return create_block_mask(attends, rows, None, length, length, device=document_ids.device)


def varlen_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens: Tensor,
    max_seqlen: int,
    *,
    cu_seqlens_padded: Tensor | None = None,
) -> Tensor:
    """Compute causal attention within each sequence, as FlashAttention's ``flash_attn_varlen_func`` does.

    It is a plain implementation with the same arguments, to test a model where FlashAttention does not run. With
    `cu_seqlens_padded`, sequences have padding between them, as Transformer Engine's ``thd`` attention takes them:
    nothing attends to padding, and the output of padding is 0.

    Args:
        query, key, value: (tokens, heads, width), the rows of a batch laid end to end.
        cu_seqlens: (sequences + 1) where sequences begin; counted without padding if `cu_seqlens_padded` is given.
        max_seqlen: not needed here.
        cu_seqlens_padded: (sequences + 1) where sequences begin in the rows, if they have padding between them.
    """
    begins = cu_seqlens if cu_seqlens_padded is None else cu_seqlens_padded
    out = torch.zeros_like(value)
    for first, length in zip(begins[:-1].tolist(), cu_seqlens.diff().tolist(), strict=True):
        if length:
            inside = slice(first, first + length)
            q, k, v = (tensor[inside].transpose(0, 1)[None] for tensor in (query, key, value))
            out[inside] = scaled_dot_product_attention(q, k, v, is_causal=True)[0].transpose(0, 1)
    return out
