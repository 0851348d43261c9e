"""Stand-in in plain PyTorch: the gated delta rule token by token, which `cu_seqlens` begin anew, in one row."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional


def chunk_gated_delta_rule(
    q: Any,
    k: Any,
    v: Any,
    g: Any = None,
    beta: Any = None,
    scale: float | None = None,
    initial_state: Any = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: Any = None,
    **_: Any,
) -> Any:
    """(rows, T, heads, width)."""
    if cu_seqlens is not None and q.shape[0] != 1:
        raise ValueError(f"The batch size is expected to be 1 rather than {q.shape[0]} when using `cu_seqlens`.")
    kind = v.dtype
    q, k, v, g, beta = (tensor.float() for tensor in (q, k, v, g, beta))
    if use_qk_l2norm_in_kernel:
        q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
    groups = v.shape[2] // q.shape[2]
    q, k = q.repeat_interleave(groups, 2), k.repeat_interleave(groups, 2)
    q = q * (scale or q.shape[-1] ** -0.5)
    begins = set() if cu_seqlens is None else set(cu_seqlens.tolist())
    state = torch.zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    out = []
    for place in range(q.shape[1]):
        if place in begins:
            state = torch.zeros_like(state)
        state = state * g[:, place, :, None, None].exp()
        change = v[:, place] - torch.einsum("bhkv,bhk->bhv", state, k[:, place])
        state = state + k[:, place, ..., None] * (change * beta[:, place, :, None])[:, :, None]
        out.append(torch.einsum("bhkv,bhk->bhv", state, q[:, place]))
    return torch.stack(out, 1).to(kind), state if output_final_state else None


def fused_recurrent_gated_delta_rule(*_: Any, **__: Any) -> Any:
    raise NotImplementedError
