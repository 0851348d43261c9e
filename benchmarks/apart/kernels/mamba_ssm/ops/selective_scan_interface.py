"""Stand-in in plain PyTorch: Mamba's scan, token by token. It has no argument that says where documents begin."""

from __future__ import annotations

from typing import Any

import torch
from causal_conv1d import causal_conv1d_fn
from torch.nn import functional


def selective_scan_fn(
    u: Any,
    delta: Any,
    A: Any,
    B: Any,
    C: Any,
    D: Any = None,
    z: Any = None,
    delta_bias: Any = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
) -> Any:
    """(rows, channels, T), with B and C of (rows, states, T)."""
    if delta_bias is not None:
        delta = delta + delta_bias[:, None]
    if delta_softplus:
        delta = functional.softplus(delta)
    state = torch.zeros(u.shape[0], u.shape[1], A.shape[1])
    out = []
    for place in range(u.shape[-1]):
        step = delta[:, :, place]
        state = state * torch.exp(step[..., None] * A) + (step * u[:, :, place])[..., None] * B[:, None, :, place]
        out.append((state * C[:, None, :, place]).sum(-1))
    y = torch.stack(out, -1)
    if D is not None:
        y = y + D[:, None] * u
    if z is not None:
        y = y * functional.silu(z)
    y = y.to(u.dtype)
    return (y, state) if return_last_state else y


def mamba_inner_fn(
    xz: Any,
    conv1d_weight: Any,
    conv1d_bias: Any,
    x_proj_weight: Any,
    delta_proj_weight: Any,
    out_proj_weight: Any,
    out_proj_bias: Any,
    A: Any,
    B: Any = None,
    C: Any = None,
    D: Any = None,
    delta_bias: Any = None,
    delta_softplus: bool = True,
    **_: Any,
) -> Any:
    """(rows, 2 channels, T): the convolution, the scan and the projections around them."""
    x, z = xz.chunk(2, 1)
    x = causal_conv1d_fn(x, conv1d_weight.reshape(len(conv1d_weight), -1), conv1d_bias, activation="silu")
    rank, states = delta_proj_weight.shape[1], A.shape[1]
    delta, B, C = functional.linear(x.transpose(1, 2), x_proj_weight).split([rank, states, states], -1)
    delta = functional.linear(delta, delta_proj_weight).transpose(1, 2)
    y = selective_scan_fn(x, delta, A, B.transpose(1, 2), C.transpose(1, 2), D, z, delta_bias, delta_softplus)
    return functional.linear(y.transpose(1, 2), out_proj_weight, out_proj_bias)
