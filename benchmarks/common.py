"""What the benchmarks share: where they keep things, what they are run on, the machine, tables."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

WORK = Path(__file__).parent / "work"
"""Corpora, stores and environments that benchmarks build; may be deleted at any time."""
RESULTS = Path(__file__).parent / "results"
"""What was measured, as JSON."""


@dataclass(frozen=True)
class Run:
    """One finished process: wall and CPU seconds (children included), peak memory in MB, what it printed."""

    wall: float
    cpu: float
    peak_mb: float
    output: str


def run(command: Sequence[str | Path], *, env: dict[str, str] | None = None) -> Run:
    """Run a command in a process of its own; its failure is ours. Modules are compiled, as where they are installed."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(env or {})},
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed with {process.returncode}: {' '.join(map(str, command))}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


def packtool(*arguments: str | Path) -> list[str]:
    """The command line of packtool, in this Python."""
    return [sys.executable, "-m", "packtool", *map(str, arguments)]


def rounds(count: int, *actions: Callable[[], Run]) -> list[list[Run]]:
    """Each action `count` times, in turn, so that a slow minute of the machine touches all of them alike."""
    results: list[list[Run]] = [[] for _ in actions]
    for _ in range(count):
        for action, found in zip(actions, results, strict=True):
            found.append(action())
    return results


def median(runs: Sequence[Run], figure: str) -> float:
    return statistics.median(getattr(run, figure) for run in runs)


def fresh(path: Path) -> Path:
    """An empty directory."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def provenance() -> dict[str, Any]:
    """What figures depend on: machine, versions, commit, date."""
    processor = [line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    packages = ("packtool", "numpy", "pyarrow", "tokenizers", "gigatoken")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no", "--", "packtool", "benchmarks/*.py")),
        "machine": {
            "processor": processor[0] if processor else platform.processor(),
            "cores": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            "system": f"{platform.system()} {platform.release()}",
            "load_average": os.getloadavg()[0],
        },
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in packages},
    }


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def save(name: str, figures: dict[str, Any]) -> None:
    """Write figures, with the machine they were measured on, to `results/NAME.json`."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({**provenance(), **figures}, indent=2) + "\n")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table, ready for docs/benchmarks.md."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for number, row in enumerate(cells):
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def lognormal_lengths(count: int, *, median: float = 400, sigma: float = 1.2, least: int = 2, seed: int = 0) -> Any:
    """Document lengths with EOS, uint32."""
    drawn = np.random.default_rng(seed).lognormal(np.log(median), sigma, count)
    return np.maximum(least, drawn).astype(np.uint32)


def synthetic_store(path: Path, lengths: Any, *, per_shard: int = 50_000, vocab_size: int = 50_257) -> Path:
    """A token store of random tokens, in documents of these lengths; kept from one run to the next."""
    from packtool.formats import manifest as manifests
    from packtool.formats.names import token_dtype
    from packtool.formats.schema import StoreManifest, TokenizerInfo, TokenShard
    from packtool.formats.token_store import write_shard
    from packtool.planning.plan import offsets_of

    if (path / manifests.MANIFEST).exists():
        return path
    fresh(path)
    rng = np.random.default_rng(1)
    shards = []
    for number, first in enumerate(range(0, len(lengths), per_shard)):
        offsets = offsets_of(lengths[first : first + per_shard].astype(np.int64))
        tokens = rng.integers(1, vocab_size, offsets[-1], dtype=np.uint16)
        tokens[offsets[1:] - 1] = 0
        shards.append(TokenShard(*write_shard(path, number, tokens, offsets, vocab_size), first))
    manifests.write(
        path,
        StoreManifest(
            options={},
            inputs=[],
            tokenizer=TokenizerInfo(sha256="0" * 64, vocab_size=vocab_size, eos_id=0, eos_token="<eos>"),
            dtype=token_dtype(vocab_size).str,
            counts={"documents": len(lengths), "tokens": int(lengths.sum(dtype=np.int64))},
            shards=shards,
        ),
    )
    return path
