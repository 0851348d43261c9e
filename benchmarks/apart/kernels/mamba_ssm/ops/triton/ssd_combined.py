"""Stand-ins in plain PyTorch: Mamba-2's scan, token by token, which a document begins anew, by `seq_idx`."""

from __future__ import annotations

from typing import Any

import torch
from causal_conv1d import causal_conv1d_fn
from torch.nn import functional


def mamba_chunk_scan_combined(
    x: Any,
    dt: Any,
    A: Any,
    B: Any,
    C: Any,
    chunk_size: int,
    D: Any = None,
    z: Any = None,
    dt_bias: Any = None,
    initial_states: Any = None,
    seq_idx: Any = None,
    cu_seqlens: Any = None,
    dt_softplus: bool = False,
    dt_limit: tuple[float, float] = (0.0, float("inf")),
    return_final_states: bool = False,
    return_varlen_states: bool = False,
) -> Any:
    """(rows, T, heads, width), with B and C of (rows, T, groups, states)."""
    kind = x.dtype
    rows, length, heads, width = x.shape
    if dt_bias is not None:
        dt = dt + dt_bias
    if dt_softplus:
        dt = functional.softplus(dt)
    dt = dt.clamp(*dt_limit)
    B, C = (part.repeat_interleave(heads // part.shape[2], 2) for part in (B, C))
    state = torch.zeros(rows, heads, width, B.shape[-1])
    out = []
    for place in range(length):
        if seq_idx is not None and place:
            state = state * (seq_idx[:, place] == seq_idx[:, place - 1])[:, None, None, None]
        step = dt[:, place]
        added = (step[..., None] * x[:, place])[..., None] * B[:, place, :, None]
        state = state * torch.exp(step * A)[..., None, None] + added
        y = (state * C[:, place, :, None]).sum(-1)
        out.append(y if D is None else y + D[:, None] * x[:, place])
    y = torch.stack(out, 1)
    if z is not None:
        y = y * functional.silu(z)
    y = y.to(kind)
    return (y, state) if return_final_states else y


def mamba_split_conv1d_scan_combined(
    zxbcdt: Any,
    conv1d_weight: Any,
    conv1d_bias: Any,
    dt_bias: Any,
    A: Any,
    D: Any,
    chunk_size: int,
    initial_states: Any = None,
    seq_idx: Any = None,
    dt_limit: tuple[float, float] = (0.0, float("inf")),
    return_final_states: bool = False,
    activation: str = "silu",
    rmsnorm_weight: Any = None,
    rmsnorm_eps: float = 1e-6,
    outproj_weight: Any = None,
    outproj_bias: Any = None,
    headdim: int | None = None,
    ngroups: int = 1,
    norm_before_gate: bool = True,
) -> Any:
    """(rows, T, …): the convolution, the scan, the norm and the projection, in one kernel that only training calls."""
    assert headdim is not None
    kind, heads, convolved = zxbcdt.dtype, A.shape[0], conv1d_weight.shape[0]
    inner = heads * headdim
    z, xbc, dt = zxbcdt.split([inner, convolved, heads], -1)
    xbc = causal_conv1d_fn(xbc.transpose(1, 2), conv1d_weight, conv1d_bias, seq_idx, activation=activation)
    states = (convolved - inner) // 2
    x, B, C = xbc.transpose(1, 2).split([inner, states, states], -1)
    rows, length, _ = x.shape
    x, B, C = x.reshape(rows, length, heads, headdim), *(p.reshape(rows, length, ngroups, -1) for p in (B, C))
    options = {"D": D, "dt_bias": dt_bias, "seq_idx": seq_idx, "dt_softplus": True, "dt_limit": dt_limit}
    y = mamba_chunk_scan_combined(x, dt, A, B, C, chunk_size, **options).reshape(rows, length, inner)
    y = y * functional.silu(z)
    if rmsnorm_weight is not None:
        group = y.reshape(rows, length, ngroups, -1)
        y = (group * torch.rsqrt(group.pow(2).mean(-1, keepdim=True) + rmsnorm_eps)).reshape(rows, length, inner)
        y = y * rmsnorm_weight
    y = y.to(kind)
    return y if outproj_weight is None else functional.linear(y, outproj_weight, outproj_bias)
