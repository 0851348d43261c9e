"""From document lengths to rows, without tokens. Lengths are lognormal, median 400 and σ 1.2."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import WORK, fresh, lognormal_lengths
from benchmarks.index_only import lengths_only
from benchmarks.runner import OUT, Case, Cases, Contestant, Scale, packtool, program

PEERS = {"TRL": "trl", "OLMo-core": "olmo", "axolotl": "axolotl", "NeMo": "nemo", "seqpacker": "seqpacker"}
OURS = {"packtool, not mixed": "bfd --no-mix-rows", "packtool, mixed": "bfd"}
INDEX = "packtool pack --index-only, not mixed"
STRATEGIES = (
    "concat",
    "padding",
    "first-fit-shuffle",
    "ffd",
    "bfd",
    "bfd-extra",
    "seamless",
    "buckets",
    "length-buckets",
    "decompose",
)
ONCE = ("np.argsort", "np.take")
"""What mixing does many times, in parts that fit in a cache: here once, of as many random 64-bit numbers."""
LENGTH = 2048
BLOCK = 1 << 20


def cases(scale: Scale) -> Cases:
    """Curves by documents, row length and distinct lengths; each strategy; a comparison of all."""
    slow: dict[str, str] = {}
    for documents in scale.of((1e3, 1e4), (1e4, 1e5, 1e6, 1e7, 1e8), (1e4, 1e5, 1e6, 1e7, 1e8)):
        lengths = draw(int(documents))
        contestants = [_packtool(name, how, lengths, LENGTH) for name, how in OURS.items()]
        contestants.append(_index_only(int(documents)))
        contestants += [
            Contestant(name, program("plan", peer, lengths, LENGTH), peer=peer)
            for name, peer in PEERS.items()
            if name not in slow
        ]
        results = yield Case("documents", {"documents": int(documents), "sequence_length": LENGTH}, contestants)
        for each in results or ():
            usual = min((run["wall"] for run in each.runs), default=0)  # the first run may wait for a cold disk
            if each.missing or (each.contestant in PEERS and 10 * usual > scale.limit):
                slow[each.contestant] = each.missing or ""
    for documents in scale.of((1e4,), (1e6, 1e7), (1e6, 1e7)):
        lengths, facts = draw(int(documents)), {"documents": int(documents)}
        yield Case("stages", facts, [Contestant("packtool", program("stages", "plan", lengths, LENGTH))])
        yield Case("once", facts, [_packtool(name, name, lengths, LENGTH) for name in ONCE])
    documents = int(scale.of(1e4, 1e6, 1e7))
    for length in (512, 2048, 8192, 32768):
        ours = [_packtool(name, how, draw(documents), length) for name, how in OURS.items()]
        yield Case("row length", {"documents": documents, "sequence_length": length}, ours)
    for distinct in (16, 256, 4096, 16384):
        ours = [_packtool(name, how, draw(documents, distinct), 16384) for name, how in OURS.items()]
        yield Case("distinct lengths", {"documents": documents, "distinct": distinct, "sequence_length": 16384}, ours)
    several = int(scale.of(1e4, 1e7, 1e7))
    ways = [_packtool(f"`{each}`", f"{each} --no-mix-rows", draw(several), LENGTH) for each in STRATEGIES]
    yield Case("strategies", {"documents": several, "sequence_length": LENGTH}, ways)
    store = _lengths_store(several)
    compare = packtool("stats", store, "--compare", "all", "-L", LENGTH, "--json", "-q")
    yield Case("stats --compare all", {"documents": several}, [Contestant("packtool", compare)])


def draw(documents: int, distinct: int = 0) -> Path:
    """A file of lengths: lognormal, or as many different ones as asked for, evenly spread."""
    path = WORK / f"lengths-{documents}-{distinct}.npy"
    if not path.exists():
        WORK.mkdir(exist_ok=True)
        lengths = np.lib.format.open_memmap(path, "w+", np.uint32, (documents,))
        for seed, first in enumerate(range(0, documents, BLOCK)):
            part = lengths[first : first + BLOCK]
            if distinct:
                step = 16384 // distinct
                part[:] = (1 + np.random.default_rng(seed).integers(0, distinct, len(part))) * step
            else:
                part[:] = lognormal_lengths(len(part), seed=seed)
    return path


def _packtool(name: str, how: str, lengths: Path, length: int) -> Contestant:
    return Contestant(name, lambda python: [str(python), "-m", "benchmarks.plan", how, str(lengths), str(length)])


def _index_only(documents: int) -> Contestant:
    options = ("--strategy", "bfd", "-L", LENGTH, "--index-only", "--no-mix-rows", "--overwrite", "-q")
    # A store of 1e8 documents has 82 GB of tokens: they are holes, and none is read.
    command = packtool("pack", _lengths_store(documents), "-o", OUT / "index", *options)
    return Contestant(INDEX, command)


def _lengths_store(documents: int) -> Path:
    path = WORK / f"lengths-{documents}"
    return path if (path / "manifest.json").exists() else lengths_only(fresh(path), np.load(draw(documents)))


def once(name: str, count: int) -> dict[str, float]:
    """In a process of its own: sort random numbers, or take them at random places."""
    numbers = np.random.default_rng(0).integers(0, count, count)
    wall, cpu = time.perf_counter(), time.process_time()
    if name == "np.argsort":
        np.argsort(numbers)
    else:
        np.take(numbers, numbers)
    return {"plan_wall": time.perf_counter() - wall, "plan_cpu": time.process_time() - cpu}


def planned(how: str, lengths: Any, length: int) -> dict[str, float]:
    """In a process of its own: plan once, and say what it cost and what it lost."""
    from packtool.planning.packing import PackOptions, plan

    strategy, _, unmixed = how.partition(" ")
    options = PackOptions(
        sequence_length=None if "buckets" in strategy else length,
        mix_rows=False if unmixed and strategy in ("ffd", "bfd") else None,
    )
    wall, cpu = time.perf_counter(), time.process_time()
    plans = plan(strategy, lengths, options)
    seconds = {"plan_wall": time.perf_counter() - wall, "plan_cpu": time.process_time() - cpu}
    return {**seconds, "rows": sum(each.rows for each in plans)}


if __name__ == "__main__":
    given, drawn = sys.argv[1], np.load(sys.argv[2])
    print(json.dumps(once(given, len(drawn)) if given in ONCE else planned(given, drawn, int(sys.argv[3]))))
