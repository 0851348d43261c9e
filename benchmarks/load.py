"""From the page cache to batches of 8 shuffled rows of 2,048 tokens. "DataLoader alone" hands over finished batches."""

from __future__ import annotations

from pathlib import Path

from benchmarks.common import WORK, fresh, lognormal_lengths, synthetic_store
from benchmarks.measure import measure, python
from benchmarks.runner import Case, Cases, Contestant, Scale, program

LENGTH = 2048
READERS = {
    "packtool, ids and labels": ("packtool_ids", "rows", "torch"),
    "packtool, all fields": ("packtool_all", "rows", "torch"),
    "packtool index-only, ids and labels": ("packtool_ids", "index", "torch"),
    "packtool index-only, all fields": ("packtool_all", "index", "torch"),
    "MosaicML streaming": ("mosaicml", "mds", "mosaicml"),
    "litdata": ("litdata", "litdata", "litdata"),
    "datasets": ("datasets", "arrow", "datasets"),
    "Megatron's GPTDataset": ("megatron", "megatron", "megatron"),
}
"""Of each its function in `benchmarks.peers.load`, what it reads, its environment."""
ALONE = {"NumPy, ids": ("numpy", "rows", None), "nanoGPT's get_batch": ("nanogpt", "nanogpt", "torch")}
"""These have no workers."""
HANDED = {"DataLoader alone, all fields": ("ready", "rows", "torch")}
"""What it takes to hand batches over from workers, without making them."""


def cases(scale: Scale) -> Cases:
    """Each number of workers."""
    tokens = int(scale.of(4e6, 3e7, 3e8))
    places = _places(tokens)
    seconds = scale.of(0.5, 2, 5)
    for workers in (0, 1, 2):
        readers = {**READERS, **(HANDED if workers else ALONE)}
        contestants = [
            Contestant(name, program("load", reader, places[what], workers, seconds, LENGTH), peer=peer)
            for name, (reader, what, peer) in readers.items()
        ]
        yield Case("workers", {"workers": workers, "tokens": tokens}, contestants)


def _places(tokens: int) -> dict[str, Path]:
    """The rows, and the store they come from, in what each reader reads; kept from one run to the next."""
    store = synthetic_store(WORK / f"load-{tokens}", lognormal_lengths(tokens // 820))
    places = {name: WORK / f"load-{tokens}-{name}" for name in ("rows", "index")}
    options = ("--strategy", "concat", "-L", str(LENGTH), "--shard-tokens", str(1 << 22), "--overwrite", "-q")
    for name, place in places.items():
        if not (place / "manifest.json").exists():
            only = ["--index-only"] if name == "index" else []
            measure(python("packtool", "pack", store, "-o", fresh(place), *options, *only))
    for name in ("mds", "litdata", "arrow", "nanogpt", "megatron"):
        source = store if name in ("nanogpt", "megatron") else places["rows"]
        places[name] = WORK / f"load-{tokens}-{name}"
        if not places[name].exists():
            part = fresh(places[name].with_suffix(".part"))
            measure(python("packtool", "export", source, "-o", part, "--format", name, "--overwrite", "-q"))
            part.rename(places[name])
    return places
