"""Commands that write to an object store, killed at random moments while bodies change on their way: resumed, the
objects are the files of an undisturbed run in a directory.
"""

import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import packtool
from packtool.errors import DataError
from tests.faults.harness import Faults, commands, faults, scratch, undisturbed
from tests.places.s3_server import Bucket

NAMES = [
    *["tokenize", "tokenize, ids", "pack", "pack, two passes", "materialize", "shuffle, two passes", "export"],
    *["import", "run"],
]
URL = "s3://bucket/made"

pytestmark = pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and cc")


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as made:
        yield made


def disturbed(bucket: Bucket, server: Faults, place: Path, count: int, seed: int) -> Counter[int]:
    """Kill commands, each in turn, and change some bodies, which the store does not notice; how they ended."""
    chance, given, ends = random.Random(seed), commands(place / "in"), Counter[int]()
    known: dict[str, tuple[dict[str, bytes], float]] = {}
    bucket.checks = False
    for number in range(count):
        name = NAMES[number % len(NAMES)]
        staging = ["--staging", str(place / "staging")]
        if name not in known:
            whole, _ = undisturbed(server, given[name], place / "out" / "local")
            begun = time.perf_counter()
            assert server.run([*given[name], "-o", f"{URL}/timed", *staging], place / "out").status == 0
            known[name] = whole, time.perf_counter() - begun
        whole, seconds = known[name]
        bucket.objects.clear()
        shutil.rmtree(place / "staging", ignore_errors=True)
        output = ["-o", f"{URL}/{number}", *staging]
        bucket.damage = [_damaged(chance) if chance.random() < 0.2 else lambda data: data for _ in range(500)]
        end = server.run([*given[name], *output], place / "out", after=chance.uniform(0, seconds))
        bucket.damage = []
        assert end.status in (0, 1, -9), end
        for key in bucket.names(f"made/{number}"):
            if key.endswith("manifest.json"):
                made = f"{URL}/{number}/{key}".rpartition("/")[0]
                try:
                    assert packtool.verify(made, store=_stores(place, name)).problems == []
                except DataError as error:  # the manifest changed on its way, and the run was killed before it looked
                    if error.code != "bad-manifest":
                        raise
        if number % 3 == 1:
            shutil.rmtree(place / "staging", ignore_errors=True)  # as on another machine
        how = [] if name == "run" else ["--overwrite" if number % 5 == 4 else "--resume"]
        again = server.run([*given[name], *output, *how], place / "out")
        # Its marker may have changed on its way; its partitions were in the staging directory.
        if "marker is damaged" in again.stderr or "damaged-scratch" in again.stderr:
            again = server.run([*given[name], *output, "--overwrite"], place / "out")
        assert again.status == 0, (name, end, again)
        found = {each: bucket.get(f"made/{number}/{each}") for each in bucket.names(f"made/{number}")}
        assert {each: data for each, data in found.items() if not each.endswith("run.json")} == whole, (
            name,
            end,
            again,
        )
        ends[end.status] += 1
    return ends


def _damaged(chance: random.Random):  # type: ignore[no-untyped-def]
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[chance.randrange(len(changed))] ^= 1
        return bytes(changed)

    return change


def _stores(place: Path, name: str) -> list[Path]:
    return [place / "in" / "store"] if name == "pack, index only" else []


@pytest.mark.parametrize(
    ("count", "seed", "killed"), [(len(NAMES), 1, 0), pytest.param(200, 2, 51, marks=pytest.mark.slow)]
)
def test_killed_at_some_moments(bucket: Bucket, place: Path, count: int, seed: int, killed: int) -> None:
    with faults(place) as server:
        ends = disturbed(bucket, server, place, count, seed)
    assert (sum(ends.values()), ends[-9] >= killed) == (count, True)
