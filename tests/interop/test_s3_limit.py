"""Inputs in a bucket that are larger than what may lie on local disks."""

import re
import shutil
import time
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from tests.interop.object_store import LARGE, files_below, good, left, packtool, put, require_same
from tests.interop.test_s3_cluster import cluster
from tests.interop.test_s3_uploads import begun, killed, records

pytestmark = pytest.mark.interop

LIMIT = 24_000_000


def held(directory):
    """Bytes of copies of inputs below a directory, which are named by their checksums."""
    return sum(size for name, size in files_below(directory) if re.fullmatch(r"[0-9a-f]{32}(\.partial)?", name))


@contextmanager
def watched(*directories):
    """The most bytes of arrays of inputs that each of these directories ever held, and of partitions in the first."""
    most, ended = dict.fromkeys(directories, 0), Event()
    most["partitions"] = 0

    def watch():
        while not ended.wait(0.005):
            for each in directories:
                most[each] = max(most[each], held(each))
            here = [size for name, size in files_below(directories[0]) if name.endswith(".atoms")]
            most["partitions"] = max(most["partitions"], sum(here))

    thread = Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


@pytest.fixture(scope="module")
def shuffled(large, tmp_path_factory):
    place = tmp_path_factory.mktemp("limit") / "shuffled"
    good("shuffle", large / "packed", "-o", place, "--epoch", "1", "--quiet", env={})
    return place


@pytest.mark.parametrize("finished", [0, 3], ids=["between two passes", "half-way"])
def test_a_run_that_is_killed_goes_on(finished, bucket, store, large, tmp_path):
    """Half-way: without what it left here. What the store has and knows is not sent again."""
    base, stage, path = f"{bucket.url}/killed{finished}", tmp_path / "staging", f"{bucket.path}/killed{finished}"
    put(store, large / "tokens", f"{path}/tokens")
    words = ("pack", f"{base}/tokens", "-o", f"{base}/packed", *LARGE)
    limit = ("--staging", stage, "--staging-limit", str(LIMIT), "--workers", "2")

    def far_enough():
        names = store.names(f"{path}/packed")
        return len(records(names)) >= finished if finished else [each for each in names if each.endswith(".atoms")]

    def times():
        return {each: store.fs.get_file_info(f"{path}/packed/tokens-{each:05d}.npy").mtime_ns for each in known}

    killed((*words, *limit), bucket.env, far_enough)
    half = store.names(f"{path}/packed")
    known = records(half)
    assert "manifest.json" not in half
    assert len(known) < len(list((large / "packed").glob("tokens-*.npy")))
    assert packtool("verify", f"{base}/packed", env=bucket.env).returncode == 1
    written = times()
    if finished:
        shutil.rmtree(stage)
    good(*words, *limit, "--resume", env=bucket.env)
    require_same(store, f"{path}/packed", large / "packed")
    assert times() == written
    assert left({"XDG_CACHE_HOME": str(stage)}) == []


def total(directory):
    return sum(file.stat().st_size for file in directory.glob("*.npy"))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_lies_on_disk_is_bounded_and_the_bytes_are_the_same(workers, store, env, large, shuffled, tmp_path):
    base, stage = f"corpus/limit{workers}", tmp_path / "staging"
    put(store, large / "tokens", f"{base}/tokens")
    assert total(large / "tokens") > 2 * LIMIT
    words = ("--staging", stage, "--staging-limit", str(LIMIT), "--workers", workers, "--quiet")
    with watched(stage) as most:
        good("pack", f"s3://{base}/tokens", "-o", f"s3://{base}/packed", *LARGE, *words, env=env)
        good("shuffle", f"s3://{base}/packed", "-o", f"s3://{base}/shuffled", "--epoch", "1", *words, env=env)
    require_same(store, f"{base}/packed", large / "packed")
    require_same(store, f"{base}/shuffled", shuffled)
    assert 0 < most[stage] <= LIMIT + max(file.stat().st_size for file in (large / "tokens").glob("*.npy")), most
    assert left({"XDG_CACHE_HOME": str(stage)}) == []


def test_workers_fetch_what_they_need_to_disks_of_their_own(store, env, large, shuffled, tmp_path):
    """Also after one of them is killed, with what it had."""
    base, stage = "corpus/limit-cluster", tmp_path / "staging"
    put(store, large / "tokens", f"{base}/tokens")
    own, workers = [tmp_path / f"tmp{number}" for number in range(2)], []
    with cluster(tmp_path, env, workers=workers) as address, watched(stage, *own) as most:
        on = ("--staging", stage, "--staging-limit", str(LIMIT), "--workers", "2", "--scheduler", address, "--quiet")
        words = ("shuffle", f"s3://{base}/packed", "-o", f"s3://{base}/shuffled", "--epoch", "1")
        good("pack", f"s3://{base}/tokens", "-o", f"s3://{base}/packed", *LARGE, *on, env=env)
        good(*words, *on, env=env)
        assert [held(each) for each in own] == [0, 0]
        words = ("pack", f"s3://{base}/tokens", "-o", f"s3://{base}/ordered", *LARGE, "--no-shuffle")
        command = begun((*words, *on), env)
        while not held(own[1]):
            assert command.poll() is None
            time.sleep(0.005)
        workers[1].kill()
        _, said = command.communicate()
        assert command.returncode == 0, said
        assert held(own[0]) == 0
    good("pack", large / "tokens", "-o", tmp_path / "ordered", *LARGE, "--no-shuffle", env={})
    require_same(store, f"{base}/packed", large / "packed")
    require_same(store, f"{base}/shuffled", shuffled)
    require_same(store, f"{base}/ordered", tmp_path / "ordered")
    # What is watched is not read at one moment: a file that goes may be counted beside the one that takes its place.
    largest = max(file.stat().st_size for file in (large / "tokens").glob("*.npy"))
    assert all(0 < most[each] <= LIMIT // 2 + largest for each in own), most
    assert most[stage] <= LIMIT // 2
    assert most["partitions"] == 0, "they go from the workers to the store"
    assert left({"XDG_CACHE_HOME": str(stage)}) == []
