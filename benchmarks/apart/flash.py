"""FlashAttention's two functions in plain PyTorch, put where Transformers loads them."""

from __future__ import annotations

from typing import Any

import torch

CALLS: list[str] = []
"""Which of the two was called, in order."""


def attend(query: Any, key: Any, value: Any, scale: float | None, window: tuple[int, int], softcap: float) -> Any:
    """Attend causally within each row, (rows, T, heads, width)."""
    groups = query.shape[2] // key.shape[2]
    key, value = key.repeat_interleave(groups, 2), value.repeat_interleave(groups, 2)
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) * (scale or query.shape[-1] ** -0.5)
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    place = torch.arange(query.shape[1])
    back = place[:, None] - place[None]
    seen = back >= 0
    if window[0] >= 0:
        seen &= back <= window[0]
    return torch.einsum("bhqk,bkhd->bqhd", scores.masked_fill(~seen, -1e30).softmax(-1).to(value.dtype), value)


def flash_attn_func(
    q: Any,
    k: Any,
    v: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    deterministic: bool = False,
) -> Any:
    CALLS.append("plain")
    return attend(q, k, v, softmax_scale, window_size, softcap)


def flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    deterministic: bool = False,
) -> Any:
    CALLS.append("varlen")
    assert torch.equal(cu_seqlens_q, cu_seqlens_k)
    assert int(cu_seqlens_q[-1]) == len(q)
    assert int(cu_seqlens_q.diff().max()) <= max_seqlen_q == max_seqlen_k
    out = torch.empty_like(q[..., : v.shape[-1]])
    for first, end in zip(cu_seqlens_q[:-1].tolist(), cu_seqlens_q[1:].tolist(), strict=True):
        parts = (tensor[None, first:end] for tensor in (q, k, v))
        out[first:end] = attend(*parts, softmax_scale, window_size, softcap)[0]
    return out


def use(model: Any) -> Any:
    """Have a model that attends by ``eager`` attend by FlashAttention, as Transformers calls it."""
    from transformers import modeling_flash_attention_utils as utils

    utils._lazy_imports = lambda *_, **__: (
        flash_attn_func,
        flash_attn_varlen_func,
        None,
        utils._pad_input,
        utils._unpad_input,
    )
    for module in model.modules():
        if hasattr(module, "config"):
            module.config._attn_implementation = "flash_attention_2"
    return model
