"""Commands that write to a store which fails, dawdles or forgets to answer now and then, killed at random moments.

Resumed, the objects are the files of an undisturbed run in a directory.

``python -m tests.interop.test_s3_random RUNS SEED`` runs more of them, with counts.
"""

import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

import packtool
from tests.faults.harness import Faults, commands, faults, scratch, undisturbed
from tests.faults.test_store import NAMES
from tests.interop.object_store import Client, Fault, environment, failing, object_store

pytestmark = pytest.mark.interop


def at_random(chance: random.Random) -> Fault:
    """Requests that go wrong, one in ten."""

    def fault(method: str, address: str, number: int) -> int | float | None:
        return chance.choice([503, 500, -500, 0.2]) if chance.random() < 0.1 else None

    return fault


def disturbed(store: Client, server: Faults, place: Path, faulty: list[Fault], count: int, seed: int) -> Counter[str]:
    """Disturb commands, each in turn, while requests go through the proxy; how they ended."""
    chance, given, ends = random.Random(seed), commands(place / "in"), Counter[str]()
    known: dict[str, tuple[dict[str, bytes], float]] = {}
    for number in range(count):
        name = NAMES[number % len(NAMES)]
        path, staging = f"corpus/random/{number}", place / "staging"
        output = ["-o", f"s3://{path}", "--staging", str(staging)]
        if name not in known:
            whole, _ = undisturbed(server, given[name], place / "out" / "local")
            begun = time.perf_counter()
            timed = ["-o", f"s3://corpus/random/timed/{number}", "--staging", str(staging)]
            assert server.run([*given[name], *timed], place / "out").status == 0
            known[name] = whole, time.perf_counter() - begun
        whole, seconds = known[name]
        shutil.rmtree(staging, ignore_errors=True)
        faulty[:] = [at_random(random.Random(chance.random()))]
        after = chance.uniform(0, 2 * seconds) if number % 3 else None
        end = server.run([*given[name], *output], place / "out", after=after)
        assert end.status in (0, 1, -9), end
        assert "Traceback" not in end.stderr, end
        faulty.clear()
        for key in store.names(path):
            if key.endswith("manifest.json"):
                assert packtool.verify(f"s3://{path}/{key}".rpartition("/")[0]).problems == []
        if number % 2:
            shutil.rmtree(staging, ignore_errors=True)  # as on another machine
        how = [] if name == "run" else ["--overwrite" if number % 5 == 4 else "--resume"]
        faulty[:] = [at_random(random.Random(chance.random()))]
        late = end.status == -9
        for _ in range(5):
            again = server.run([*given[name], *output, *how], place / "out")
            if late and "error[output-in-use]" in again.stderr:
                # The marker that the killed run was sending arrived when this one had seen none; or its manifest, and
                # --overwrite was given for unfinished work.
                came = ("state.json", "manifest.json")[: 1 + (how == ["--overwrite"])]
                assert [key for key in store.names(path) if key.endswith(came)], (name, end, again)
                late = False
            elif "error[store-unreachable]" not in again.stderr:
                break
            how = how and ["--resume"]
        faulty.clear()
        if "damaged-scratch" in again.stderr:  # its partitions were in the staging directory
            again = server.run([*given[name], *output, "--overwrite"], place / "out")
        assert again.status == 0, (name, end, again)
        found = {each: store.get(f"{path}/{each}") for each in store.names(path) if not each.endswith("run.json")}
        assert found == whole, (name, end, again)
        ends[{0: "went well", 1: "gave up", -9: "killed"}[end.status]] += 1
    return ends


def everything(directory: Path, patch: pytest.MonkeyPatch, endpoint: str, count: int, seed: int) -> Counter[str]:
    """Do so through a proxy before a store."""
    faulty: list[Fault] = []
    with failing(endpoint, lambda *asked: faulty[0](*asked) if faulty else None) as (proxy, _), scratch() as place:
        for name, value in {**environment(proxy), "XDG_CACHE_HOME": str(directory / "cache")}.items():
            patch.setenv(name, value)
        with faults(place) as server:
            return disturbed(Client(endpoint), server, place, faulty, count, seed)


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and cc")
def test_commands_end_well_after_random_faults(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(everything(tmp_path, monkeypatch, endpoint, 2 * len(NAMES), 1).values()) == 2 * len(NAMES)


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as made,
        object_store(Path(made)) as address,
        pytest.MonkeyPatch.context() as patched,
    ):
        Client(address).bucket("corpus")
        counted = everything(Path(made), patched, address, int(sys.argv[1]), int(sys.argv[2]))
        sys.stdout.write(f"{sum(counted.values())} {dict(counted)}\n")
