"""From tokens to rows, beside copying as many bytes. Documents have 300 tokens on average, rows 2,048."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import WORK, fresh, lognormal_lengths, synthetic_store
from benchmarks.measure import Sample, measure, python
from benchmarks.runner import OUT, Case, Cases, Contestant, Scale, packtool, program

LENGTH = 2048
MEAN, MEDIAN, SIGMA = 300, 218, 0.8  # lognormal: MEAN = MEDIAN * exp(SIGMA**2 / 2)
IN_MEMORY = "64GiB"


def cases(scale: Scale) -> Cases:
    """Packing a store; shuffling rows, in memory and beyond it; small atoms; copies in memory."""
    tokens = int(scale.of(2e6, 5e8, 2e9))
    lengths = lognormal_lengths(tokens // MEAN, median=MEDIAN, sigma=SIGMA)
    source = synthetic_store(WORK / f"move-{tokens}", lengths)
    facts = {"megabytes": 2 * int(lengths.sum(dtype=np.int64)) / 1e6}
    yield Case(
        "pack",
        facts,
        [
            *_copies(f"{source}/tokens-*"),
            _pack("pack concat", source, "concat"),
            _pack("pack bfd, mixed", source, "bfd"),
            _pack("pack bfd, not mixed", source, "bfd", "--no-mix-rows"),
            _pack(
                "pack concat --index-only", source, "concat", "--index-only", check=partial(_ledger, stores=(source,))
            ),
            _datatrove(source),
        ],
    )
    yield Case(
        "in memory",
        facts,
        [
            _inside("np.copyto, fresh pages", "copy", source, "fresh"),
            _inside("np.copyto, pages in use", "copy", source, "reused"),
            _inside(f"np.take, {MEAN} tokens at random places", "take", source),
            _inside("gather concat", "gather", source, "concat"),
            _inside("gather bfd, segments of 300 tokens", "gather", source, "bfd"),
        ],
    )
    rows = WORK / f"move-rows-{tokens}"
    if not (rows / "manifest.json").exists():
        options = ("--strategy", "concat", "-L", str(LENGTH), "--no-shuffle", "--overwrite", "-q")
        measure(python("packtool", "pack", source, "-o", fresh(rows), *options))
    little = f"{max(16, tokens * 2 // 8 >> 20)}MiB"
    yield Case(
        "shuffle",
        facts,
        [
            *_copies(f"{rows}/*"),
            _shuffle("shuffle rows, in memory", rows, "--memory", IN_MEMORY),
            _shuffle("shuffle rows, an eighth in memory", rows, "--memory", little),
        ],
    )
    small = tokens // 5
    part = synthetic_store(WORK / f"move-{small}", lengths[: small // MEAN])
    few = {"megabytes": 2 * int(lengths[: small // MEAN].sum(dtype=np.int64)) / 1e6}
    rows = WORK / f"move-rows-{small}"
    if not (rows / "manifest.json").exists():
        options = ("--strategy", "concat", "-L", str(LENGTH), "--no-shuffle", "--overwrite", "-q")
        measure(python("packtool", "pack", part, "-o", fresh(rows), *options))
    for atom in (8, 64, 512, 2048):
        atoms = _shuffle("shuffle", rows, "--memory", IN_MEMORY, "-A", atom)
        yield Case("atoms", {**few, "atom": atom}, [*_copies(f"{rows}/*")[1:2], atoms])


def _copies(files: str) -> list[Contestant]:
    def shell(name: str, command: str) -> Contestant:
        return Contestant(name, lambda _: ["sh", "-c", command])

    loop = f'for file in {files}; do dd if="$file" of="{OUT}/$(basename "$file")" bs=16M status=none'
    return [
        shell("cp", f"cp {files} {OUT}/"),
        shell("cp && sync", f"cp {files} {OUT}/ && sync {OUT}/*"),
        shell("dd bs=16M conv=fsync", f"{loop} conv=fsync; done"),
    ]


def _pack(name: str, source: Path, strategy: str, *more: str, **how: Any) -> Contestant:
    options = ("--strategy", strategy, "-L", LENGTH, "--overwrite", "--json", "-q", *more)
    return Contestant(name, packtool("pack", source, "-o", OUT / "rows", *options), **{"check": _ledger, **how})


def _shuffle(name: str, rows: Path, *options: object) -> Contestant:
    command = packtool("shuffle", rows, "-o", OUT / "rows", "--overwrite", "--json", "-q", *options)
    return Contestant(name, command, check=_ledger)


def _ledger(_: Sample, stores: Sequence[Path] = ()) -> Mapping[str, Any]:
    """What `packtool verify`, which reads all of it again, finds; it ends with an error where anything is wrong."""
    given = [word for store in stores for word in ("--store", store)]
    measure(python("packtool", "verify", OUT / "rows", *given, "-q"))
    ledger = json.loads((OUT / "rows" / "manifest.json").read_bytes())["ledger"]
    return {"lost_tokens": ledger["dropped"], "eos_left_out": ledger["eos_omitted"]}


def _datatrove(source: Path) -> Contestant:
    """Its merger on the same tokens, in its own format."""
    folder = WORK / f"{source.name}-datatrove"
    if not folder.exists():
        part = fresh(folder.with_suffix(".part"))
        measure(python("packtool", "export", source, "-o", part, "--format", "datatrove", "--overwrite", "-q"))
        part.rename(folder)

    def lost(_: Sample) -> dict[str, Any]:
        before, after = (sum(file.stat().st_size for file in place.glob("*.ds")) for place in (folder, OUT / "merged"))
        return {"lost_tokens": (before - after) // 2}

    name = f"datatrove's merger, chunks of {LENGTH} tokens"
    return Contestant(name, program("merge", folder, OUT, LENGTH), peer="datatrove", check=lost)


def _inside(name: str, what: str, *arguments: object) -> Contestant:
    return Contestant(name, lambda python: [str(python), "-m", "benchmarks.move", what, *map(str, arguments)])


def gather(source: str, strategy: str) -> dict[str, float]:
    """In a process of its own: make all rows of a plan in memory, in batches as for a file, on one thread."""
    from packtool.formats.token_store import Corpus
    from packtool.planning.packing import PackOptions, plan
    from packtool.planning.shuffling.permutation import permutation
    from packtool.rows.gather import Gatherer, Locator
    from packtool.rows.layout import Layout

    corpus = Corpus([Path(source)])
    (only,) = plan(strategy, corpus.lengths(), PackOptions(sequence_length=LENGTH))
    layout = Layout(only, permutation(only.movable_atoms, seed=42))
    locate = Locator(corpus.shards, corpus.locate)
    gatherer = Gatherer(corpus.shards, locate, dtype=corpus.dtype, pad_id=0, eos_id=0, longest_fill=LENGTH)
    pieces = [layout.segments(first, last) for first, last in layout.steps(0, layout.rows)]
    for shard in corpus.shards:
        np.add.reduce(shard)  # what is mapped is there
    began, cpu = time.perf_counter(), time.process_time()
    size = sum(gatherer(each).nbytes for each in pieces)
    seconds = time.perf_counter() - began
    return {"move_wall": seconds, "move_cpu": time.process_time() - cpu, "move_mb": size / 1e6}


def copy(source: str, pages: str) -> dict[str, float]:
    """In a process of its own: copy all tokens in pieces of 16 MB, each to new pages or all to the same ones."""
    shards = [np.load(file, mmap_mode="r").view(np.uint8) for file in sorted(Path(source).glob("tokens-*.npy"))]
    for shard in shards:
        np.add.reduce(shard)
    piece = 1 << 24
    target = np.ones(piece, np.uint8)
    began, cpu, size = time.perf_counter(), time.process_time(), 0
    for shard in shards:
        for first in range(0, len(shard), piece):
            data = shard[first : first + piece]
            np.copyto(np.empty(len(data), np.uint8) if pages == "fresh" else target[: len(data)], data)
            size += len(data)
    seconds = time.perf_counter() - began
    return {"move_wall": seconds, "move_cpu": time.process_time() - cpu, "move_mb": size / 1e6}


def take(source: str) -> dict[str, float]:
    """In a process of its own: copy equal pieces, as long as documents are on average, from places in random order."""
    shards = [np.load(file, mmap_mode="r") for file in sorted(Path(source).glob("tokens-*.npy"))]
    pieces = np.concatenate([shard[: len(shard) // MEAN * MEAN] for shard in shards]).reshape(-1, MEAN)
    order, at_once = np.random.default_rng(0).permutation(len(pieces)), (1 << 24) // pieces[0].nbytes
    began, cpu = time.perf_counter(), time.process_time()
    for first in range(0, len(order), at_once):
        np.take(pieces, order[first : first + at_once], axis=0)
    seconds = time.perf_counter() - began
    return {"move_wall": seconds, "move_cpu": time.process_time() - cpu, "move_mb": pieces.nbytes / 1e6}


if __name__ == "__main__":
    print(json.dumps({"gather": gather, "copy": copy, "take": take}[sys.argv[1]](*sys.argv[2:])))
