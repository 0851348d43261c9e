"""Contestants run in turn, round after round; their output is checked first; the figures go to a JSON file.

A benchmark is a module with a generator `cases(scale)`. It yields a `Case` for every task when the one before is done,
and is sent what was measured: inputs need not lie on the disk together, and who was too slow need not be asked for
more.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.common import WORK, provenance
from benchmarks.measure import FailedError, Sample, TooSlowError, measure

OUT = WORK / "out"
"""Where a contestant writes; empty when it begins."""
LONG = 5
"""What takes more than one part in so many of the limit runs once: it is long enough to be steady."""
QUIET = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


@dataclass(frozen=True)
class Scale:
    """How much is measured: `--quick` proves that everything runs, `bench` is for two cores, `--full` for a night.

    Attributes:
        rounds: at least three, so that there is a median and a spread; one shows whether it runs.
        limit: seconds that a run may take.
        text: a directory of text to use instead of what is installed here.
        peers: whether those take part that need an environment of their own.
    """

    name: str
    rounds: int
    limit: float
    text: Path | None = None
    peers: bool = True

    def of(self, quick: Any, bench: Any, full: Any) -> Any:
        """A size for each."""
        return {"quick": quick, "bench": bench, "full": full}[self.name]


@dataclass(frozen=True)
class Contestant:
    """One who takes part.

    Attributes:
        name: as the page shows it.
        command: its command line from the Python of its environment; it writes below `OUT`.
        peer: its environment in `benchmarks/peers/`, by default that of packtool.
        check: reads `OUT` once, after the first round, and says what it found, such as ``{"lost_tokens": 0}``.
        rounds: fewer than the others, for what is only checked.
        env: more of the environment.
    """

    name: str
    command: Callable[[Path], Sequence[str | Path]]
    peer: str | None = None
    check: Callable[[Sample], Mapping[str, Any]] | None = None
    rounds: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One task for several contestants.

    Attributes:
        name: of the table or curve it belongs to.
        facts: what it is done on, such as ``{"documents": 10_000}``.
    """

    name: str
    facts: Mapping[str, Any]
    contestants: Sequence[Contestant]


@dataclass
class Result:
    """What a contestant took for a case, or why it took no part."""

    case: str
    facts: Mapping[str, Any]
    contestant: str
    runs: list[dict[str, Any]]
    checked: Mapping[str, Any] = field(default_factory=dict)
    missing: str | None = None


Cases = Generator[Case, list[Result] | None, None]


def run(name: str, scale: Scale, results: Path, *, command: str) -> None:
    """Run one benchmark and write `NAME.json`."""
    module = importlib.import_module(f"benchmarks.{name}")
    head, began = {**provenance(), "scale": scale.name, "command": command}, time.perf_counter()
    found: list[Result] = []
    environments: set[str] = set()
    cases, latest = module.cases(scale), None
    while (case := _next(cases, latest)) is not None:
        latest = measured(case, scale)
        found += latest
        environments |= {each.peer for each in case.contestants if each.peer and scale.peers}
    shutil.rmtree(OUT, ignore_errors=True)
    record = {
        **head,
        "seconds": round(time.perf_counter() - began),
        "peers": {peer: _versions(peer) for peer in sorted(environments)},
        "results": [asdict(each) for each in found],
    }
    results.mkdir(parents=True, exist_ok=True)
    (results / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def _next(cases: Cases, latest: list[Result] | None) -> Case | None:
    try:
        return cases.send(latest)
    except StopIteration:
        return None


def measured(case: Case, scale: Scale) -> list[Result]:
    """All contestants of a case, in turn, so that a slow minute of the machine touches all of them alike."""
    found = {each.name: Result(case.name, case.facts, each.name, []) for each in case.contestants}
    print(f"{case.name}: {', '.join(f'{name} {value}' for name, value in case.facts.items())}", flush=True)
    for number in range(scale.rounds):
        for each in case.contestants:
            result = found[each.name]
            if each.peer and not scale.peers:
                result.missing = "not asked for"
            long = any(run["wall"] > scale.limit / LONG for run in result.runs)
            if result.missing or number >= (1 if long else each.rounds or scale.rounds):
                continue
            try:
                sample = _once(each, scale)
            except peers.NotInstallableError as error:
                result.missing = f"not installable here: {error}"
            except (FailedError, TooSlowError) as error:
                result.missing = str(error)
            else:
                if number == 0 and each.check:
                    result.checked = dict(each.check(sample))
                result.runs.append(_figures(sample))
            print(f"  {number + 1} {each.name}: {_line(result)}", flush=True)
    return list(found.values())


def _figures(sample: Sample) -> dict[str, float]:
    """What was measured, and what the command said: its own figures, or the seconds of the stages of packtool."""
    stages = sample.said.get("run", {}) if "schema_version" in sample.said else {}
    said = {} if stages or "schema_version" in sample.said else sample.said
    return {
        **{name: getattr(sample, name) for name in ("wall", "cpu", "peak_mb", "written_mb")},
        **{name: value for name, value in said.items() if isinstance(value, int | float)},
        **{f"{stage}_{kind}": took[kind] for stage, took in stages.items() if isinstance(took, dict) for kind in took},
    }


def _once(each: Contestant, scale: Scale) -> Sample:
    python = peers.environment(each.peer) if each.peer else Path(sys.executable)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    os.sync()
    return measure(each.command(python), limit=scale.limit, env={**QUIET, **each.env})


def _line(result: Result) -> str:
    if result.missing:
        return result.missing
    last = result.runs[-1]
    return ", ".join(f"{key} {value:.4g}" for key, value in {**last, **result.checked}.items() if value is not None)


def median(runs: Sequence[Mapping[str, float]], figure: str) -> float:
    """The median of a figure over rounds."""
    return statistics.median(run[figure] for run in runs)


def packtool(*arguments: object) -> Callable[[Path], list[str]]:
    """The command line of packtool."""
    return lambda python: [str(python), "-m", "packtool", *map(str, arguments)]


def program(module: str, *arguments: object) -> Callable[[Path], list[str]]:
    """The command line of one of the programs in `benchmarks/peers/`."""
    return lambda python: [str(python), "-m", f"benchmarks.peers.{module}", *map(str, arguments)]


def _versions(peer: str) -> dict[str, str]:
    try:
        return peers.versions(peer)
    except peers.NotInstallableError as error:
        return {"": str(error)}
