"""Reading from an object store: a server that speaks the protocol of S3, on this machine."""

import gzip
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

ROOT = Path(__file__).parents[2]
TEXTS = [f"Document {number}: a river with {number % 7} bridges.\nIt runs east." for number in range(3000)]

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def server():
    """Variables of the environment that lead the AWS client to a server of our own, with an empty bucket `corpus`."""
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", "moto"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [made.stdout.decode().strip(), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, running)
        _put(f"{url}/corpus", b"")
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "y",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    finally:
        running.terminate()
        running.wait()


def _wait(url, running):
    for _ in range(300):
        assert running.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the server does not answer")


def _put(url, data):
    request = urllib.request.Request(url, data, {"Content-Type": "application/octet-stream"}, method="PUT")
    urllib.request.urlopen(request, timeout=30).close()


def tokenize(source, output, server, *more):
    command = [sys.executable, "-m", "packtool", "tokenize", source, "-o", output, "--quiet", *more]
    return subprocess.run(
        command, check=False, env={**os.environ, **server}, cwd=ROOT, capture_output=True, text=True, timeout=120
    )


def test_a_bucket_gives_the_store_of_the_local_folder(server, tmp_path):
    corpus = tmp_path / "data"
    corpus.mkdir()
    lines = [json.dumps({"text": text}) + "\n" for text in TEXTS]
    (corpus / "a.jsonl").write_text("".join(lines[:1500]))
    parquet.write_table(pa.table({"text": TEXTS[1500:2200]}), corpus / "b.parquet", row_group_size=100)
    (corpus / "c.jsonl.gz").write_bytes(gzip.compress("".join(lines[2200:]).encode()))
    for file in corpus.iterdir():
        _put(f"{server['AWS_ENDPOINT_URL']}/corpus/data/{file.name}", file.read_bytes())

    local = tokenize(str(corpus), tmp_path / "local", server)
    assert local.returncode == 0, local.stderr
    for number, (source, workers) in enumerate((("s3://corpus/data", "1"), ("s3://corpus/data/*", "2"))):
        there = tmp_path / f"remote{number}"
        done = tokenize(source, there, server, "--workers", workers)
        assert done.returncode == 0, done.stderr
        for file in sorted((tmp_path / "local").iterdir()):
            if file.name != "run.json":
                assert (there / file.name).read_bytes() == file.read_bytes(), file.name
        assert len(np.load(there / "offsets-00000.npy")) > 1


def test_what_is_not_in_the_bucket_is_one_clear_error(server, tmp_path):
    done = tokenize("s3://corpus/nothing.jsonl", tmp_path / "o", server)
    assert done.returncode == 1
    assert "s3://corpus/nothing.jsonl" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "o" / "manifest.json").exists()
