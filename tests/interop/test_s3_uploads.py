"""Outputs that are uploaded while they are written: room, and runs that are killed half-way."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from packtool.engines.local import CLOSING
from tests.interop.object_store import LARGE, ROOT, failing, files_below, good, left, packtool, require_same

pytestmark = pytest.mark.interop


def command(name, large, url):
    """A command that writes many pieces."""
    return ("tokenize", large / "data", "-o", url, "--quiet") if name == "tokens" else (
        "pack", large / "tokens", "-o", url, *LARGE)  # fmt: skip


def begun(words, env):
    line = [sys.executable, "-m", "packtool", *map(str, words)]
    return subprocess.Popen(line, env={**os.environ, **env}, cwd=ROOT, stderr=subprocess.PIPE)


def killed(words, env, when):
    """A command that is killed when something has happened."""
    running = begun(words, env)
    for _ in range(2400):
        if when():
            break
        assert running.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.communicate()


def records(names):
    """What the store says is finished: the numbers of shards or blocks."""
    told = [re.fullmatch(r"unfinished/pieces/(?:block|shard)/(\d+)\.json", name) for name in names]
    return {int(each[1]) for each in told if each is not None}


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "on another machine"])
@pytest.mark.parametrize("name", ["tokens", "packed"])
def test_a_run_that_is_killed_half_way_is_no_dataset_and_goes_on(name, elsewhere, store, env, endpoint, large):
    path = f"corpus/killed/{name}{int(elsewhere)}"
    url = f"s3://{path}"
    words = command(name, large, url)

    def slow(method, address, number):
        return 0.2 if f"/{path}/" in address and method in ("PUT", "POST") else None

    with failing(endpoint, slow) as (proxy, _):
        killed(words, {**env, "AWS_ENDPOINT_URL": proxy}, lambda: len(records(store.names(path))) >= 3)
    half = store.names(path)
    finished = records(half)
    assert "manifest.json" not in half
    assert len([each for each in half if each.endswith(".npy")]) < len(list((large / name).glob("*.npy")))
    done = packtool("verify", url, env=env)
    assert done.returncode == 1
    assert f"error[no-manifest]: {url}: the output of a packtool command that was interrupted" in done.stderr
    said = packtool("info", url, env=env)
    assert "--resume" in said.stdout, said.stdout + said.stderr
    assert packtool(*words, env=env).returncode == 2
    if elsewhere:
        shutil.rmtree(env["XDG_CACHE_HOME"])
    with failing(endpoint, lambda *_: None) as (proxy, seen):
        good(*words, "--resume", env={**env, "AWS_ENDPOINT_URL": proxy})
    sent = [each.split("?")[0].partition(f"/{path}/")[2] for each in seen if each.startswith("PUT ")]
    kind = "tokens-{:05d}-000.npy" if name == "tokens" else "tokens-{:05d}.npy"
    again = [number for number in finished if kind.format(number) in sent]
    assert again == [], "what the store has and knows is not sent again"
    assert len(sent) > 3
    require_same(store, path, large / name)
    assert left(env) == []


@pytest.mark.parametrize("name", ["tokens", "packed"])
def test_local_disks_hold_some_pieces_not_the_output(name, store, env, endpoint, large):
    """Printed, too: the figures of docs/object-stores.md."""
    path = f"corpus/room/{name}"
    with failing(endpoint, lambda method, *_: 0.1 if method in ("PUT", "POST") else None) as (proxy, _):
        running = begun((*command(name, large, f"s3://{path}"), "--workers", "2"), {**env, "AWS_ENDPOINT_URL": proxy})
        most = 0
        while running.poll() is None:
            most = max(most, sum(size for _, size in files_below(env["XDG_CACHE_HOME"])))
            time.sleep(0.01)
        _, said = running.communicate()
        assert running.returncode == 0, said
    require_same(store, path, large / name)
    assert left(env) == []
    whole = sum(file.stat().st_size for file in (large / name).glob("*.npy"))
    pieces = [sum(each.stat().st_size for each in (large / name).glob(f"*-{number:05d}*.npy"))
              for number in range(len(list((large / name).glob("tokens-*.npy"))))]  # fmt: skip
    beside = sum(
        file.stat().st_size for file in (large / name).iterdir() if file.name in ("lengths.npy", "tokenizer.json")
    )
    print(f"\n{name}: {whole:,} bytes in {len(pieces)} pieces, at most {most:,} on local disks")  # noqa: T201
    at_once = 2 + CLOSING
    assert most <= at_once * max(pieces) + beside + (1 << 20)
    assert len(pieces) > at_once or name == "tokens"
