"""A process of a group that splits the places of rows, by the code of docs/long-context.md, or one that holds them all.

    python context.py DATASET OUT.pt APART

Writes the loss of each of its places, and the places. With APART 0 documents of a row see each other.
"""

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.functional import cross_entropy

from packtool.torch import Loader, block_mask

HEADS, WIDTH, LAYERS, VOCAB = 2, 16, 2, 1 << 16


class Model(nn.Module):
    """A decoder that knows places within documents by `position_ids` alone."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        torch.manual_seed(1)
        size = HEADS * WIDTH
        self.tokens, self.positions = nn.Embedding(VOCAB, size), nn.Embedding(512, size)
        self.to_qkv = nn.ModuleList(nn.Linear(size, 3 * size) for _ in range(LAYERS))
        self.attend = nn.ModuleList(attention() for _ in range(LAYERS))

    def forward(self, ids: Tensor, positions: Tensor, mask: Any) -> Tensor:
        hidden = self.tokens(ids) + self.positions(positions)
        for to_qkv, attend in zip(self.to_qkv, self.attend, strict=True):
            parts = (part.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for part in to_qkv(hidden).chunk(3, -1))
            hidden = hidden + attend(*parts, block_mask=mask).transpose(1, 2).flatten(2)
        return hidden @ self.tokens.weight.T / (HEADS * WIDTH)  # losses of about 11, as of a new model


def main(dataset: str, out: str, apart: str) -> None:
    from split_rows import Attention, share_keys, split  # of examples/train

    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("cp",))
    model, batch = Model(Attention), next(iter(Loader(dataset, batch_size=2, mesh=mesh)))
    if apart == "0":
        batch["document_ids"].zero_()
    places = torch.arange(batch["input_ids"].numel()).view_as(batch["input_ids"])
    torch.compiler.set_stance(
        "force_eager"
    )  # to compile the mask takes half a minute, and changes nothing but the time
    mask, mine = block_mask(batch["document_ids"]), batch
    if mesh.size() > 1:
        share_keys(model, mesh)
        places = split({**batch, "labels": places}, mesh)[0]["labels"]
        mine, mask = split(batch, mesh)
    with torch.no_grad():
        logits = model(mine["input_ids"], mine["position_ids"], mask)
    loss = cross_entropy(logits.flatten(0, 1), mine["labels"].flatten(), reduction="none")
    torch.save((places.flatten(), loss), Path(out))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
