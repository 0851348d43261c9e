"""Two hosts, as network namespaces with a wire between them: one is cut off for a minute while both work.

Needs root, and `ip` of iproute2. Files are shared, as on a cluster.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.engines.test_cluster import PACKED, corpus  # noqa: F401
from tests.interop.peers import running
from tests.stores import contents

CUT_OFF = 60
"""Seconds."""
ONE, TWO = "packtool-one", "packtool-two"
ADDRESS = "tcp://10.77.0.1:8786"

pytestmark = pytest.mark.interop


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def on(host: str, *command: str | Path) -> list[str]:
    """A command as it is run on a host."""
    return ["ip", "netns", "exec", host, *map(str, command)]


@pytest.fixture
def hosts() -> Iterator[None]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and ip")
    try:
        for host in (ONE, TWO):
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
        ip("link", "add", "packtool-a", "netns", ONE, "type", "veth", "peer", "name", "packtool-b", "netns", TWO)
        for host, end, address in ((ONE, "packtool-a", "10.77.0.1/24"), (TWO, "packtool-b", "10.77.0.2/24")):
            ip("-n", host, "address", "add", address, "dev", end)
            ip("-n", host, "link", "set", end, "up")
        yield
    finally:
        for host in (ONE, TWO):
            subprocess.run(["ip", "netns", "delete", host], check=False, capture_output=True)


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("what", ["tokenize", "pack"])
def test_a_host_is_cut_off_for_a_minute(corpus: Path, tmp_path: Path, what: str) -> None:  # noqa: F811
    python = (sys.executable, "-m")
    worker = (*python, "distributed.cli.dask_worker", ADDRESS, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    if what == "tokenize":
        words, finished = ["tokenize", *sorted(corpus.glob("*.jsonl"))], "unfinished/pieces/block/*.json"
        expected = corpus / "expected"
    else:
        shape = ("--strategy", PACKED["strategy"], "-L", PACKED["sequence_length"])
        words = ["pack", corpus / "expected", *shape, "--shard-tokens", PACKED["shard_tokens"]]
        expected, finished = corpus / "packed", "tokens-*.npy"
    out = tmp_path / "out"
    with ExitStack() as stack:
        scheduler = on(ONE, *python, "distributed.cli.dask_scheduler", "--host", ADDRESS, "--no-dashboard")
        stack.enter_context(running(*scheduler))
        for host in (ONE, TWO):
            stack.enter_context(running(*on(host, *worker)))
        command = on(ONE, *python, "packtool", *map(str, words), "-o", out, "--scheduler", ADDRESS)
        run = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        while len(list(out.glob(finished))) < 2:
            assert run.poll() is None, run.communicate()
            time.sleep(0.02)
        ip("-n", TWO, "link", "set", "packtool-b", "down")
        began = time.monotonic()
        while time.monotonic() - began < CUT_OFF and run.poll() is None:
            time.sleep(0.1)
        ip("-n", TWO, "link", "set", "packtool-b", "up")
        _, errors = run.communicate(timeout=120)
    if run.returncode:  # a stop that can be gone on with is as good
        assert "Traceback" not in errors
        assert "--resume" in errors
        subprocess.run([*command[4:-2], "--resume", "-q"], check=True)
    assert contents(out) == contents(expected)
