"""Stand-in in plain PyTorch: a convolution of each channel, which a document begins anew, by `seq_idx`."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional


def causal_conv1d_fn(
    x: Any,
    weight: Any,
    bias: Any = None,
    seq_idx: Any = None,
    initial_states: Any = None,
    return_final_states: bool = False,
    final_states_out: Any = None,
    activation: str | None = None,
) -> Any:
    """(rows, channels, T) with a weight of (channels, width)."""
    width, length = weight.shape[-1], x.shape[-1]
    out = torch.zeros_like(x)
    for place in range(width):
        back = width - 1 - place
        moved = functional.pad(x, (back, 0))[..., :length]
        if seq_idx is not None and back:
            moved = moved * (functional.pad(seq_idx, (back, 0), value=-9)[:, :length] == seq_idx)[:, None]
        out = out + moved * weight[:, place][None, :, None]
    if bias is not None:
        out = out + bias[None, :, None]
    return functional.silu(out) if activation in ("silu", "swish") else out


def causal_conv1d_update(*_: Any, **__: Any) -> Any:
    raise NotImplementedError
