"""Mixed rows: how alike the segments of a row are. What mixing costs is part of `benchmarks.plan`.

    python -m benchmarks.mix [--seeds 5] [--documents 200000]

Documents of lognormal lengths, and of the lengths of docstrings, functions and files of Python code that is installed
here, are packed best fit, best fit mixed, and first fit in random order: padding, the share of the variance
of log length that lies between rows (lower is better mixed; beside it what random rows have), and the share of rows of
more than two segments with equal lengths but one. Of several seeds: mean, least, most. They draw the lengths, where
these are lognormal, and mixing and random order.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import WORK, lognormal_lengths, save, table

CASES = ((400, 1.2, 2048), (60, 1.2, 2048), (100, 0.8, 512), (400, 1.2, 8192))
"""Median, sigma, sequence length."""
REAL = {"docstrings": 512, "functions": 2048, "files": 8192}
"""Sequence length for each kind of text."""
FILES = 2000
"""Files read of the standard library, and of the packages."""
RIVALS = {
    "bfd": ("bfd", {"mix_rows": False}),
    "bfd, mixed": ("bfd", {"mix_rows": True}),
    "first-fit-shuffle": ("first-fit-shuffle", {}),
}


def quality(name: str, length: int, draws: list[Any]) -> list[dict[str, Any]]:
    """Each way to fill the same rows, over several draws of the lengths."""
    from packtool.planning.metrics.homogeneity import HomogeneityCounts
    from packtool.planning.packing import PackOptions, plan

    found = []
    for who, (strategy, options) in RIVALS.items():
        padding, between, random, alike = [], [], [], []
        for seed, lengths in enumerate(draws):
            (only,) = plan(strategy, lengths, PackOptions(sequence_length=length, seed=seed, **options))
            counts = HomogeneityCounts()
            counts.add(only.segments(np.arange(only.rows)))
            rows = counts.result()
            padding.append(1 - (int(lengths.sum(dtype=np.int64)) - only.eos_omitted) / (only.rows * length))
            between.append(rows.between_rows)
            random.append(rows.random_rows)
            alike.append(rows.equal_but_one)
        found.append(
            {
                "lengths": name,
                "documents": len(draws[0]),
                "sequence_length": length,
                "who": who,
                **_spread("padding", padding),
                **_spread("between_rows", between),
                "random_rows": statistics.mean(random),
                "equal_but_one": statistics.mean(alike),
            }
        )
    return found


def real_lengths() -> dict[str, Any]:
    """Lengths in tokens, EOS included, of docstrings, functions and files of installed Python code."""
    import packtool
    from packtool.formats.token_store import TokenStore

    texts: dict[str, list[str]] = {"docstrings": [], "functions": [], "files": []}
    for top in (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))):
        for path in sorted(top.rglob("*.py"))[:FILES]:
            try:
                source = path.read_text(encoding="utf-8")
                tree = ast.parse(source)
            except (OSError, ValueError, SyntaxError):
                continue
            texts["files"].append(source)
            lines = source.split("\n")
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    texts["docstrings"].append(ast.get_docstring(node) or "")
                    texts["functions"].append("\n".join(lines[node.lineno - 1 : node.end_lineno]))
    found = {}
    for name, each in texts.items():
        WORK.mkdir(exist_ok=True)
        corpus, store = WORK / f"mix-{name}.jsonl", WORK / f"mix-{name}"
        corpus.write_bytes(b"".join(json.dumps({"text": text}).encode() + b"\n" for text in each if text))
        packtool.tokenize(corpus, store, overwrite=True)
        found[name] = TokenStore(store).lengths()
    return found


def _spread(name: str, values: list[float]) -> dict[str, float]:
    return {name: statistics.mean(values), f"{name}_least": min(values), f"{name}_most": max(values)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--documents", type=int, default=200_000)
    options = parser.parse_args()
    seeds = range(options.seeds)
    rows: list[dict[str, Any]] = []
    for median, sigma, length in CASES:
        draws = [
            np.maximum(lognormal_lengths(options.documents, median=median, sigma=sigma, seed=seed), 2) for seed in seeds
        ]
        rows += quality(f"lognormal, median {median}", length, draws)
    for name, lengths in real_lengths().items():
        rows += quality(f"real, {name}", REAL[name], [lengths for _ in seeds])
    save("mix", {"quality": rows})
    table(list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
