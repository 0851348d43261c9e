"""What choosing documents adds to planning: two stores as they are, and as a mixture of as many documents.

    python -m benchmarks.mixture [--documents 2000000] [--rounds 3]

Both stores have half of the documents, of lognormal length (median 400 tokens); the mixture takes half an epoch of one
and one and a half of the other. CPU seconds in one process, from opened stores to plans (`bfd`, rows of 8,192);
reading the lengths is part of both. The median of the rounds, which take turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import WORK, lognormal_lengths, save, table
from packtool import packing
from packtool.commands.choose import choose
from packtool.options.pack import PackArguments
from packtool.plan import offsets_of
from packtool.storage import manifest as manifests
from packtool.storage.manifest import StoreManifest, TokenizerInfo, TokenShard
from packtool.storage.token_store import Corpus, write_shard


def store(path: Path, lengths: np.ndarray) -> Path:
    """A store of documents of these lengths, all of one token."""
    if not (path / manifests.MANIFEST).exists():
        path.mkdir(parents=True, exist_ok=True)
        tokens, offsets = write_shard(path, 0, np.zeros(int(lengths.sum()), np.uint16), offsets_of(lengths), 100)
        manifest = StoreManifest(
            options={},
            inputs=[],
            tokenizer=TokenizerInfo("0" * 64, 100, 0, "<eos>"),
            dtype="<u2",
            counts={"documents": len(lengths), "tokens": int(lengths.sum())},
            shards=[TokenShard(tokens, offsets, 0)],
        )
        manifests.write(path, manifest)
    return path


def seconds(stores: Sequence[Path], mix: Sequence[str]) -> tuple[float, int]:
    """CPU seconds from stores to plans, and the documents planned."""
    options = PackArguments(list(stores), "nowhere", strategy="bfd", sequence_length=8192, mix=mix)
    corpus = Corpus(list(stores))
    began = time.process_time()
    choose(corpus, options)
    packing.plan("bfd", corpus.lengths(), options)
    return time.process_time() - began, corpus.documents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    half = given.documents // 2
    stores = [
        store(WORK / f"mixture-{name}-{half}", lognormal_lengths(half, seed=seed))
        for seed, name in enumerate(("web", "wiki"))
    ]
    mix = [f"{stores[0].name}=0.5", f"{stores[1].name}=1.5"]
    plain, mixed = [], []
    for _ in range(given.rounds):
        plain.append(seconds(stores, []))
        mixed.append(seconds(stores, mix))
    before, after = (statistics.median(each for each, _ in runs) for runs in (plain, mixed))
    save("mixture", {"documents": given.documents, "plain": plain, "mixed": mixed, "ratio": after / before})
    table(
        ["documents", "as they are", "as a mixture", "times"],
        [[f"{plain[0][1]:,} and {mixed[0][1]:,}", f"{before:.2f} s", f"{after:.2f} s", after / before]],
    )


if __name__ == "__main__":
    main()
