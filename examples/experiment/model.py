"""GPT-2 with ALiBi in place of learned positions, so that models for any row length have the same parameters.

Source: Optimizing Packing and Shuffling Strategies, A.4; Press et al. 2021 (arXiv:2108.12409), section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention


class GPT(nn.Module):
    """Token ids to the logits of the next ones.

    Args:
        vocab_size: token ids are below it.
        width: of the embeddings, a multiple of the heads. GPT-2 124M: 768, 12 layers, 12 heads.
        layers, heads: of attention.
    """

    def __init__(self, vocab_size: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("slopes", slopes(heads), persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                # As GPT-2: what is added to the residual stream is scaled by its depth.
                residual = name.endswith(("out.weight", "network.2.weight"))
                nn.init.normal_(weight, std=0.02 / (2 * layers) ** 0.5 if residual else 0.02)

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """(rows, T) ids to (rows, T, vocab_size) logits.

        Args:
            documents: (rows, T), the document of each token, to attend within documents; None for all that is before.
        """
        length = ids.shape[1]
        place = torch.arange(length, device=ids.device)
        distance = place[:, None] - place
        bias = -self.slopes[:, None, None] * distance
        bias = bias.masked_fill(distance < 0, float("-inf"))[None]
        if documents is not None:
            apart = documents[:, None, :, None] != documents[:, None, None, :]
            bias = bias.expand(len(ids), -1, -1, -1).masked_fill(apart, float("-inf"))
        x = self.embed(ids)
        bias = bias.to(x.dtype)
        for block in self.blocks:
            x = block(x, bias)
        return linear(self.norm(x), self.embed.weight)


class Block(nn.Module):
    """Attention, then a network for each place."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        rows, length, width = x.shape
        heads = self.qkv(self.norms[0](x)).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        seen = scaled_dot_product_attention(query, key, value, attn_mask=bias)
        x = x + self.out(seen.transpose(1, 2).reshape(rows, length, width))
        return x + self.network(self.norms[1](x))


def slopes(heads: int) -> Tensor:
    """How fast attention of each head falls with distance: a geometric sequence that ends at 2^-8.

    >>> slopes(8)[[0, -1]].tolist()
    [0.5, 0.00390625]
    """
    return 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
