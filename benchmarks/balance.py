"""Whether balanced ranks are equally busy, and what balancing costs.

    python -m benchmarks.balance [DIRECTORY …] [--rounds 5]

Lengths are real: source files of this Python, its packages and the directories given, half of the tokens as a document
for each file and half for each directory, which are as long as books. The share of the time that ranks wait, counted in
query-key pairs, as rows come and dealt; and CPU seconds of a rank that loads all fields, without balance and with it.
"""

from __future__ import annotations

import argparse
import statistics
import sysconfig
import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import packtool
from benchmarks.common import WORK, fresh, save, synthetic_store, table
from benchmarks.index_only import lengths_only
from packtool import packing
from packtool.packing import PackOptions
from packtool.plan import I64
from packtool.reading.sampler import GlobalBatches
from packtool.reading.stream import Stream, row_pairs
from packtool.shuffling.balance import PER_HIDDEN, STEP, TURN, dealt_in, least_waiting, pairs_of, waiting

LENGTHS = (2048, 8192, 32_768, 131_072)
RANKS, BATCH, HIDDEN = 64, 512, 4096
TEXT = {".py", ".pyi", ".pyx", ".c", ".h", ".cpp", ".hpp", ".js", ".json", ".md", ".rst", ".txt"}
STEPS, TOKENS = 512, 1 << 25
SAMPLE = 400
"""Files that are tokenized to know how many bytes a token has."""


def real_lengths(directories: Iterable[Path]) -> I64:
    """Tokens of documents: every file, and every directory's files as one, in random order."""
    files = sorted({path for root in directories for path in root.rglob("*") if path.suffix in TEXT and path.is_file()})
    sizes = np.array([path.stat().st_size for path in files])
    generator = np.random.default_rng(0)
    sample = fresh(WORK / "balance-sample")
    for number, at in enumerate(generator.choice(len(files), SAMPLE, replace=False).tolist()):
        (sample / f"{number}.txt").write_text(files[at].read_text(encoding="utf-8", errors="replace"))
    found = packtool.tokenize(sample, fresh(WORK / "balance-store"), format="text", overwrite=True, quiet=True)
    each = sum(path.stat().st_size for path in sample.iterdir()) / found.counts["tokens"]
    together: dict[Path, int] = defaultdict(int)
    for path, size in zip(files, sizes.tolist(), strict=True):
        together[path.parent] += size
    tokens = np.concatenate([sizes, np.array(list(together.values()))]) / each
    lengths: I64 = generator.permutation(tokens.astype(np.int64) + 1)
    return lengths


def dealt(lengths: I64) -> list[dict[str, Any]]:
    """Shares of the time that ranks wait, for each row length that fills a global batch."""
    found = []
    for size in LENGTHS:
        (plan,) = packing.plan("bfd", lengths, PackOptions(sequence_length=size))
        rows = np.random.default_rng(0).permutation(plan.rows)[: min(plan.rows // BATCH, 64) * BATCH]
        if not len(rows):
            continue
        pairs = pairs_of(plan.segments(rows)).reshape(-1, BATCH)
        ways = {way: dealt_in(way, pairs, RANKS, 1 if way == TURN else None) for way in ("", STEP, TURN)}
        for hidden in (0, HIDDEN):
            costs = pairs + PER_HIDDEN * hidden * size
            turns = np.sort(costs, axis=1)[:, RANKS - 1 :: RANKS].sum(axis=1)  # no turns of one row take less
            found.append(
                {
                    "row length": size,
                    "hidden size": hidden,
                    "batches": len(costs),
                    "as dealt": float(waiting(costs, ways[""]).mean()),
                    "step": float(waiting(costs, ways[STEP]).mean()),
                    "least": float(least_waiting(costs, RANKS).mean()),
                    "turns, as dealt": float(waiting(costs, ways[""], TURN).mean()),
                    "turn": float(waiting(costs, ways[TURN], TURN).mean()),
                    "turn, least": float((1 - costs.sum(axis=1) / RANKS / turns).mean()),
                }
            )
    return found


def loading(lengths: I64, rounds: int) -> list[dict[str, Any]]:
    """CPU time of the first rank: to read its rows of a step with all fields, to deal the global batch, to count costs.

    Rows are read from a dataset of `TOKENS`, and dealt for one of `STEPS` global batches, an index whose tokens nobody
    reads: the lengths again and again.
    """
    some = lengths[: int(np.searchsorted(np.cumsum(lengths), TOKENS)) + 1]
    store = synthetic_store(fresh(WORK / "balance-store"), some)
    found = []
    for size in LENGTHS:
        packed, index = fresh(WORK / "balance-packed"), fresh(WORK / "balance-index")
        packtool.pack(store, packed, strategy="bfd", sequence_length=size)
        times = -(-STEPS * BATCH * size // int(lengths.sum()))
        packtool.pack(
            lengths_only(WORK / "balance-lengths", np.tile(lengths, times)),
            index,
            strategy="bfd",
            sequence_length=size,
            index_only=True,
        )
        stream = Stream(index, cache=WORK / "balance-cache")
        rows, began = packtool.open(index).rows, time.process_time()
        row_pairs(rows, np.arange(len(rows)))
        counting = (time.process_time() - began) / len(rows)
        for way, micro in ((STEP, BATCH // RANKS), (TURN, 1)):
            read = [_reading(packed, micro) for _ in range(rounds + 1)][1:]  # the first maps the files
            more = [_choosing(stream, way, micro) - _choosing(stream, None, micro) for _ in range(rounds + 1)][1:]
            load, deal = statistics.median(read) * 1e3, statistics.median(more) * 1e3
            row = {"row length": size, "way": way, "loading, ms": load, "dealing, ms": deal, "share": deal / load}
            found.append({**row, "counting 10 million rows, s": counting * 1e7})
    return found


def _reading(path: Path, micro: int) -> float:
    dataset = packtool.open(path)
    order = np.random.default_rng(0).permutation(len(dataset))[: len(dataset) // micro * micro].reshape(-1, micro)
    began = time.process_time()
    for rows in order[:256]:
        dataset.batch(rows)
    return (time.process_time() - began) / len(order[:256]) * (BATCH // RANKS // micro)


def _choosing(stream: Stream, way: Any, micro: int) -> float:
    batches = GlobalBatches(stream, BATCH, world_size=RANKS, balance=way, micro_batch_size=micro)
    began = time.process_time()
    steps = max(consumed for _, consumed in islice(batches.begin(), STEPS * BATCH // RANKS // micro)) // BATCH
    return (time.process_time() - began) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="directories of sources")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    python = [Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib")]
    lengths = real_lengths([*python, *map(Path, given.paths)])
    shape = {"documents": len(lengths), "tokens": int(lengths.sum()), "median": float(np.median(lengths))}
    shape |= {"longest": int(lengths.max())}
    waits, times = dealt(lengths), loading(lengths, given.rounds)
    save("balance", {"lengths": shape, "ranks": RANKS, "rows": BATCH, "waiting": waits, "loading": times})
    print(shape)
    names = [name for name in waits[0] if name not in ("row length", "hidden size", "batches")]
    percents = [[f"{each[name]:.2%}" for name in names] for each in waits]
    heads = [(each["row length"], each["hidden size"], each["batches"]) for each in waits]
    table(
        ["row length", "hidden size", "batches", *names],
        [[*head, *cells] for head, cells in zip(heads, percents, strict=True)],
    )
    table(list(times[0]), [list(each.values()) for each in times])


if __name__ == "__main__":
    main()
