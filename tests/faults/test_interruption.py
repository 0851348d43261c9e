"""Killed, out of disk space or met by an I/O error at any call that changes a file: resumed, the bytes are the same.

In short form a few calls of each command; the slow tests and ``python -m tests.faults.test_interruption`` do all.
"""

import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import (
    BROKEN,
    FULL,
    KILL,
    Faults,
    commands,
    disturb,
    faults,
    require_whole,
    scratch,
    undisturbed,
)
from tests.stores import contents

NAMES = [
    *["tokenize", "tokenize, ids", "pack", "pack, mixture", "pack, two passes", "pack, planned on disk"],
    *["pack, index only", "materialize", "shuffle", "shuffle, two passes", "run", "export", "import"],
]
FAULTS = {"killed": KILL, "full": FULL, "broken": BROKEN}
FEW = 2

pytestmark = pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and cc")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with scratch() as place:
        yield place


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Faults]:
    with faults(place) as server:
        yield server


def every(server: Faults, place: Path, name: str, how: int, step: int | None = None) -> Counter[int]:
    """Disturb a command at every call, or every `step`-th; how often it ended how."""
    out = place / "out" / "made"
    command = commands(place / "in")[name]
    whole, calls = undisturbed(server, command, out)
    ends: Counter[int] = Counter()
    for at in range(0, calls, step or max(1, calls // FEW)):
        ends[disturb(server, command, out, whole, at=at, how=how).status] += 1
    return ends


FORMS = list(product(NAMES, FAULTS))


@pytest.mark.parametrize(
    ("name", "how", "step"),
    [*((*form, None) for form in FORMS[::2]), *(pytest.param(*form, 1, marks=pytest.mark.slow) for form in FORMS)],
)
def test_calls_that_change_a_file(server: Faults, place: Path, name: str, how: str, step: int | None) -> None:
    """A few of them, or every one."""
    assert sum(every(server, place, name, FAULTS[how], step).values()) >= FEW


def race(server: Faults, place: Path, number: int) -> tuple[int, ...]:
    """Two runs on one output at once; how they ended."""
    out = place / "out" / "raced"
    shutil.rmtree(out, ignore_errors=True)
    given = commands(place / "in")
    name = ("tokenize", "pack", "shuffle")[number % 3]
    flags = [[], ["--resume"], ["--overwrite"]]
    first, second = flags[number // 3 % 3], flags[number // 9 % 3]
    if number % 2:
        server.run([*given["pack"], "-o", str(out)], out)  # an older dataset
    outcomes = server.race([[*given[name], "-o", str(out), *first], [*given[name], "-o", str(out), *second]], out)
    codes = ["output-in-use"]
    if {*first, *second} == {"--resume", "--overwrite"}:  # the dataset that one keeps, the other removes
        codes += ["missing-input", "missing-shard", "no-manifest"]
    for outcome in outcomes:
        assert "Traceback" not in outcome.stderr, outcome
        assert outcome.status in (0, 1, 2), outcome
        assert outcome.status != 1 or any(f"error[{each}]" in outcome.stderr for each in codes), outcome
    require_whole(out)
    assert not (out / "unfinished").exists()
    if any(outcome.status == 0 for outcome in outcomes):
        whole, _ = undisturbed(server, given[name], place / "out" / "alone")
        assert contents(out) == whole
    return tuple(sorted(outcome.status for outcome in outcomes))


@pytest.mark.parametrize(
    "numbers",
    [
        (*range(6), 24, 25, 26),  # both with --overwrite in the end
        pytest.param(range(100), marks=pytest.mark.slow),
    ],
)
def test_races(server: Faults, place: Path, numbers: Sequence[int]) -> None:
    for number in numbers:
        race(server, place, number)


def at_random(server: Faults, place: Path, count: int) -> Counter[int]:
    """Kill the process group at random moments, worker processes among them; how often it ended how."""
    chance = random.Random(count)
    given = {name: list(command) for name, command in commands(place / "in").items()}
    given["tokenize"][given["tokenize"].index("--workers") + 1] = "2"
    out = place / "out" / "random"
    ends: Counter[int] = Counter()
    known: dict[str, tuple[dict[str, bytes], float]] = {}
    for number in range(count):
        name = NAMES[number % len(NAMES)]
        if name not in known:
            begun = time.perf_counter()
            whole, _ = undisturbed(server, given[name], out)
            known[name] = whole, time.perf_counter() - begun
        whole, seconds = known[name]
        ends[disturb(server, given[name], out, whole, after=chance.uniform(0, seconds)).status] += 1
    return ends


@pytest.mark.parametrize(("count", "killed"), [(6, 0), pytest.param(200, 101, marks=pytest.mark.slow)])
def test_killed_at_random_moments(server: Faults, place: Path, count: int, killed: int) -> None:
    ends = at_random(server, place, count)
    assert (sum(ends.values()), ends[-9] >= killed) == (count, True)


def main(step: int) -> None:
    """All of it, with counts: what docs/reliability.md reports."""
    with scratch() as place, faults(place) as server:
        say("random moments", at_random(server, place, 200 // step))
        say("races", Counter(race(server, place, number) for number in range(100 // step)))
        for name in NAMES:
            for how, fault in FAULTS.items():
                say(f"{name}, {how}", every(server, place, name, fault, step=step))


def say(what: str, ends: Counter[Any]) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {what}: {sum(ends.values())} {dict(ends)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
