"""A Dask cluster whose workers read and write a bucket: each is a process of its own, which sees no staging directory
where it needs none."""

import os
import shutil
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

from tests.interop.object_store import LARGE, files_below, free_ports, good, left, put, require_same
from tests.interop.peers import running
from tests.interop.test_s3_uploads import begun

pytestmark = pytest.mark.interop

PYTHON = (sys.executable, "-m")
HIDDEN = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')
"""Runs a command that sees an empty directory in place of another."""


@contextmanager
def cluster(tmp_path, env, hidden=None, workers=None):
    """The address of a scheduler with two workers, which are added to a list; a directory that they see empty."""
    (port,) = free_ports(1)
    address = f"tcp://127.0.0.1:{port}"
    worker = (*PYTHON, "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    with ExitStack() as stack:
        scheduler = (*PYTHON, "distributed.cli.dask_scheduler", "--host", address, "--no-dashboard")
        stack.enter_context(running(*scheduler, env=env))
        for number in range(2):
            own = {**env, "XDG_CACHE_HOME": str(tmp_path / f"worker{number}"), "TMPDIR": str(tmp_path / f"tmp{number}")}
            (tmp_path / f"tmp{number}").mkdir()
            local = ("--local-directory", tmp_path / f"tmp{number}")
            hide = () if hidden is None else (*HIDDEN, hidden)
            process = stack.enter_context(running(*hide, *worker, *local, env=own))
            if workers is not None:
                workers.append(process)
        yield address


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="hiding a directory needs root")
def test_workers_tokenize_from_a_bucket_to_a_bucket_and_share_no_directory(store, env, large, tmp_path):
    put(store, large / "data", "corpus/cluster/data")
    (tmp_path / "staging").mkdir()
    with cluster(tmp_path, env, hidden=tmp_path / "staging") as address:
        url = "s3://corpus/cluster/tokens"
        words = ("tokenize", "s3://corpus/cluster/data", "-o", url, "--scheduler", address, "--quiet")
        good(*words, "--staging", tmp_path / "staging", env=env)
    require_same(store, "corpus/cluster/tokens", large / "tokens")
    assert left({"XDG_CACHE_HOME": str(tmp_path / "staging")}) == []


def test_workers_pack_and_shuffle_and_upload_what_they_finish(store, env, large, tmp_path):
    put(store, large / "tokens", "corpus/cluster/store")
    base, stage = "s3://corpus/cluster", ("--staging", tmp_path / "staging")
    most = 0
    with cluster(tmp_path, env) as address:
        on = ("--scheduler", address, *stage)
        words = ("pack", f"{base}/store", "-o", f"{base}/packed", *LARGE, *on)
        command = begun(words, env)
        while command.poll() is None:
            here = [name for name, _ in files_below(tmp_path / "staging" / "outputs") if name.startswith("tokens-")]
            most = max(most, len(here))
            time.sleep(0.01)
        _, said = command.communicate()
        assert command.returncode == 0, said
        require_same(store, "corpus/cluster/packed", large / "packed")
        for way, memory in (("fits", "1GiB"), ("two-passes", "8MiB")):
            words = ("shuffle", f"{base}/packed", "-o", f"{base}/{way}", "--epoch", "1", "--memory", memory, "--quiet")
            good(*words, *on, env=env)
    assert most <= 2, "shards lie in the staging directory only while a worker writes them"
    good("shuffle", large / "packed", "-o", tmp_path / "shuffled", "--epoch", "1", "--quiet", env=env)
    require_same(store, "corpus/cluster/fits", tmp_path / "shuffled")
    require_same(store, "corpus/cluster/two-passes", tmp_path / "shuffled")
    assert not [file for file in (tmp_path / "staging").rglob("*") if file.is_file()]
