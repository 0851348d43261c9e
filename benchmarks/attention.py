"""Whether ranks with balanced rows are equally busy with real attention, and not in counted pairs alone.

    python -m benchmarks.attention [--steps 40]

Two processes attend, with PyTorch, within the documents of their rows of 16,384 tokens, eight each in a step, on one
thread, and count CPU seconds: the share of them that the one with less would wait, and the share that counting
query-key pairs predicts, with rows as they come and dealt by `balance="step"`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any, Literal

import packtool
from benchmarks import peers
from benchmarks.common import WORK, fresh, lognormal_lengths, save, synthetic_store, table

LENGTH, BATCH, RANKS = 16_384, 16, 2
HEADS, WIDTH = 1, 32
WAYS: dict[str, Literal["step"] | None] = {"as they come": None, '`balance="step"`': "step"}


def packed(steps: int) -> Path:
    """Rows of documents with lognormal lengths, enough for so many steps."""
    lengths = lognormal_lengths(steps * BATCH * LENGTH // 4000, median=1500, sigma=1.6)
    store = synthetic_store(fresh(WORK / "attention-store"), lengths)
    rows = fresh(WORK / "attention-rows")
    packtool.pack(store, rows, strategy="bfd", sequence_length=LENGTH, overwrite=True)
    return rows


def measured(rows: str, steps: int, way: Literal["step"] | None) -> tuple[float, float]:
    """Waiting in CPU seconds of attention, and in pairs: means of the steps. All ranks call it together."""
    import torch
    import torch.distributed as dist

    from packtool.torch import Loader, varlen_attention

    loader = Loader(rows, batch_size=BATCH, balance=way, fields=("input_ids", "cu_seqlens", "max_seqlen"))
    costs = []
    for _, batch in zip(range(steps), loader, strict=False):
        heads = torch.randn(batch["input_ids"].numel(), HEADS, WIDTH)
        began = time.process_time()
        varlen_attention(heads, heads, heads, batch["cu_seqlens"], batch["max_seqlen"])
        lengths = batch["cu_seqlens"].diff().double()
        costs.append((time.process_time() - began, float((lengths * (lengths + 1) / 2).sum())))
    mine = torch.tensor(costs, dtype=torch.float64)
    ranks = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(ranks, mine)
    every = torch.stack(ranks)  # rank, step, (seconds, pairs)
    seconds, pairs = (1 - every.mean(0) / every.max(0).values).mean(0).tolist()
    return seconds, pairs


def attend(rows: str, steps: int) -> None:
    """As one of the processes: the first prints what was found."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    measured(rows, 1, None)  # the first attention allocates
    found = [[name, *measured(rows, steps, way)] for name, way in WAYS.items()]
    if dist.get_rank() == 0:
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rows", help="of the processes that attend")
    given = parser.parse_args()
    if "RANK" in os.environ:
        attend(given.rows, given.steps)
        return
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
    program = ["-m", "benchmarks.attention", "--steps", str(given.steps), "--rows", packed(given.steps)]
    done = subprocess.run([peers.environment("torch"), *torchrun, *program], stdout=subprocess.PIPE, check=True)
    names = ("rows", "waited", "predicted")
    found: list[dict[str, Any]] = [
        dict(zip(names, row, strict=True)) for row in json.loads(done.stdout.decode().splitlines()[-1])
    ]
    save("attention", {"row length": LENGTH, "batch": BATCH, "steps": given.steps, "found": found})
    table(names, [list(row.values()) for row in found])


if __name__ == "__main__":
    main()
