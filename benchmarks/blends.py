"""Blends: the shares that a rule gives for the same weights, and what a blend costs to lay out and to read.

    python -m benchmarks.blends        (in an environment with PyTorch)

Rules of others are written anew, to deal the same weights: Megatron-LM's helper (each sample from the source that is
furthest behind), levanter's (blocks of 2,048: weight x block cut to whole numbers, the rest to the largest, in random
order), grain's (weights as multiples of a hundredth of the smallest, cut to whole numbers, then dealt in closed form).
A run of a billion rows is laid out with twenty sources and ten ramps. Reading is measured from the page cache, through
the loader, as a training loop does without workers: batches of a blend, and as many batches of its sources, each by a
loader of its own, in turn. Below the loader, one call for each batch: what reading only as far as the next batch costs.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.common import lognormal_lengths, save, table
from packtool.blending.dealing import Dealing
from packtool.blending.schedule import Schedule, Stage
from packtool.planning.plan import I64

SAMPLES = 409_600
LARGE = 10**9
STRETCH = 512
LEVANTER_BLOCK = 2048
ROWS, LENGTH = (8, 32, 128, 256), 2048
READ, ROUNDS = 20_480, 9
WEIGHTS: dict[str, list[float]] = {
    "0.7, 0.3": [0.7, 0.3],
    "eight from 0.4 to 0.0003": [0.4, 0.3, 0.15, 0.1, 0.04, 0.009, 0.0007, 0.0003],
    "0.7, and thirty of 0.01": [0.7] + [0.01] * 30,
    "forty, each 0.8 of the one before": [0.8**number for number in range(40)],
}


def packtool(shares: Sequence[float], samples: int) -> I64:
    """The source of each sample, as packtool deals."""
    names = tuple(f"{number:02}" for number in range(len(shares)))
    stage = Stage(0, {name: Fraction(str(share)) for name, share in zip(names, shares, strict=True)})
    return Dealing(Schedule(names, samples, (stage,), {}, frozenset())).locate(np.arange(samples))[0]


def megatron(shares: Sequence[float], samples: int) -> I64:
    """Each sample from the source whose count is furthest below its share of those so far."""
    weights, counts = np.array(shares), np.zeros(len(shares))
    out = np.empty(samples, np.int64)
    for sample in range(samples):
        out[sample] = chosen = int(np.argmax(weights * max(sample, 1) - counts))
        counts[chosen] += 1
    return out


def levanter(shares: Sequence[float], samples: int) -> I64:
    """The same whole numbers in every block, in an order drawn anew for each."""
    counts = (np.array(shares) * LEVANTER_BLOCK).astype(np.int64)
    counts[np.argmax(counts)] += LEVANTER_BLOCK - counts.sum()
    block, rng = np.repeat(np.arange(len(shares)), counts), np.random.default_rng(0)
    return np.concatenate([rng.permutation(block) for _ in range(-(-samples // LEVANTER_BLOCK))])[:samples]


def grain(shares: Sequence[float], samples: int) -> I64:
    """Of the first n samples ceil(n p / P) to the first source, and of those that are left likewise to the others."""
    whole = [int(share * 100 / min(shares)) for share in shares]
    left, before = np.arange(samples + 1), []
    for number, part in enumerate(whole):
        before.append(-(-left * part // sum(whole[number:])))
        left = left - before[-1]
    return np.argmax(np.diff(np.array(before), axis=1), axis=0)


RULES: dict[str, Callable[[Sequence[float], int], I64]] = {
    "packtool": packtool,
    "Megatron-LM": megatron,
    "levanter": levanter,
    "grain": grain,
}


def shares_of(rule: Callable[[Sequence[float], int], I64], weights: Sequence[float]) -> dict[str, Any]:
    """How far the rows of each source are from its share, at the end and in any stretch."""
    shares = [weight / sum(weights) for weight in weights]
    source = rule(shares, SAMPLES)
    counts = np.bincount(source, minlength=len(shares))
    passed = np.cumsum([source == number for number in range(len(shares))], axis=1)
    wanted = np.array(shares)
    held = passed[:, STRETCH:] - passed[:, :-STRETCH]
    return {
        "rows off": float(np.abs(counts - wanted * SAMPLES).max()),
        "share off": float(np.abs(counts / SAMPLES / wanted - 1).max()),
        "never read": int(np.count_nonzero(counts == 0)),
        "off in a stretch": float(np.abs(held - STRETCH * wanted[:, None]).max()),
    }


def laid_out() -> dict[str, float]:
    """What it takes to lay out a billion rows of twenty sources in ten ramps."""
    rng, names = np.random.default_rng(0), [f"{number:02}" for number in range(20)]
    stages = []
    for number in range(11):
        weights = {name: Fraction(1 + int(1000 * rng.random() ** 4)) for name in names}
        first = max(0, number * LARGE // 10 - LARGE // 20)
        stages.append(Stage(first, weights, first + LARGE // 10 if number else None))
    began = time.process_time()
    Dealing(Schedule(tuple(names), LARGE, tuple(stages), {}, frozenset()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rows": LARGE, "CPU s": time.process_time() - began, "peak MB": peak}


def reading(place: Path) -> list[dict[str, Any]]:
    """Million tokens a CPU second: a blend and its sources, by loaders; and each by a call for every batch."""
    import packtool as tool
    from packtool.reading.stream import Stream
    from packtool.torch import Loader

    weights = {"web": 0.5, "code": 0.25, "wiki": 0.15, "chat": 0.1}
    for number, name in enumerate(weights):
        texts = lognormal_lengths(20_000, median=400, sigma=1.2, seed=number)
        corpus = [{"text": "word " * int(length)} for length in texts]
        tool.tokenize(corpus, place / f"{name}-store")
        tool.pack(place / f"{name}-store", place / name, strategy="bfd", sequence_length=LENGTH)
    sources: Any = {name: {"path": str(place / name), "seed": 1} for name in weights}
    blend = tool.Blend(sources, [{"weights": weights}], rows=10_000_000)
    shares = {"blend": 1.0, **weights}
    paths: dict[str, Any] = {"blend": blend, **{name: place / name for name in weights}}
    found = []
    for rows in ROWS:
        steps = {name: round(READ / rows * share) for name, share in shares.items()}
        loaders = {name: Loader(path, batch_size=rows, **_endless(name)) for name, path in paths.items()}
        ways = {"loader": {name: iter(loader) for name, loader in loaders.items()}}
        streams = {name: Stream(path, **_endless(name)) for name, path in paths.items()}
        ways["call"] = {name: _consecutive(stream, rows) for name, stream in streams.items()}
        took: dict[str, list[float]] = {}
        for _ in range(1 + ROUNDS):
            for way, batches in ways.items():
                times = {name: _cpu(each, steps[name]) for name, each in batches.items()}
                took.setdefault(f"blend, {way}", []).append(times.pop("blend"))
                took.setdefault(f"sources, {way}", []).append(sum(times.values()))
        read = {"blend": steps["blend"], "sources": sum(steps[name] for name in weights)}
        figures: dict[str, Any] = {"rows": rows}
        for name, times_taken in took.items():  # the first round opens files
            tokens = read[name.split(",")[0]] * rows * LENGTH / 1e6
            figures[name] = tokens / statistics.median(times_taken[1:])
        found.append(figures)
    return found


def _endless(name: str) -> dict[str, int]:
    """Options for more epochs than are read; a blend says itself how long it is."""
    return {} if name == "blend" else {"epochs": 1000, "seed": 1}


def _consecutive(stream: Any, rows: int) -> Iterator[Any]:
    """Read one batch after another, each by a call of its own."""
    for first in count(0, rows):
        yield stream.batch(stream.addresses(first, first + rows))


def _cpu(batches: Iterator[Any], steps: int) -> float:
    began = time.process_time()
    for _ in islice(batches, steps):
        pass
    return time.process_time() - began


def main() -> None:
    large = laid_out()
    found = [
        {"weights": name, "rule": rule, **shares_of(deal, weights)}
        for name, weights in WEIGHTS.items()
        for rule, deal in RULES.items()
    ]
    with TemporaryDirectory() as place:
        read = reading(Path(place))
    save("blends", {"samples": SAMPLES, "shares": found, "laid out": large, "reading": read})
    table(list(found[0]), [list(row.values()) for row in found])
    print(large, *read, sep="\n")


if __name__ == "__main__":
    main()
