"""Stores that fail, refuse, dawdle or lie, and commands that are killed."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from packtool.errors import DataError
from packtool.places.bucket import PART_BYTES
from packtool.places.store import StorePlace
from tests.interop.object_store import KEY, PACK, SECRET, environment, failing, good, packtool, require_same

pytestmark = pytest.mark.interop


def test_with_wrong_credentials_there_is_one_clear_line_without_them(there, env, endpoint, google, local, tmp_path):
    wrong = {**env, **google, **environment(endpoint, secret="Xq9-not-the-right-one")}
    for words in (
        ("tokenize", f"{there}/data", "-o", tmp_path / "a"),
        ("tokenize", Path("docs/index.md"), "--format", "text", "-o", "s3://corpus/denied"),
        ("pack", f"{there}/tokens", "-o", tmp_path / "b", *PACK),
        ("verify", f"{there}/packed"),
        ("info", f"{there}/packed"),
        ("pack", local / "tokens", "-o", "gs://corpus/denied", *PACK),
    ):
        done = packtool(*words, env=wrong)
        assert done.returncode == 1, words
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert re.match(r"packtool: error\[store-denied\]: (s3|gs)://corpus/", done.stderr), done.stderr
        for secret in (KEY, SECRET, "Xq9-not-the-right-one"):
            assert secret not in done.stderr
    found = [path for path in tmp_path.rglob("*") if path.is_file() and b"Xq9-not" in path.read_bytes()]
    assert found == []


def test_no_object_and_no_message_holds_a_secret(there, store, env):
    """Looked for after a run that failed, which says more, and the one that went on."""
    url, path = "s3://corpus/secret/packed", "corpus/secret/packed"
    words = ("pack", f"{there}/tokens", "-o", url, *PACK[:-1], "--verbose")

    def broken(method, address, number):
        return 503 if method == "PUT" and "tokens-00002" in address else None

    with failing(env["AWS_ENDPOINT_URL"], broken) as (proxy, _):
        failed = packtool(*words, env={**env, "AWS_ENDPOINT_URL": proxy})
    assert failed.returncode == 1
    half = {name: store.get(f"{path}/{name}") for name in store.names(path)}
    assert "unfinished/state.json" in half
    done = good(*words, "--resume", env=env)
    whole = {name: store.get(f"{path}/{name}") for name in store.names(path)}
    for secret in (KEY, SECRET):
        assert secret not in failed.stdout + failed.stderr + done.stdout + done.stderr
        assert not [name for name, data in [*half.items(), *whole.items()] if secret.encode() in data]


def test_a_store_that_dawdles_and_fails_now_and_then_is_asked_again(there, store, env, endpoint, local):
    def often(method, address, number):
        if number % 4 == 0:
            return 503
        return 500 if number % 9 == 0 else 0.2

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


def test_of_two_machines_that_write_one_prefix_at_the_same_time_one_goes_on(bucket, store, endpoint, local, tmp_path):
    """Two epochs of a shuffle, begun at once, each with its own staging directory; the store of S3 is slow."""
    url = f"{bucket.url}/both"

    def shuffled(epoch):
        words = ("shuffle", local / "packed", "-o", url, "--epoch", epoch, "--staging", tmp_path / epoch, "--quiet")
        return packtool(*words, env={**bucket.env, "AWS_ENDPOINT_URL": proxy})

    with failing(endpoint, lambda *_: 0.2) as (proxy, _), ThreadPoolExecutor() as both:
        done = sorted(both.map(shuffled, ("3", "4")), key=lambda each: each.returncode)
    # On a machine that is busy one may begin when the other has ended.
    codes = {0: "nothing", 1: "output-in-use", 2: "output-not-empty"}
    assert [done[0].returncode, done[1].returncode > 0] == [0, True]
    assert f"error[{codes[done[1].returncode]}]: {url}: " in done[1].stderr
    assert len(done[1].stderr.strip().splitlines()) == 1
    good("verify", url, env=bucket.env)
    assert not [name for name in store.names(f"{bucket.path}/both") if name.startswith("unfinished")]


def require_given_up(there, endpoint, env):
    done = packtool("verify", f"{there}/packed", env={**env, "AWS_ENDPOINT_URL": endpoint}, timeout=150)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert f"error[store-unreachable]: {there}/packed" in done.stderr


@pytest.mark.parametrize("answered", [0, 4, 9])
def test_verify_gives_up_on_a_store_that_stops_answering(there, env, endpoint, answered):
    with failing(endpoint, lambda *asked: 600.0 if asked[2] > answered else None) as (proxy, seen):
        require_given_up(there, proxy, env)
    assert len(seen) > answered


def test_verify_ends_when_connections_are_refused(there, env, endpoint):
    with failing(endpoint, lambda *_: None) as (proxy, _):
        pass
    require_given_up(there, proxy, env)


def test_an_upload_that_is_given_up_leaves_what_was_there(bucket, store, monkeypatch, tmp_path):
    """It is given up after some parts, since the file is not what was written."""
    for name, value in bucket.env.items():
        monkeypatch.setenv(name, value)
    store.put(f"{bucket.path}/given-up", b"before")
    (tmp_path / "file").write_bytes(bytes(3 * PART_BYTES))
    with pytest.raises(DataError, match="its checksum differs from when it was written"):
        StorePlace(bucket.url).put("given-up", tmp_path / "file", "0" * 32)
    assert store.get(f"{bucket.path}/given-up") == b"before"
