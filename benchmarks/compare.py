"""This tree and a git reference in pairs: did a change cost anything?

Each task runs as a process of its own in both trees, one right after the other, first the one and then the other way
round, so that what slows the machine slows both. The figure is CPU seconds, of the task alone where it can say so; the
ratio of each pair cancels what pairs have in common. Below 1 this tree is faster. Both make their own inputs, from the
same text and lengths, and run in this environment: what differs is packtool alone.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.common import WORK, fresh, lognormal_lengths
from benchmarks.corpus import text, tokenizer
from benchmarks.measure import ROOT, Sample, measure

PLAN = """
import json, sys, time, numpy as np
from packtool.planning.packing import PackOptions, plan
lengths = np.load(sys.argv[1])
began = time.process_time()
plan("bfd", lengths, PackOptions(sequence_length=2048, mix_rows=sys.argv[2] == "mixed"))
print(json.dumps({"cpu": time.process_time() - began}))
"""
READ = """
import json, sys, time, numpy as np, packtool
dataset = packtool.open(sys.argv[1])
rows = np.random.default_rng(0).integers(0, len(dataset), (int(sys.argv[2]), 8))
dataset.batch(rows[0])
began = time.process_time()
for each in rows:
    dataset.batch(each)
print(json.dumps({"cpu": time.process_time() - began}))
"""


@dataclass(frozen=True)
class Tree:
    """A checkout, and where what it makes lies."""

    root: Path
    made: Path

    def run(self, *arguments: object) -> Sample:
        """Run Python with this tree's packtool."""
        command = [sys.executable, *map(str, arguments)]
        return measure(command, cwd=self.root, env={"PYTHONPATH": str(self.root), "OMP_NUM_THREADS": "1"})

    def packtool(self, *arguments: object) -> Sample:
        return self.run("-m", "packtool", *arguments, "-q")


def tasks(tree: Tree, place: Path, *, short: bool) -> dict[str, tuple[object, ...]]:
    """Python's arguments for every task; makes what they read."""
    path, _ = text(3 if short else 30)
    spec, _, eos = tokenizer("Llama 3")
    lengths = place / "lengths.npy"
    np.save(lengths, lognormal_lengths(300_000 if short else 3_000_000))
    store, rows = tree.made / "store", tree.made / "rows"
    repeated = [path] * (10 if short else 5)
    tokenize = ("--tokenizer", spec, "--eos-token", eos, "--workers", 1, "--overwrite")
    tree.packtool("tokenize", *repeated, "-o", store, *tokenize)
    pack = ("pack", store, "--strategy", "bfd", "-L", 512, "--workers", 1, "--overwrite")
    tree.packtool(*pack, "-o", rows)
    command, out = ("-m", "packtool"), tree.made / "out"
    return {
        "start-up": (*command, "--version"),
        "start-up, info": (*command, "info", store),
        "tokenize": (*command, "tokenize", path, "-o", out, *tokenize, "-q"),
        "planning": ("-c", PLAN, lengths, "plain"),
        "planning, mixed": ("-c", PLAN, lengths, "mixed"),
        "gather": (*command, *pack, "-o", out, "-q", "--json"),
        "shuffle": (*command, "shuffle", rows, "-o", out, "--workers", 1, "--overwrite", "-q", "--json"),
        "loader": ("-c", READ, rows, 500 if short else 4000),
    }


def seconds(sample: Sample) -> float:
    """CPU seconds of the task: as a program says, else of the stage that writes, else of the whole process."""
    said = sample.said
    return float(said.get("cpu") or said.get("run", {}).get("written", {}).get("cpu") or sample.cpu)


def compare(ref: str, rounds: int, *, short: bool, names: Sequence[str]) -> None:
    """Print a ratio with its spread for every task, and write them to `work/compare.json`."""
    place = fresh(WORK / "compare")
    checkout = place / "tree"
    subprocess.run(["git", "worktree", "add", "--detach", "--force", checkout, ref], check=True, cwd=ROOT)
    try:
        trees = {"here": Tree(ROOT, fresh(place / "here")), ref: Tree(checkout, fresh(place / "there"))}
        every = {name: tasks(tree, place, short=short) for name, tree in trees.items()}
        chosen = list(names or every["here"])
        if unknown := set(chosen) - set(every["here"]):
            raise SystemExit(f"there is no task {unknown.pop()!r}: choose from {', '.join(every['here'])}")
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in chosen}
        for number in range(rounds):
            for task in chosen:
                took = {}
                for name in random.Random(number).sample(sorted(trees), 2):
                    took[name] = seconds(trees[name].run(*every[name][task]))
                found[task].append((took["here"], took[ref]))
                print(f"  {number + 1} {task}: {took['here']:.3f} s here, {took[ref]:.3f} s at {ref}", flush=True)
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", checkout], check=True, cwd=ROOT)
    print(f"\nCPU seconds here / at {ref}: median of {rounds} pairs, standard error, least and most\n")
    for task, pairs in found.items():
        print(f"{task:16} {described(pairs)}   ({statistics.median(here for here, _ in pairs):.3f} s)")
    (WORK / "compare.json").write_text(json.dumps({"ref": ref, "pairs": found}, indent=1) + "\n")


def described(pairs: Sequence[tuple[float, float]]) -> str:
    """The median ratio, its standard error by resampling, the least and the most.

    >>> described([(1.0, 1.0), (2.1, 2.0), (1.1, 1.0)])
    '1.050 ± 0.036 (1.000–1.100)'
    """
    ratios = [here / there for here, there in pairs]
    draws = np.random.default_rng(0).choice(ratios, (10_000, len(ratios)))
    error = float(np.median(draws, axis=1).std())
    return f"{statistics.median(ratios):.3f} ± {error:.3f} ({min(ratios):.3f}–{max(ratios):.3f})"
