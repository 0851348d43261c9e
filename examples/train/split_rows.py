"""Split a batch of whole rows among the processes of a context parallel group, with FlexAttention.

These are the calls of torchtitan, by names that are private in PyTorch 2.13. docs/long-context.md says when to take it.
"""

from torch import nn
from torch.distributed.tensor.experimental._attention import (
    _context_parallel_shard,
    _ContextParallel,
    _HeadTailLoadBalancer,
)
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn.attention.flex_attention import flex_attention

from packtool.torch import block_mask


class Attention(nn.Module):
    """FlexAttention as a module, for PyTorch to give it the keys and values of all processes."""

    def forward(self, query, key, value, *, block_mask):
        return flex_attention(query, key, value, block_mask=block_mask)


def share_keys(model, mesh):
    """Let each attention of a model see the keys and values of all processes of the mesh."""
    names = [name for name, part in model.named_modules() if isinstance(part, Attention)]
    kind = _ContextParallel.AttentionType.FLEX
    parallelize_module(model, mesh, {name: _ContextParallel(seq_dim=2, attention_type=kind) for name in names})


def split(batch, mesh):
    """Return this process's places of a batch, and their mask: a chunk from the front of rows, and its mirror."""
    balancer = _HeadTailLoadBalancer(batch["input_ids"].shape[1], mesh.size(), mesh.device_type)
    names = ("input_ids", "labels", "position_ids")
    parts = _context_parallel_shard(mesh, [batch[name] for name in names], [1] * len(names), balancer)
    (mask,) = _context_parallel_shard(mesh, [block_mask(batch["document_ids"])], [2], balancer)
    return dict(zip(names, parts, strict=True)), mask
