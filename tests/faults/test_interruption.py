"""Killed, out of disk space or met by an I/O error at any call that changes a file: resumed, the bytes are the same.

In short form a few calls of each command; the slow tests and ``python -m tests.faults.test_interruption`` do all.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import (
    BROKEN,
    FULL,
    KILL,
    LEFT,
    Faults,
    commands,
    contents,
    disturb,
    faults,
    require_whole,
    scratch,
    undisturbed,
)

NAMES = [
    *["tokenize", "tokenize, ids", "pack", "pack, mixture", "pack, two passes", "pack, planned on disk"],
    *["pack, index only", "materialize", "shuffle", "shuffle, two passes", "run", "export"],
]
SHARED = [
    "tokenize",
    "pack",
    "pack, mixture",
    "pack, two passes",
    "pack, planned on disk",
    "shuffle",
    "shuffle, two passes",
]
"""Commands that tasks may share."""
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


@pytest.mark.parametrize("how", FAULTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_few_calls(server: Faults, place: Path, name: str, how: str) -> None:
    assert sum(every(server, place, name, FAULTS[how]).values()) >= FEW


@pytest.mark.slow
@pytest.mark.parametrize("how", FAULTS)
@pytest.mark.parametrize("name", NAMES)
def test_every_call(server: Faults, place: Path, name: str, how: str) -> None:
    every(server, place, name, FAULTS[how], step=1)


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
    for outcome in outcomes:
        assert "Traceback" not in outcome.stderr, outcome
        assert outcome.status in (0, 1, 2), outcome
        assert outcome.status != 1 or "error[output-in-use]" in outcome.stderr, outcome
    require_whole(out)
    assert not (out / "unfinished").exists()
    if any(outcome.status == 0 for outcome in outcomes):
        whole, _ = undisturbed(server, given[name], place / "out" / "alone")
        assert contents(out) == whole
    return tuple(sorted(outcome.status for outcome in outcomes))


def test_a_few_races(server: Faults, place: Path) -> None:
    for number in range(6):
        race(server, place, number)


@pytest.mark.slow
def test_a_hundred_races(server: Faults, place: Path) -> None:
    for number in range(100):
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


def test_killed_at_a_few_moments(server: Faults, place: Path) -> None:
    assert sum(at_random(server, place, 6).values()) == 6


@pytest.mark.slow
def test_killed_at_random_moments(server: Faults, place: Path) -> None:
    assert at_random(server, place, 200)[-9] > 100


def in_tasks(server: Faults, place: Path, count: int) -> Counter[int]:
    """Disturb a task or the merge after it, merge what there is, and do it again; how often it ended how."""
    chance = random.Random(count)
    given, out = commands(place / "in"), place / "out" / "shared"
    wholes: dict[str, tuple[dict[str, bytes], list[int]]] = {}
    ends: Counter[int] = Counter()
    for number in range(count):
        name = SHARED[number % len(SHARED)]
        steps = [[*given[name], "-o", str(out), "--task", f"{part}/2"] for part in (1, 2)]
        steps.append(["merge", str(out), "-q"])
        if name not in wholes:
            shutil.rmtree(out, ignore_errors=True)
            calls = [server.run(step, out.parent).calls for step in steps]
            wholes[name] = contents(out), calls
        whole, calls = wholes[name]
        shutil.rmtree(out, ignore_errors=True)
        victim, how = chance.randrange(3), chance.choice([*FAULTS.values()])
        for step in steps[:victim]:
            assert server.run(step, out.parent).status == 0
        disturbed = server.run(steps[victim], out.parent, at=chance.randrange(calls[victim]), how=how)
        assert disturbed.status in ((-9,) if how == KILL else (0, 1)), disturbed
        early = server.run(steps[2], out.parent)
        assert early.status in (0, 1, 2), (disturbed, early)
        assert (early.status == 0) == (len(early.stderr.strip().splitlines()) == 0), (disturbed, early)
        require_whole(out)
        if early.status:
            for step in steps:
                again = server.run(step, out.parent)
                assert again.status == 0 or "all tasks are done" in again.stderr, (disturbed, early, again)
        made = {each: data for each, data in contents(out).items() if not (how == BROKEN and each.endswith(LEFT))}
        assert made == whole, disturbed
        ends[disturbed.status] += 1
    return ends


def test_a_few_tasks_and_merges(server: Faults, place: Path) -> None:
    assert sum(in_tasks(server, place, 10).values()) == 10


@pytest.mark.parametrize(
    "name",
    ["pack", *(pytest.param(name, marks=pytest.mark.slow) for name in ("pack, two passes", "shuffle, two passes"))],
)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_a_task_left_is_cut(server: Faults, place: Path, name: str, every: bool) -> None:
    """Each file that it left, to nothing, to its half, or by a byte: done again, or one error, and no signal."""
    out = place / "out" / "cut"
    first, second = ([*commands(place / "in")[name], "-o", str(out), "--task", f"{part}/2"] for part in (1, 2))
    merge = ["merge", str(out), "-q"]
    shutil.rmtree(out, ignore_errors=True)
    assert [server.run(words, out.parent).status for words in (first, second, merge)] == [0, 0, 0]
    whole = contents(out)
    shutil.rmtree(out)
    server.run(first, out.parent)
    left = place / "out" / "left"
    shutil.copytree(out, left)
    files = [(each.relative_to(left), each.stat().st_size) for each in sorted(left.rglob("*")) if each.is_file()]
    assert len(files) > 3
    for number, (file, size) in enumerate(files):
        lengths = [0, size // 2, size - 1] if size else []
        for length in lengths if every else lengths[number % 3 :][:1]:
            shutil.rmtree(out)
            shutil.copytree(left, out)
            os.truncate(out / file, length)
            ends = [server.run(words, out.parent) for words in (second, merge, first, merge)]
            for end in ends:
                assert end.status in (0, 1, 2), (file, length, end)
                assert "Traceback" not in end.stderr, (file, length, end)
                assert len(end.stderr.strip().splitlines()) == bool(end.status), (file, length, end)
            require_whole(out)
            assert ends[-1].status or contents(out) == whole, (file, length)
    shutil.rmtree(left)


@pytest.mark.slow
def test_hundreds_of_tasks_and_merges(server: Faults, place: Path) -> None:
    assert in_tasks(server, place, 400)[-9] > 50


def main(step: int) -> None:
    """All of it, with counts: what docs/reliability.md reports."""
    with scratch() as place, faults(place) as server:
        say("random moments", at_random(server, place, 200 // step))
        say("tasks and merges", in_tasks(server, place, 400 // step))
        say("races", Counter(race(server, place, number) for number in range(100 // step)))
        for name in NAMES:
            for how, fault in FAULTS.items():
                say(f"{name}, {how}", every(server, place, name, fault, step=step))


def say(what: str, ends: Counter[Any]) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {what}: {sum(ends.values())} {dict(ends)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
