"""How long ranks would wait for rows on a GPU, and whether a loader keeps it busy.

    python -m benchmarks.gpu [--commit COMMIT] [--results DIRECTORY]

Needs a GPU, and a Python with PyTorch, Transformers and what packtool needs.

- Waiting: rows of a global batch, packed from real lengths, each timed once through one dense layer, forwards and
  backwards in bfloat16; the share of the time that ranks would wait, with rows as they come and dealt.
- Training: a Llama of GPT-2's size on rows of 2048, compiled, with a batch that lies on the GPU and with the loader.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sysconfig
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

import packtool
from benchmarks.common import RESULTS, WORK, fresh, lognormal_lengths, provenance, synthetic_store
from packtool.planning import packing
from packtool.planning.packing import PackOptions
from packtool.planning.plan import I64, Segments
from packtool.planning.shuffling.balance import STEP, TURN, as_they_come, dealt_in, pairs_of, time_taken
from packtool.torch import Loader

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HEAD = 128
SHAPES = ((32_768, 4096), (131_072, 4096))
"""Tokens in a row, and hidden size."""
TEXT = {".py", ".pyi", ".pyx", ".c", ".h", ".cpp", ".hpp", ".js", ".json", ".md", ".rst", ".txt"}
SAMPLE = 400
"""Files that are tokenized to know how many bytes a token has."""
RANKS, BATCH = 16, 128
LENGTH, ROWS = 2048, 32


class Layer(nn.Module):
    """A dense layer: 12 h² weights, hence 24 h² operations forwards for each token."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.heads = hidden // HEAD
        self.norms = nn.ModuleList(nn.RMSNorm(hidden) for _ in range(2))
        self.attended, self.out = nn.Linear(hidden, 3 * hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.up, self.down = nn.Linear(hidden, 4 * hidden, bias=False), nn.Linear(4 * hidden, hidden, bias=False)

    def before(self, row: Tensor) -> tuple[Tensor, ...]:
        return self.attended(self.norms[0](row)).view(len(row), 3, self.heads, HEAD).unbind(1)

    def after(self, row: Tensor, found: Tensor) -> Tensor:
        row = row + self.out(found.flatten(1))
        return row + self.down(gelu(self.up(self.norms[1](row))))


def flash(query: Tensor, key: Tensor, value: Tensor, ends: Tensor, longest: int) -> Tensor:
    """Causal attention within documents, by the FlashAttention that PyTorch brings."""
    from torch.nn.attention.varlen import varlen_attn

    try:
        return varlen_attn(query, key, value, ends, ends, longest, longest, window_size=(-1, 0))
    except TypeError:  # before PyTorch 2.11
        return varlen_attn(query, key, value, ends, ends, longest, longest, is_causal=True)


class Timer:
    """Seconds that a layer takes forwards and backwards on a row."""

    def __init__(self, size: int, hidden: int) -> None:
        torch.manual_seed(0)
        self.layer = Layer(hidden).to(DEVICE, torch.bfloat16)
        self.before, self.after = torch.compile(self.layer.before), torch.compile(self.layer.after)
        self.row = torch.randn(size, hidden, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
        self.grad = torch.randn_like(self.row)

    def once(self, lengths: I64) -> float:
        ends = torch.tensor(np.concatenate([[0], np.cumsum(lengths)]), dtype=torch.int32, device=DEVICE)
        longest = int(lengths.max())
        _wait()
        began = time.perf_counter()
        query, key, value = self.before(self.row)
        self.after(self.row, flash(query, key, value, ends, longest)).backward(self.grad)
        _wait()
        return time.perf_counter() - began

    def row_of(self, lengths: I64, rounds: int = 3) -> float:
        return statistics.median(self.once(lengths) for _ in range(rounds))


def _wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def real_lengths(directories: Iterable[Path]) -> I64:
    """Tokens of documents: every file, and every directory's files as one, in random order."""
    files = sorted({path for root in directories for path in root.rglob("*") if path.suffix in TEXT and path.is_file()})
    sizes = np.array([path.stat().st_size for path in files])
    generator = np.random.default_rng(0)
    sample = fresh(WORK / "gpu-sample")
    for number, at in enumerate(generator.choice(len(files), SAMPLE, replace=False).tolist()):
        (sample / f"{number}.txt").write_text(files[at].read_text(encoding="utf-8", errors="replace"))
    found = packtool.tokenize(sample, fresh(WORK / "gpu-store"), format="text", overwrite=True, quiet=True)
    each = sum(path.stat().st_size for path in sample.iterdir()) / found.counts["tokens"]
    together: dict[Path, int] = defaultdict(int)
    for path, size in zip(files, sizes.tolist(), strict=True):
        together[path.parent] += size
    tokens = np.concatenate([sizes, np.array(list(together.values()))]) / each
    lengths: I64 = generator.permutation(tokens.astype(np.int64) + 1)
    return lengths


def waits(lengths: I64, shapes: Any) -> list[dict[str, Any]]:
    """Share of the time that ranks wait for the slowest."""
    found = []
    for size, hidden in shapes:
        (plan,) = packing.plan("bfd", lengths, PackOptions(sequence_length=size))
        rows = np.random.default_rng(0).permutation(plan.rows)[:BATCH]
        segments = plan.segments(rows)
        pairs = pairs_of(segments)[None]
        timer = Timer(size, hidden)
        timer.row_of(np.full(4, size // 4))
        seconds = np.array([timer.once(_lengths(segments, row)) for row in range(BATCH)])
        costs = (seconds * 1e9).astype(np.int64)[None]
        for meet in (STEP, TURN):
            ways = {"as they come": as_they_come(pairs, RANKS), meet: dealt_in(meet, pairs, RANKS, 1)}
            for name, dealt in ways.items():
                waited = 1 - costs.sum() / RANKS / time_taken(costs, dealt, meet)[0]
                row = {"row length": size, "hidden size": hidden, "ranks meet": meet, "rows": name}
                found.append(row | {"waited": float(waited)})
                print(found[-1], flush=True)
        del timer
    return found


def _lengths(segments: Segments, row: int) -> I64:
    return segments.length[segments.offsets[row] : segments.offsets[row + 1]]


def training(tokens: int, steps: int) -> list[dict[str, Any]]:
    """Tokens a second of a training step, and the share of it that waits for a batch."""
    from transformers import LlamaConfig, LlamaForCausalLM

    store = synthetic_store(fresh(WORK / "gpu-store"), lognormal_lengths(tokens // 800))
    rows = fresh(WORK / "gpu-rows")
    packtool.pack(store, rows, strategy="bfd", sequence_length=LENGTH, overwrite=True)
    config = LlamaConfig(
        vocab_size=65_536,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=12,
        num_attention_heads=12,
        tie_word_embeddings=True,
        use_cache=False,
    )
    model = LlamaForCausalLM(config).to(DEVICE, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=DEVICE == "cuda")

    @torch.compile
    def loss(ids: Tensor, labels: Tensor) -> Tensor:
        # The labels of packtool are already those of the next token.
        logits = model(input_ids=ids).logits.flatten(0, 1)
        return nn.functional.cross_entropy(logits.float(), labels.flatten())

    def step(ids: Tensor, labels: Tensor) -> None:
        loss(ids, labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    ready = torch.randint(0, 60_000, (ROWS, LENGTH), device=DEVICE)
    for _ in range(5):
        step(ready, ready)
    _wait()
    began = time.perf_counter()
    for _ in range(steps):
        step(ready, ready)
    _wait()
    best = steps * ready.numel() / (time.perf_counter() - began)
    found: list[dict[str, Any]] = [{"batches": "one that lies on the GPU", "tokens a second": best, "waited": 0.0}]
    for workers in (0, 1, 2):
        loader = Loader(
            rows,
            batch_size=ROWS,
            rank=0,
            world_size=1,
            fields=("input_ids", "labels"),
            num_workers=workers,
            pin_memory=DEVICE == "cuda",
        )
        batches = iter(loader)
        step(*_moved(next(batches)))
        _wait()
        waited, began = 0.0, time.perf_counter()
        for _ in range(steps):
            asked = time.perf_counter()
            batch = next(batches)
            waited += time.perf_counter() - asked
            step(*_moved(batch))
        _wait()
        took = time.perf_counter() - began
        found.append(
            {
                "batches": f"loader, {workers} workers",
                "tokens a second": steps * ready.numel() / took,
                "waited": waited / took,
            }
        )
        print(found[-1], flush=True)
    return found


def _moved(batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    ids, labels = (batch[name].to(DEVICE, non_blocking=True).long() for name in ("input_ids", "labels"))
    return ids, labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", help="of this code, where the history is not that of it")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--tiny", action="store_true", help="only see that it runs")
    parser.add_argument("parts", nargs="*", default=["waiting", "training"])
    given = parser.parse_args()
    shapes, tokens, steps = SHAPES, 200_000_000, 100
    if given.tiny:
        shapes, tokens, steps = ((1024, 256),), 2_000_000, 2
    record = provenance()
    record["commit"] = given.commit or record["commit"]
    record["versions"]["torch"] = torch.__version__
    record["gpu"] = torch.cuda.get_device_name() if DEVICE == "cuda" else "none"
    given.results.mkdir(exist_ok=True)
    file = given.results / "gpu.json"
    python = [Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib")]
    for part in given.parts:
        if part == "waiting":
            record |= {"ranks": RANKS, "batch": BATCH, "waiting": waits(real_lengths(python), shapes)}
        elif part == "training":
            record |= {"row length": LENGTH, "rows": ROWS, "training": training(tokens, steps)}
        file.write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record))


if __name__ == "__main__":
    main()
