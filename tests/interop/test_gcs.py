"""Datasets at gs://, with the client of Google's store; SeaweedFS answers, by a proxy that translates."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.google_store import google_store
from tests.interop.object_store import (
    LARGE,
    PACK,
    PUBLIC,
    Client,
    good,
    left,
    packtool,
    put,
    require_kept_when_given_up,
    require_same,
)
from tests.interop.test_s3_uploads import killed, records

pytestmark = pytest.mark.interop
BASE = f"gs://{PUBLIC}/way"


@pytest.fixture(scope="module")
def google(endpoint, tmp_path_factory):
    Client(endpoint).bucket(PUBLIC)
    with google_store(endpoint, tmp_path_factory.mktemp("google")) as found:
        yield found


@pytest.fixture
def env(google, tmp_path):
    return {**google, "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_the_whole_way_has_the_bytes_of_the_local_one(store, env, local, monkeypatch, tmp_path):
    import packtool as here

    put(store, local / "data", f"{PUBLIC}/way/data")
    good("tokenize", f"{BASE}/data", "-o", f"{BASE}/tokens", "--quiet", env=env)
    require_same(store, f"{PUBLIC}/way/tokens", local / "tokens")
    good("pack", f"{BASE}/tokens", "-o", f"{BASE}/packed", *PACK, env=env)
    require_same(store, f"{PUBLIC}/way/packed", local / "packed")
    good("shuffle", f"{BASE}/packed", "-o", f"{BASE}/shuffled", "--epoch", "1", "--quiet", env=env)
    require_same(store, f"{PUBLIC}/way/shuffled", local / "shuffled")
    good("pack", f"{BASE}/tokens", "-o", f"{BASE}/shuffled", *PACK, "--overwrite", env=env)
    require_same(store, f"{PUBLIC}/way/shuffled", local / "packed")
    for name in ("tokens", "packed"):
        assert good("verify", f"{BASE}/{name}", env=env).stdout.startswith(f"{BASE}/{name}: nothing wrong in ")
    assert left(env) == []
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    for fetch in ("shards", "rows"):
        found = here.open(f"{BASE}/packed", cache=tmp_path / fetch, fetch=fetch)
        assert (found[:] == here.open(local / "packed")[:]).all()


def test_an_interrupted_run_goes_on_with_what_the_store_has(store, env, local):
    url = f"gs://{PUBLIC}/half/packed"
    good("pack", local / "tokens", "-o", url, *PACK, env=env)
    manifest = store.get(f"{PUBLIC}/half/packed/manifest.json")
    assert packtool("pack", local / "tokens", "-o", url, *PACK, env=env).returncode == 2
    shutil.rmtree(env["XDG_CACHE_HOME"], ignore_errors=True)
    assert "was finished already" in good("pack", local / "tokens", "-o", url, *PACK[:-1], "--resume", env=env).stdout
    assert store.get(f"{PUBLIC}/half/packed/manifest.json") == manifest


def test_a_run_that_is_killed_half_way_is_no_dataset_and_goes_on(store, env, large):
    """Its input is in the store, too, and larger than what may lie here; without what the first run left here."""
    path = f"{PUBLIC}/killed/packed"
    put(store, large / "tokens", f"{PUBLIC}/killed/tokens")
    words = ("pack", f"gs://{PUBLIC}/killed/tokens", "-o", f"gs://{path}", *LARGE, "--staging-limit", "24MB", "-j", "2")
    killed(words, env, lambda: len(records(store.names(path))) >= 3)
    half = store.names(path)
    finished = records(half)
    assert "manifest.json" not in half
    assert len(finished) < len(list((large / "packed").glob("tokens-*.npy")))
    written = {number: store.fs.get_file_info(f"{path}/tokens-{number:05d}.npy").mtime_ns for number in finished}
    assert packtool("verify", f"gs://{path}", env=env).returncode == 1
    shutil.rmtree(env["XDG_CACHE_HOME"])
    good(*words, "--resume", env=env)
    require_same(store, path, large / "packed")
    again = {number: store.fs.get_file_info(f"{path}/tokens-{number:05d}.npy").mtime_ns for number in finished}
    assert again == written, "what the store has and knows is not sent again"
    assert left(env) == []


def test_an_upload_that_is_given_up_leaves_what_was_there(store, env, monkeypatch, tmp_path):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    require_kept_when_given_up(store, f"gs://{PUBLIC}/given-up", tmp_path / "file")


def test_of_two_machines_that_write_one_prefix_at_the_same_time_one_goes_on(store, env, local, tmp_path):
    """The store has conditional writes, so that one of them marks the output."""
    url = f"gs://{PUBLIC}/both/shuffled"

    def shuffled(epoch):
        words = ("shuffle", local / "packed", "-o", url, "--epoch", epoch, "--staging", tmp_path / epoch, "--quiet")
        return packtool(*words, env=env)

    with ThreadPoolExecutor() as both:
        done = sorted(both.map(shuffled, ("3", "4")), key=lambda each: each.returncode)
    assert [each.returncode for each in done] in ([0, 1], [0, 2]), done
    assert f"{url}: " in done[1].stderr
    good("verify", url, env=env)
    assert not [name for name in store.names(f"{PUBLIC}/both/shuffled") if name.startswith("unfinished")]


def test_a_refusal_is_one_clear_line(env, local):
    done = packtool("pack", local / "tokens", "-o", "gs://corpus/denied", *PACK, env=env)
    assert done.returncode == 1
    assert done.stderr.startswith("packtool: error[store-denied]: gs://corpus/denied: "), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
