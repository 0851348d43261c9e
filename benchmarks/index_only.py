"""Index-only datasets beside those with tokens: what reading costs, and what planning and writing an index does.

`reading` is from the page cache, in one process, batches of random rows, with all fields and with fewer; with PyTorch
installed, through `packtool.torch.Loader`, too. CPU seconds, both datasets in turn, medians of the rounds and of the
ratios of rounds. `beyond` is from disk, with a quarter of the store's bytes as memory where a control group can be made
(else with nothing in the page cache, and readers that ask for nothing): random rows, and rows in random order within
two of the windows, of 1/16 of the dataset, which the store was packed by. `writing` has real lengths and no tokens: an
index is written without reading any; once where documents are many.

    python -m benchmarks.index_only reading [--tokens 3e7] [--rounds 7]
    python -m benchmarks.index_only beyond [--tokens 1e9] [--rounds 5] [--rows 8]
    python -m benchmarks.index_only writing [--documents 1e7 1e8] [--rounds 5]
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import packtool
from benchmarks.common import WORK, fresh, lognormal_lengths, save, synthetic_store, table
from packtool.formats import manifest as manifests
from packtool.formats.files import write_array
from packtool.formats.schema import StoreManifest, TokenizerInfo, TokenShard, listed_files
from packtool.planning.plan import offsets_of

LENGTH = 2048
KINDS = ("tokens", "index")
WINDOWS = 16
ROWS = 8
MANY = 5e7
"""Documents that are packed once: it takes minutes."""
GROUPS = Path("/sys/fs/cgroup")


def packed(name: str, tokens: float, **options: Any) -> tuple[Path, dict[str, Path]]:
    """A store of so many tokens, and its rows, best fit, with tokens and without; kept for runs with as many."""
    name = f"{name}-{tokens:.0f}"
    store = synthetic_store(WORK / f"{name}-store", lognormal_lengths(int(tokens / 820)), per_shard=2_000)
    paths = {kind: WORK / f"{name}-{kind}" for kind in KINDS}
    for kind, path in paths.items():
        if not (path / manifests.MANIFEST).exists():
            indexed = kind == "index"
            sizes = {"sequence_length": LENGTH, "shard_tokens": 1 << 24}
            packtool.pack(store, fresh(path), strategy="bfd", index_only=indexed, **sizes, **options)
    return store, paths


def compared(ways: dict[str, Callable[[], int]], rounds: int) -> dict[str, Any]:
    """Million tokens a CPU second of what reads some rows and says how many, each way in turn."""
    speeds: dict[str, list[float]] = {kind: [] for kind in ways}
    for _ in range(rounds):
        for kind, read in ways.items():
            began = time.process_time()
            rows = read()
            speeds[kind].append(rows * LENGTH / (time.process_time() - began) / 1e6)
    ratios = [index / tokens for tokens, index in zip(*(speeds[kind] for kind in KINDS), strict=True)]
    return {**{kind: statistics.median(speeds[kind]) for kind in KINDS}, "index / tokens": statistics.median(ratios)}


def reading(tokens: float, rounds: int) -> list[dict[str, Any]]:
    """Million tokens a CPU second from the page cache."""
    _, paths = packed("index-only", tokens)
    datasets = {kind: packtool.open(path) for kind, path in paths.items()}
    found = []
    for size in (8, 64):
        order = np.random.default_rng(0).permutation(len(datasets["tokens"]))
        batches = [order[first : first + size] for first in range(0, len(order) - size, size)]

        def batched(kind: str, batches: list[Any] = batches, **options: Any) -> int:
            for rows in batches:
                datasets[kind].batch(rows, **options)
            return sum(map(len, batches))

        for name, options in {
            "all fields": {},
            "ids and labels": {"fields": ("input_ids", "labels")},
            "ids": {"fields": ("input_ids",)},
        }.items():
            ways = {kind: lambda kind=kind, options=options: batched(kind, **options) for kind in KINDS}
            found.append({"reader": f"dataset.batch, {name}", "rows": size, **compared(ways, rounds)})
        if loaders := _loaders(paths, size):
            ways = {
                kind: lambda loader=loader: sum(len(batch["labels"]) for batch in loader)
                for kind, loader in loaders.items()
            }
            found.append({"reader": "Loader, all fields", "rows": size, **compared(ways, rounds)})
    return found


def _loaders(paths: dict[str, Path], size: int) -> dict[str, Any]:
    """PyTorch's view of both; none where it is not installed."""
    try:
        import torch

        from packtool.torch import Loader
    except ImportError:
        return {}
    torch.set_num_threads(1)
    return {kind: Loader(path, batch_size=size) for kind, path in paths.items()}


def beyond(tokens: float, rounds: int, size: int) -> list[dict[str, Any]]:
    """Batches of so many rows, in a control group that has a quarter of the store's bytes, the page cache included."""
    store, paths = packed("index-only-large", tokens, window_tokens=int(tokens / WINDOWS), shuffle=False)
    files = [file for path in (store, *paths.values()) for file in path.rglob("*.npy")]
    ordered = _by_document(packtool.open(paths["index"]))
    found = []
    with memory_limit(int(tokens / 2)) as limited:
        for order, windows in (("random", 1), ("windows", WINDOWS)):
            figures: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in KINDS}
            for number in range(rounds):
                for kind, kept in figures.items():
                    dataset = None
                    gc.collect()  # pages that are mapped stay in the cache
                    for file in files:
                        _drop(file)
                    dataset = packtool.open(paths[kind])
                    batches = (4000 if order == "random" else len(dataset) // WINDOWS) // size
                    numbers = _numbers(ordered, windows, size, seed=number)
                    began, read = time.process_time(), _bytes_read()
                    rows = sum(len(dataset.batch(each)["labels"]) for each in islice(numbers, 2 * batches))
                    cpu, count = time.process_time() - began, rows * LENGTH
                    kept.append((count / cpu / 1e6, (_bytes_read() - read) / count))
            for what, unit in enumerate(("M tokens a CPU second", "bytes read a token")):
                here = {kind: [each[what] for each in kept] for kind, kept in figures.items()}
                ratios = [index / plain for plain, index in zip(here["tokens"], here["index"], strict=True)]
                medians = {kind: statistics.median(values) for kind, values in here.items()}
                ratio = {"index / tokens": statistics.median(ratios)}
                found.append(
                    {"order": order, "figure": unit, **medians, **ratio, "limited": limited, "of the store": tokens}
                )
    return found


@contextmanager
def memory_limit(size: int) -> Iterator[bool]:
    """Hold this process to so much memory, the page cache of what it reads too; False where the system does not let it.

    Control groups of version 1, then of version 2.
    """
    for top, name in ((GROUPS / "memory", "memory.limit_in_bytes"), (GROUPS, "memory.max")):
        group = top / f"packtool-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / name).write_text(str(size))
            (group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            group.rmdir()
            continue
        try:
            yield True
        finally:
            (top / "cgroup.procs").write_text(str(os.getpid()))
            group.rmdir()
        return
    yield False


def _by_document(dataset: Any) -> Any:
    """Numbers of rows in the order of their first documents, so that those of a planned window lie together.

    In stored order each window's rows are in two places: rows of one long document come before all others.
    """
    segments = dataset.rows.segments_of(np.arange(len(dataset)))
    return np.argsort(segments.document[segments.offsets[:-1]], kind="stable")


def _numbers(rows: Any, windows: int, count: int, seed: int) -> Iterator[Any]:
    """Batches of so many rows, all of them once, window by window, the windows in random order and their rows, too."""
    rng = np.random.default_rng(seed)
    size = len(rows) // windows
    for window in rng.permutation(windows).tolist():
        some = rows[window * size : (window + 1) * size]
        yield from np.split(rng.permutation(some)[: size // count * count], size // count)


def _drop(file: Path) -> None:
    with file.open("rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _bytes_read() -> int:
    """What this process has had the system read from disk."""
    facts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(facts["read_bytes"])


def lengths_only(path: Path, lengths: Any, per_shard: int = 1_000_000) -> Path:
    """A store of real offsets, whose files of tokens are holes."""
    fresh(path)
    shards = []
    for number, first in enumerate(range(0, len(lengths), per_shard)):
        offsets = offsets_of(lengths[first : first + per_shard].astype(np.int64))
        name = f"tokens-{number:05d}.npy"
        tokens = write_array(path / name, np.empty(0, np.uint16))
        count = int(offsets[-1])
        with (path / name).open("r+b") as out:
            header = out.read(4096).replace(b"(0,)", f"({count},)".encode())[:4096]
            out.seek(0)
            out.write(header.rstrip(b" \n").ljust(4095) + b"\n")
            out.truncate(4096 + 2 * count)
        tokens = type(tokens)(name, (count,), 4096 + 2 * count, tokens.xxh3_128)
        shards.append(TokenShard(tokens, write_array(path / f"offsets-{number:05d}.npy", offsets), first))
    counts = {"documents": len(lengths), "tokens": int(lengths.sum(dtype=np.int64))}
    info = TokenizerInfo(sha256="0" * 64, vocab_size=50_257, eos_id=0, eos_token="<eos>")
    store = StoreManifest(options={}, inputs=[], tokenizer=info, dtype="<u2", counts=counts, shards=shards)
    manifests.write(path, store)
    return path


def writing(documents: int, rounds: int) -> list[dict[str, Any]]:
    """CPU seconds of planning alone, and of all of `pack --index-only`; the size of the index."""
    lengths = lognormal_lengths(documents, median=487)  # about 1,000 tokens a document
    store = lengths_only(WORK / "index-only-lengths", lengths)
    found = []
    for mix_rows in (True, False):
        runs = []
        for _ in range(rounds):
            path = fresh(WORK / "index-only-packed")
            options = {"strategy": "bfd", "sequence_length": LENGTH, "mix_rows": mix_rows}
            runs.append(packtool.pack(store, path, **options, index_only=True, overwrite=True).run)
        manifest = manifests.read(path)
        assert isinstance(manifest, manifests.PackedManifest)
        planned, written = ([run[what]["cpu"] for run in runs] for what in ("planned", "written"))
        found.append(
            {
                "rows": "mixed" if mix_rows else "as planned",
                "documents": documents,
                "tokens a document": float(lengths.mean()),
                "planned, CPU s": statistics.median(planned),
                "in all, CPU s": statistics.median(written),
                "in all / planned": statistics.median(b / a for a, b in zip(planned, written, strict=True)),
                "index / token bytes": sum(file.bytes for file in listed_files(manifest))
                / (2 * manifest.ledger.output),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("reading", "beyond", "writing"), nargs="?", default="reading")
    parser.add_argument("--tokens", type=float)
    parser.add_argument("--documents", type=float, nargs="+", default=[1e7, 1e8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=ROWS, help="of a batch; other than this, nothing is kept")
    given = parser.parse_args()
    if given.part == "reading":
        found = reading(given.tokens or 3e7, given.rounds)
    elif given.part == "beyond":
        found = beyond(given.tokens or 1e9, given.rounds, given.rows)
    else:
        found = [
            each
            for documents in given.documents
            for each in writing(int(documents), given.rounds if documents < MANY else 1)
        ]
    if given.rows == ROWS:
        save(f"index_only_{given.part}", {"found": found})
    table(list(found[0]), [list(each.values()) for each in found])


if __name__ == "__main__":
    main()
