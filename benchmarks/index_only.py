"""Index-only datasets beside those with tokens: what reading costs, and what planning and writing an index does.

Reading is from the page cache, in one process, in batches of random rows; CPU seconds, taken in turn. The corpus of the
second part has real lengths and no tokens: an index is written without reading any.

    python -m benchmarks.index_only [--tokens 3e7] [--documents 1e7] [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import packtool
from benchmarks.common import WORK, fresh, lognormal_lengths, save, synthetic_store, table
from packtool.plan import offsets_of
from packtool.storage import manifest as manifests
from packtool.storage.files import write_array
from packtool.storage.listing import listed
from packtool.storage.manifest import StoreManifest, TokenizerInfo, TokenShard

LENGTH = 2048


def reading(tokens: float, rounds: int) -> list[dict[str, Any]]:
    """Million tokens a CPU second, with and without tokens."""
    store = synthetic_store(WORK / "index-only-store", lognormal_lengths(int(tokens / 820)))
    datasets = {}
    for name in ("tokens", "index"):
        path = fresh(WORK / f"index-only-{name}")
        packtool.pack(store, path, strategy="bfd", sequence_length=LENGTH, index_only=name == "index")
        datasets[name] = packtool.open(path)
    found = []
    for fields in (("input_ids",), ("input_ids", "labels"), None):
        for size in (8, 64):
            order = np.random.default_rng(0).permutation(len(datasets["tokens"]))
            batches = [order[first : first + size] for first in range(0, len(order) - size, size)]
            speeds: dict[str, list[float]] = {name: [] for name in datasets}
            for _ in range(rounds):
                for name, dataset in datasets.items():
                    began = time.process_time()
                    for rows in batches:
                        dataset.batch(rows, **({} if fields is None else {"fields": fields}))  # type: ignore[arg-type]
                    speeds[name].append(len(batches) * size * LENGTH / (time.process_time() - began) / 1e6)
            ratio = statistics.median(b / a for a, b in zip(speeds["tokens"], speeds["index"], strict=True))
            one = {"fields": "all" if fields is None else ", ".join(fields), "rows": size, "index / tokens": ratio}
            found.append({**one, **{name: statistics.median(each) for name, each in speeds.items()}})
    return found


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


def writing(documents: int) -> dict[str, Any]:
    """CPU seconds of planning alone, and of all of `pack --index-only`; the size of the index."""
    lengths = lognormal_lengths(documents, median=487)  # about 1,000 tokens a document
    store = lengths_only(WORK / "index-only-lengths", lengths)
    path = fresh(WORK / "index-only-large")
    run = packtool.pack(store, path, strategy="bfd", sequence_length=LENGTH, index_only=True, mix_rows=False).run
    manifest = manifests.read(path)
    assert isinstance(manifest, manifests.PackedManifest)
    size = sum(file.bytes for file in listed(manifest))
    return {
        "documents": documents,
        "tokens a document": float(lengths.mean()),
        "planned": run["planned"],
        "written": run["written"],
        "index bytes / token bytes": size / (2 * manifest.ledger.output),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=float, default=3e7)
    parser.add_argument("--documents", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    read, written = reading(given.tokens, given.rounds), writing(int(given.documents))
    save("index_only", {"reading": read, "writing": written})
    table(list(read[0]), [list(each.values()) for each in read])
    print(written)


if __name__ == "__main__":
    main()
