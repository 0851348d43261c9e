"""Datasets in an object store: SeaweedFS, a server that speaks the protocol of S3, on this machine."""

from __future__ import annotations

import gc
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from packtool.places import transfer
from tests.interop.object_store import KEY, ROOT, SECRET, Client, environment, failing, object_store, packtool

TEXTS = [f"Document {number}: a river with {number % 7} bridges.\nIt runs east." for number in range(3000)]
PACK = ("--strategy", "bfd", "-L", "64", "--shard-tokens", "16384", "--quiet")

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    with object_store(tmp_path_factory.mktemp("store")) as url:
        Client(url).bucket("corpus")
        yield url


@pytest.fixture
def store(endpoint):
    return Client(endpoint)


@pytest.fixture
def env(endpoint, tmp_path):
    return {**environment(endpoint), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The same things, made on local disks."""
    place = tmp_path_factory.mktemp("local")
    lines = [json.dumps({"text": text}) + "\n" for text in TEXTS]
    (place / "data").mkdir()
    (place / "data" / "a.jsonl").write_text("".join(lines[:1500]))
    parquet.write_table(pa.table({"text": TEXTS[1500:2200]}), place / "data" / "b.parquet", row_group_size=100)
    (place / "data" / "c.jsonl.gz").write_bytes(gzip.compress("".join(lines[2200:]).encode()))
    for words in (
        ("tokenize", place / "data", "-o", place / "tokens", "--quiet"),
        ("pack", place / "tokens", "-o", place / "packed", *PACK),
        ("shuffle", place / "packed", "-o", place / "shuffled", "--epoch", "1", "--quiet"),
        ("shuffle", place / "packed", "-o", place / "order", "--epoch", "2", "--order-only", "--quiet"),
        ("export", place / "packed", "-o", place / "exported", "--format", "megatron", "--quiet"),
    ):
        done = packtool(*words, env={})
        assert done.returncode == 0, done.stderr
    return place


def good(*words, env):
    done = packtool(*words, env=env)
    assert done.returncode == 0, done.stderr
    return done


def require_same(store, path, directory):
    """The objects are the files, but for what may differ from run to run."""
    files = sorted(str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file())
    assert store.names(path) == files
    for name in files:
        if name != "run.json":
            assert store.get(f"{path}/{name}") == (directory / name).read_bytes(), name


def put(store, directory, path):
    for file in directory.rglob("*"):
        if file.is_file():
            store.put(f"{path}/{file.relative_to(directory)}", file.read_bytes())


def left(env):
    """What is left in the cache."""
    return [file for file in Path(env["XDG_CACHE_HOME"]).rglob("*") if file.is_file()]


def test_a_bucket_gives_the_store_of_the_local_folder(store, env, local, tmp_path):
    put(store, local / "data", "corpus/data")
    for number, (source, workers) in enumerate((("s3://corpus/data", "1"), ("s3://corpus/data/*", "2"))):
        there = tmp_path / f"remote{number}"
        good("tokenize", source, "-o", there, "--quiet", "--workers", workers, env=env)
        for file in sorted((local / "tokens").iterdir()):
            if file.name != "run.json":
                assert (there / file.name).read_bytes() == file.read_bytes(), file.name
        assert len(np.load(there / "offsets-00000.npy")) > 1


def test_what_is_not_in_the_bucket_is_one_clear_error(env, tmp_path):
    done = packtool("tokenize", "s3://corpus/nothing.jsonl", "-o", tmp_path / "o", "--quiet", env=env)
    assert done.returncode == 1
    assert "s3://corpus/nothing.jsonl" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "o" / "manifest.json").exists()


def test_the_whole_way_in_a_bucket_has_the_bytes_of_the_local_one(store, env, local):
    put(store, local / "data", "corpus/way/data")
    base = "s3://corpus/way"
    done = good("tokenize", f"{base}/data", "-o", f"{base}/tokens", env=env)
    assert f"Wrote {base}/tokens." in done.stdout
    require_same(store, "corpus/way/tokens", local / "tokens")
    good("pack", f"{base}/tokens", "-o", f"{base}/packed", *PACK, env=env)
    require_same(store, "corpus/way/packed", local / "packed")
    good("shuffle", f"{base}/packed", "-o", f"{base}/shuffled", "--epoch", "1", "--quiet", env=env)
    require_same(store, "corpus/way/shuffled", local / "shuffled")
    options = ("--epoch", "2", "--order-only", "--quiet")
    good("shuffle", f"{base}/packed", "-o", f"{base}/order", *options, env=env)
    require_same(store, "corpus/way/order", local / "order")
    good("export", f"{base}/packed", "-o", f"{base}/exported", "--format", "megatron", "--quiet", env=env)
    require_same(store, "corpus/way/exported", local / "exported")
    for name in ("tokens", "packed", "shuffled", "order", "exported"):
        done = good("verify", f"{base}/{name}", env=env)
        assert done.stdout.startswith(f"{base}/{name}: sound."), done.stdout
    good("verify", f"{base}/packed", "--store", f"{base}/tokens", env=env)
    assert left(env) == []
    for words in (
        ("info",),
        ("show", "--row", "3", "--store", f"{base}/tokens"),
        ("stats",),
        ("stats", "--order", f"{base}/order"),
    ):
        remote = good(words[0], f"{base}/packed", *words[1:], "--json", env=env)
        there = [str(word).replace(base, str(local)) for word in words[1:]]
        here = good(words[0], local / "packed", *there, "--json", env=env)
        said = json.loads(remote.stdout)
        assert said["path"] == f"{base}/packed"
        assert remote.stdout.replace(base, str(local)) == here.stdout, words
    both = [good("stats", place, "--compare", "bfd", "-L", "64", "--json", env=env).stdout for place in
            (f"{base}/tokens", local / "tokens")]  # fmt: skip
    told = [re.sub(r'"seconds":[0-9.e-]+', "", each) for each in both]
    assert told[0].replace(base, str(local)) == told[1]
    assert left(env) == []


@pytest.fixture(scope="module")
def there(endpoint, local):
    """What the local commands wrote, in a bucket."""
    store = Client(endpoint)
    for name in ("data", "tokens", "packed", "order"):
        put(store, local / name, f"corpus/there/{name}")
    return "s3://corpus/there"


OPEN = """
import os, sys, numpy as np, packtool
url, cache, size, way = sys.argv[1:5]
dataset = packtool.open(url, cache=cache, cache_bytes=size)
if way == "fork":
    dataset[0]
    if (child := os.fork()):
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
rows = range(len(dataset))
tokens = np.stack([dataset[row] for row in (reversed(rows) if way == "backwards" else rows)])
batch = dataset.batch([len(dataset) - 1, 0, 5])
np.savez(sys.argv[5], tokens=tokens, labels=batch["labels"], epoch=dataset.epoch(3)[:])
os._exit(0)
"""


def reader(url, cache, size, way, out, env):
    command = [sys.executable, "-c", OPEN, url, str(cache), size, way, str(out)]
    return subprocess.Popen(command, env={**os.environ, **env}, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def test_trainers_read_a_bucket_through_a_cache_that_is_bounded_and_shared(there, env, local, tmp_path):
    import packtool as here

    dataset = here.open(local / "packed")
    largest = max(file.stat().st_size for file in (local / "packed").glob("tokens-*.npy"))
    small = str(2 * largest)
    running = {
        way: reader(f"{there}/packed", tmp_path / "small", small, way, tmp_path / f"{way}.npz", env)
        for way in ("forwards", "backwards", "fork")
    }
    for way, each in running.items():
        _, said = each.communicate(timeout=240)
        assert each.returncode == 0, said
        found = np.load(tmp_path / f"{way}.npz")
        expected = dataset[:]
        assert (found["tokens"] == (expected[::-1] if way == "backwards" else expected)).all()
        assert (found["labels"] == dataset.batch([len(dataset) - 1, 0, 5])["labels"]).all()
        assert (found["epoch"] == dataset.epoch(3)[:]).all()
    kept = sum(file.stat().st_size for file in (tmp_path / "small").rglob("*.npy"))
    whole = sum(file.stat().st_size for file in (local / "packed").rglob("*.npy"))
    assert kept <= 2 * largest + 3 * largest < whole


def test_an_order_in_a_bucket_is_followed(there, env, local, monkeypatch, tmp_path):
    import packtool as here

    for name, value in env.items():
        monkeypatch.setenv(name, value)
    opened = here.open(f"{there}/packed", order=f"{there}/order", cache=tmp_path)
    assert (opened[:] == here.open(local / "packed", order=local / "order")[:]).all()
    assert f"{there}/packed, in the order of {there}/order" in repr(opened)


def test_with_wrong_credentials_there_is_one_clear_line_without_them(there, env, endpoint, tmp_path):
    wrong = {**env, **environment(endpoint, secret="Xq9-not-the-right-one")}
    for words in (
        ("tokenize", f"{there}/data", "-o", tmp_path / "a"),
        ("tokenize", Path("docs/index.md"), "--format", "text", "-o", "s3://corpus/denied"),
        ("pack", f"{there}/tokens", "-o", tmp_path / "b", *PACK),
        ("verify", f"{there}/packed"),
        ("info", f"{there}/packed"),
    ):
        done = packtool(*words, env=wrong)
        assert done.returncode == 1, words
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert done.stderr.startswith("packtool: error[store-denied]: s3://corpus/"), done.stderr
        for secret in (KEY, SECRET, "Xq9-not-the-right-one"):
            assert secret not in done.stderr
    found = [path for path in tmp_path.rglob("*") if path.is_file() and b"Xq9-not" in path.read_bytes()]
    assert found == []


def test_credentials_in_a_url_are_refused_and_not_repeated(env, tmp_path):
    for words in (("tokenize", "s3://k3y:s3cret@corpus/a", "-o", tmp_path / "a"), ("info", "s3://k3y:s3cret@corpus/a")):
        done = packtool(*words, env=env)
        assert done.returncode == 2
        assert "error[secret-in-url]: s3://…@corpus: the URL holds credentials" in done.stderr
        assert "s3cret" not in done.stderr
        assert "k3y" not in done.stderr


def test_an_output_that_lies_in_the_bucket_is_kept_resumed_or_replaced(there, store, env, local):
    url = "s3://corpus/twice/tokens"
    store.put("corpus/twice/foreign/notes.txt", b"mine")
    words = ("tokenize", f"{there}/data", "-o", url, "--quiet")
    good(*words, env=env)
    before = store.fs.get_file_info("corpus/twice/tokens/tokens-00000.npy").mtime_ns
    for more, code in ((), "output-not-empty"), (("--resume", "--min-words", "3"), "resume-differs"):
        done = packtool(*words, *more, env=env)
        assert done.returncode == 2
        assert f"error[{code}]: {url}: " in done.stderr
    said = good(*words[:-1], "--resume", env=env).stdout
    assert f"{url} was finished already" in said, said
    assert store.fs.get_file_info("corpus/twice/tokens/tokens-00000.npy").mtime_ns == before
    good(*words, "--overwrite", "--min-words", "3", env=env)
    good(*words, "--overwrite", env=env)
    require_same(store, "corpus/twice/tokens", local / "tokens")
    done = packtool("tokenize", f"{there}/data", "-o", "s3://corpus/twice/foreign", "--overwrite", env=env)
    assert done.returncode == 2
    assert "holds notes.txt, which packtool did not write" in done.stderr
    assert store.names("corpus/twice/foreign") == ["notes.txt"]
    assert left(env) == []


def killed(words, env, when):
    """A command that is killed when something has happened."""
    command = [sys.executable, "-m", "packtool", *map(str, words)]
    running = subprocess.Popen(command, env={**os.environ, **env}, cwd=ROOT, stderr=subprocess.PIPE)
    for _ in range(2400):
        if when():
            break
        assert running.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.communicate()


def test_an_upload_that_is_killed_half_way_is_no_dataset_and_goes_on(there, store, env, endpoint, local):
    url, path = "s3://corpus/killed/packed", "corpus/killed/packed"
    words = ("pack", f"{there}/tokens", "-o", url, *PACK)

    def slow(method, address, number):
        return 0.5 if "/killed/packed/" in address and method in ("PUT", "POST") else None

    with failing(endpoint, slow) as (proxy, _):
        through = {**env, "AWS_ENDPOINT_URL": proxy}
        killed(words, through, lambda: len([n for n in store.names(path) if n.endswith(".npy")]) >= 3)
    half = set(store.names(path))
    assert "manifest.json" not in half
    assert len([name for name in half if name.endswith(".npy")]) < len(list((local / "packed").glob("*.npy")))
    done = packtool("verify", url, env=env)
    assert done.returncode == 1
    assert f"error[no-manifest]: {url}: the output of a packtool command that was interrupted" in done.stderr
    said = packtool("info", url, env=env)
    assert "--resume" in said.stdout, said.stdout + said.stderr
    assert packtool(*words, env=env).returncode == 2
    with failing(endpoint, lambda *_: None) as (proxy, seen):
        good(*words, "--resume", env={**env, "AWS_ENDPOINT_URL": proxy})
    sent = {each.split("?")[0].rpartition("/")[2] for each in seen if each.startswith("PUT ")}
    again = {name for name in half if name.endswith(".npy")} & sent
    assert len(again) <= 4, "what was uploaded is not sent again, but for files whose answer was lost"
    require_same(store, path, local / "packed")
    assert left(env) == []


def test_a_store_that_fails_now_and_then_is_asked_again(there, store, env, endpoint, local):
    def often(method, address, number):
        return 503 if number % 4 == 0 else (500 if number % 9 == 0 else None)

    with failing(endpoint, often) as (proxy, seen):
        through = {**env, "AWS_ENDPOINT_URL": proxy}
        good("tokenize", f"{there}/data", "-o", "s3://corpus/often/tokens", "--quiet", env=through)
        good("pack", "s3://corpus/often/tokens", "-o", "s3://corpus/often/packed", *PACK, env=through)
        good("verify", "s3://corpus/often/packed", env=through)
        assert len(seen) > 60
    require_same(store, "corpus/often/packed", local / "packed")


def test_a_store_that_fails_for_good_is_one_clear_line_and_the_work_is_kept(there, store, env, endpoint, local):
    url = "s3://corpus/broken/packed"

    def broken(method, address, number):
        return 503 if "tokens-00001" in address and "/broken/" in address and method in ("PUT", "POST") else None

    words = ("pack", f"{there}/tokens", "-o", url, *PACK)
    with failing(endpoint, broken) as (proxy, _):
        done = packtool(*words, env={**env, "AWS_ENDPOINT_URL": proxy})
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert f"error[store-unreachable]: {url}/tokens-00001.npy: the store failed" in done.stderr
    assert "with --resume" in done.stderr
    assert "manifest.json" not in store.names("corpus/broken/packed")
    assert "tokens-00001.npy" not in store.names("corpus/broken/packed")
    good(*words, "--resume", env=env)
    require_same(store, "corpus/broken/packed", local / "packed")


def test_a_slow_store_is_waited_for(there, store, env, endpoint, local):
    with failing(endpoint, lambda *_: 0.4) as (proxy, _):
        good(
            "tokenize",
            f"{there}/data",
            "-o",
            "s3://corpus/slow/tokens",
            "--quiet",
            env={**env, "AWS_ENDPOINT_URL": proxy},
        )
    require_same(store, "corpus/slow/tokens", local / "tokens")


def test_objects_are_not_believed_more_than_files(store, env, local, tmp_path):
    put(store, local / "packed", "corpus/hostile/packed")
    whole = store.get("corpus/hostile/packed/tokens-00000.npy")
    url = "s3://corpus/hostile/packed"
    name = f"{url}/tokens-00000.npy"
    for data, code in (
        (whole[:-1] + bytes([whole[-1] ^ 1]), "wrong-checksum"),
        (whole[:-2], "wrong-size"),
        (None, "missing-shard"),
    ):
        if data is None:
            store.fs.delete_file("corpus/hostile/packed/tokens-00000.npy")
        else:
            store.put("corpus/hostile/packed/tokens-00000.npy", data)
        done = packtool("verify", url, env=env)
        assert done.returncode == 1
        assert name in done.stdout + done.stderr
        done = packtool("shuffle", url, "-o", tmp_path / "o", "--epoch", "3", "--overwrite", "--quiet", env=env)
        assert done.returncode == 1
        assert f"error[{code}]: {name}: " in done.stderr, done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_an_upload_that_is_given_up_leaves_what_was_there(store, env, monkeypatch, tmp_path):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    store.put("corpus/given-up", b"before")
    (tmp_path / "file").write_bytes(bytes(3 * transfer.PART_BYTES))

    class AfterOnePart:
        asked = 0

        def is_set(self):
            self.asked += 1
            return self.asked > 2

    with pytest.raises(transfer.StoppedError):
        transfer.upload(tmp_path / "file", "s3://corpus/given-up", AfterOnePart())
    gc.collect()
    assert store.get("corpus/given-up") == b"before"
