"""A small GPT: rotary positions, which begin anew in each document, and attention that a mask keeps inside it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention


class GPT(nn.Module):
    """Token ids to the logits of the next ones.

    Args:
        vocab_size: token ids are below it.
        width: of the embeddings; a multiple of twice the heads.
        layers, heads: of attention.
    """

    def __init__(self, vocab_size: int, width: int = 128, layers: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, ids: Tensor, positions: Tensor, mask: Tensor | None = None) -> Tensor:
        """(rows, T) ids to (rows, T, vocab_size) logits.

        Args:
            positions: (rows, T), from 0 in each document.
            mask: (rows, 1, T, T), which places attend to which; None for all places before.
        """
        x = self.embed(ids)
        turns = rotations(positions, self.blocks[0].head_width)
        for block in self.blocks:
            x = block(x, turns, mask)
        return linear(self.norm(x), self.embed.weight)


class Block(nn.Module):
    """Attention, then a network for each place."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head_width = heads, width // heads
        self.norms = nn.ModuleList([nn.RMSNorm(width), nn.RMSNorm(width)])
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, turns: Tensor, mask: Tensor | None) -> Tensor:
        rows, length, width = x.shape
        heads = self.qkv(self.norms[0](x)).view(rows, length, 3, self.heads, self.head_width)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        query, key = rotate(query, turns), rotate(key, turns)
        seen = scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None)
        x = x + self.out(seen.transpose(1, 2).reshape(rows, length, width))
        return x + self.network(self.norms[1](x))


def rotations(positions: Tensor, width: int) -> Tensor:
    """The angle by which each pair of numbers turns at each place: (rows, 1, T, width / 2)."""
    speeds = 10_000 ** (-torch.arange(0, width, 2, device=positions.device) / width)
    return (positions[:, None, :, None] * speeds).float()


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Turn each pair of numbers, one from the first half and one from the second."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * turns.cos() - second * turns.sin(), first * turns.sin() + second * turns.cos()], dim=-1)
