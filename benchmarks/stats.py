"""`stats --compare all`: every strategy on the lengths of 10 million documents.

    python -m benchmarks.stats [--documents 1e7] [--length 2048]

The store's token files are holes: `stats` reads lengths and no token. CPU seconds are those of the whole command; the
planning of each strategy is part of them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.common import WORK, fresh, lognormal_lengths, packtool, run, save, table


def hollow_store(path: Path, lengths: np.ndarray) -> Path:
    """A token store, in shards as `tokenize` writes them, whose offsets are there and whose tokens are holes."""
    from packtool.plan import offsets_of
    from packtool.storage import manifest as manifests
    from packtool.storage.files import HEADER_BYTES, FileEntry, npy_header, write_array
    from packtool.storage.manifest import StoreManifest, TokenizerInfo, TokenShard
    from packtool.storage.names import shard_file
    from packtool.tokenizing.store_writer import SHARD_TOKENS

    fresh(path)
    shards, first = [], 0
    while first < len(lengths):
        offsets = offsets_of(lengths[first : first + (1 << 20)])  # no document is empty
        count = max(1, int(np.searchsorted(offsets, SHARD_TOKENS, side="right")) - 1)
        offsets = offsets[: count + 1]
        name, tokens = shard_file("tokens", len(shards)), int(offsets[-1])
        size = HEADER_BYTES + 2 * tokens
        with (path / name).open("wb") as file:
            file.write(npy_header(np.dtype("<u2"), (tokens,)))
            file.truncate(size)
        entry = FileEntry(name, (tokens,), size, "0" * 32)
        written = write_array(path / shard_file("offsets", len(shards)), offsets)
        shards.append(TokenShard(entry, written, first))
        first += count
    manifests.write(
        path,
        StoreManifest(
            options={},
            inputs=[],
            tokenizer=TokenizerInfo(sha256="0" * 64, vocab_size=50_257, eos_id=0, eos_token="<eos>"),
            dtype="<u2",
            counts={"documents": len(lengths), "tokens": int(lengths.sum(dtype=np.int64))},
            shards=shards,
        ),
    )
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=float, default=1e7)
    parser.add_argument("--length", type=int, default=2048)
    options = parser.parse_args()

    store = hollow_store(WORK / "hollow", lognormal_lengths(int(options.documents)))
    result = run(packtool("stats", store, "--compare", "all", "-L", str(options.length), "--json", "-q"))
    comparison = json.loads(result.output)["comparison"]
    rows = [
        (entry["strategy"], entry["ledger"]["rows"], timing["planning_seconds"], timing["seconds"])
        for entry, timing in zip(comparison["entries"], comparison["timings"], strict=True)
    ]
    table(("strategy", "rows", "planning CPU s", "with counting CPU s"), rows)
    print(f"\nwhole command: {result.cpu:.1f} CPU s, {result.wall:.1f} s, {result.peak_mb:.0f} MB at its peak")
    save(
        "stats",
        {
            "documents": int(options.documents),
            "sequence_length": options.length,
            "cpu": result.cpu,
            "wall": result.wall,
            "peak_mb": round(result.peak_mb),
            "rows": [dict(zip(("strategy", "rows", "planning", "total"), row, strict=True)) for row in rows],
        },
    )
    for file in store.iterdir():
        file.unlink()
    store.rmdir()


if __name__ == "__main__":
    main()
