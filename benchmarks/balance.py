"""Whether balanced ranks are equally busy: real masked attention on several processes, as dealt and balanced.

    python -m torch.distributed.run --standalone --nproc-per-node 2 -m benchmarks.balance DATASET [STEPS] [BATCH_SIZE]

Each process attends within the documents of its rows, on one thread, and counts CPU seconds. Prints the share of them
that ranks would wait for the slowest, beside the share that counting query-key pairs predicts.
"""

from __future__ import annotations

import sys
import time
from typing import Literal

import numpy as np


def measure(path: str, steps: int, batch_size: int, way: Literal["step"] | None) -> str:
    """One line of figures."""
    import torch
    import torch.distributed as dist

    from packtool.torch import Loader, varlen_attention

    loader = Loader(path, batch_size=batch_size, balance=way, fields=("input_ids", "cu_seqlens", "max_seqlen"))
    costs = []
    for _, batch in zip(range(steps), loader, strict=False):
        heads = torch.randn(batch["input_ids"].numel(), 1, 32)
        begin = time.process_time()
        varlen_attention(heads, heads, heads, batch["cu_seqlens"], batch["max_seqlen"])
        lengths = np.diff(batch["cu_seqlens"].numpy().astype(np.int64))
        costs.append((time.process_time() - begin, float((lengths * (lengths + 1) // 2).sum())))
    mine = torch.tensor(costs, dtype=torch.float64)
    ranks = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(ranks, mine)
    every = torch.stack(ranks)  # rank, step, (seconds, pairs)
    seconds, pairs = (1 - every.mean(0) / every.max(0).values).mean(0).tolist()
    return f"{way or 'as dealt'}: {seconds:.2%} of CPU seconds waiting, {pairs:.2%} predicted"


def main() -> None:
    import torch
    import torch.distributed as dist

    path, *numbers = sys.argv[1:]
    steps, batch_size = [*map(int, numbers), *(8, 16)[len(numbers) :]]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for way in (None, "step"):
        line = measure(path, steps, batch_size, way)  # type: ignore[arg-type]
        if dist.get_rank() == 0:
            print(line, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
