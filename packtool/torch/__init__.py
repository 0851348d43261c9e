"""Packed datasets for PyTorch: the extra ``torch``, in a clone ``pip install '.[torch]'``.

`Loader` is all that a training loop needs, `ValidationLoader` what it is measured with. The parts of `Loader` fit
PyTorch's `DataLoader` and torchdata's `StatefulDataLoader`: `Samples` (a map-style dataset), `GlobalBatches` (a batch
sampler with state) and `collate`.

>>> from packtool.torch import Loader                           # doctest: +SKIP
>>> loader = Loader("packed", batch_size=64, num_workers=2)     # doctest: +SKIP
>>> for batch in loader:                                        # doctest: +SKIP
...     logits = model(batch["input_ids"]).flatten(0, 1)        # doctest: +SKIP
...     loss = cross_entropy(logits, batch["labels"].flatten()) # doctest: +SKIP

A label is the token after its place. For a model that shifts labels itself, give ``labels="same"``.
"""

from __future__ import annotations

from packtool.errors import UsageError
from packtool.reading.batches import GlobalBatches
from packtool.support.installing import how_to_install

try:
    import torch as _torch
except ImportError:
    what = "PyTorch is not installed"
    remedy = f"install it as your machine needs it, or with {how_to_install('torch')}"
    raise UsageError("missing-extra", what, remedy=remedy) from None

from packtool.torch.apart import check_apart
from packtool.torch.attention import block_mask, document_mask, varlen_attention
from packtool.torch.kernels import flat, with_cu_seq_lens
from packtool.torch.labels import NextLabels, SameLabels
from packtool.torch.loader import Loader, Samples, collate
from packtool.torch.mesh import data_rank
from packtool.torch.validation import ValidationLoader

__all__ = [
    "GlobalBatches",
    "Loader",
    "NextLabels",
    "SameLabels",
    "Samples",
    "ValidationLoader",
    "block_mask",
    "check_apart",
    "collate",
    "data_rank",
    "document_mask",
    "flat",
    "varlen_attention",
    "with_cu_seq_lens",
]

del _torch
