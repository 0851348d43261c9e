"""A process of a group that splits every document of a row: ring attention, in plain PyTorch on the CPU.

    python ring.py DATASET OUT.pt

Writes the logits of the process's own places, and the places. Alone in its group it reads whole rows.
"""

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

import packtool

HEADS, WIDTH, LAYERS, VOCAB = 2, 16, 2, 1 << 16


def places_of(cu_seqlens_padded: Tensor, size: int, rank: int) -> Tensor:
    """Places of a rank: of each document cut to 2 * size chunks, one from the front and its mirror from the back."""
    places = []
    for begin, end in pairwise(cu_seqlens_padded.tolist()):
        chunk = (end - begin) // (2 * size)
        assert chunk * 2 * size == end - begin, "documents are multiples"
        for part in (rank, 2 * size - 1 - rank):
            places.append(torch.arange(begin + part * chunk, begin + (part + 1) * chunk))
    return torch.cat(places)


def scores_of(query: Tensor, key: Tensor, value: Tensor, may: Tensor) -> tuple[Tensor, Tensor]:
    """Attend to one block: the weighted sum of its values, and the logarithm of the weights' sum."""
    scores = torch.einsum("qhw,khw->hqk", query, key) / WIDTH**0.5
    scores = scores.masked_fill(~may, float("-inf"))
    total = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - total.clamp(min=-1e30)[..., None])
    return torch.einsum("hqk,khw->qhw", weights, value), total.T[..., None]


def ring_attention(query: Tensor, key: Tensor, value: Tensor, document: Tensor, place: Tensor) -> Tensor:
    """Attend within documents to the keys and values of all ranks, which go round: each passes them to the next."""
    rank, size = dist.get_rank(), dist.get_world_size()
    block = [key, value, document, place]
    out, total = torch.zeros_like(value), torch.full((len(query), HEADS, 1), float("-inf"), dtype=query.dtype)
    for step in range(size):
        may = (document[:, None] == block[2]) & (place[:, None] >= block[3]) & (block[2] >= 0)
        part, of_part = scores_of(query, block[0], block[1], may)
        both = torch.logaddexp(total, of_part)
        known = both > float("-inf")
        out = torch.where(known, out * torch.exp(total - both) + part * torch.exp(of_part - both), 0)
        total = both
        if step < size - 1:
            received = [torch.empty_like(each) for each in block]
            sends = [dist.isend(each.contiguous(), (rank + 1) % size, tag=n) for n, each in enumerate(block)]
            waits = [dist.irecv(each, (rank - 1) % size, tag=n) for n, each in enumerate(received)]
            for work in [*sends, *waits]:
                work.wait()
            block = received
    return out


class Model(nn.Module):
    """A decoder that knows places within documents by `position_ids` alone."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        size = HEADS * WIDTH
        self.tokens, self.positions = nn.Embedding(VOCAB, size), nn.Embedding(512, size)
        self.to_qkv = nn.ModuleList(nn.Linear(size, 3 * size) for _ in range(LAYERS))
        self.mix = nn.ModuleList(nn.Linear(size, size) for _ in range(LAYERS))
        self.double()

    def forward(self, ids: Tensor, positions: Tensor, document: Tensor, place: Tensor) -> Tensor:
        hidden = self.tokens(ids) + self.positions(positions)
        for to_qkv, mix in zip(self.to_qkv, self.mix, strict=True):
            query, key, value = to_qkv(hidden).view(len(ids), 3, HEADS, WIDTH).unbind(1)
            attended = ring_attention(query, key, value, document, place)
            hidden = hidden + torch.tanh(mix(attended.flatten(1)))
        return hidden @ self.tokens.weight[:64].T


def main(dataset: str, out: str) -> None:
    dist.init_process_group("gloo")
    model, rows = Model(), packtool.open(dataset)
    results: list[Any] = []
    with torch.no_grad():
        for row in range(len(rows)):
            batch = {name: torch.as_tensor(value) for name, value in rows.batch([row]).items()}
            place = places_of(batch["cu_seqlens_padded"], dist.get_world_size(), dist.get_rank())
            ids, positions, document = (batch[name][0, place] for name in ("input_ids", "position_ids", "document_ids"))
            results.append((place, model(ids, positions, document, place)))
    torch.save(results, Path(out))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
