"""What examples/train/torchtitan_main.py needs of torchtitan: the microbatch of its trainer, flat in all fields."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(kw_only=True, slots=True)
class TokenizedTrainingMicrobatch:
    input: Tensor
    labels: Tensor
    positions: Tensor
    padding_mask: Tensor
    num_valid_tokens: int
