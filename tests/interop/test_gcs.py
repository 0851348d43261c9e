"""Datasets in Google's object store, as an emulator of it."""

from __future__ import annotations

import shutil

import pytest

from tests.interop.google_store import Client, credentials, environment, google_store
from tests.interop.object_store import LARGE, PACK, good, left, packtool, put, require_kept_when_given_up, require_same
from tests.interop.test_s3_uploads import killed, records

pytestmark = pytest.mark.interop
BASE = "gs://corpus/way"


@pytest.fixture(scope="module")
def google(tmp_path_factory):
    place = tmp_path_factory.mktemp("google")
    with google_store(place) as endpoint:
        yield endpoint, credentials(place)


@pytest.fixture
def env(google, tmp_path):
    return {**environment(*google), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def store(google):
    return Client(google[0])


def test_the_whole_way_has_the_bytes_of_the_local_one(store, env, local, monkeypatch, tmp_path):
    import packtool as here

    put(store, local / "data", "corpus/way/data")
    good("tokenize", f"{BASE}/data", "-o", f"{BASE}/tokens", "--quiet", env=env)
    require_same(store, "corpus/way/tokens", local / "tokens")
    good("pack", f"{BASE}/tokens", "-o", f"{BASE}/packed", *PACK, env=env)
    require_same(store, "corpus/way/packed", local / "packed")
    good("shuffle", f"{BASE}/packed", "-o", f"{BASE}/shuffled", "--epoch", "1", "--quiet", env=env)
    require_same(store, "corpus/way/shuffled", local / "shuffled")
    good("pack", f"{BASE}/tokens", "-o", f"{BASE}/shuffled", *PACK, "--overwrite", env=env)
    require_same(store, "corpus/way/shuffled", local / "packed")
    for name in ("tokens", "packed"):
        assert good("verify", f"{BASE}/{name}", env=env).stdout.startswith(f"{BASE}/{name}: sound.")
    assert left(env) == []
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    for fetch in ("shards", "rows"):
        found = here.open(f"{BASE}/packed", cache=tmp_path / fetch, fetch=fetch)
        assert (found[:] == here.open(local / "packed")[:]).all()


def test_an_interrupted_run_goes_on_with_what_the_store_has(store, env, local):
    url = "gs://corpus/half/packed"
    good("pack", local / "tokens", "-o", url, *PACK, env=env)
    manifest = store.get("corpus/half/packed/manifest.json")
    assert packtool("pack", local / "tokens", "-o", url, *PACK, env=env).returncode == 2
    shutil.rmtree(env["XDG_CACHE_HOME"], ignore_errors=True)
    assert "was finished already" in good("pack", local / "tokens", "-o", url, *PACK[:-1], "--resume", env=env).stdout
    assert store.get("corpus/half/packed/manifest.json") == manifest


def test_a_run_that_is_killed_half_way_is_no_dataset_and_goes_on(store, env, large):
    """Its input is in the store, too, and larger than what may lie here; without what the first run left here."""
    path = "corpus/killed/packed"
    put(store, large / "tokens", "corpus/killed/tokens")
    words = ("pack", "gs://corpus/killed/tokens", "-o", f"gs://{path}", *LARGE, "--staging-limit", "24MB", "-j", "2")
    killed(words, env, lambda: len(records(store.names(path))) >= 3)
    half = store.names(path)
    finished = records(half)
    assert "manifest.json" not in half
    assert len(finished) < len(list((large / "packed").glob("tokens-*.npy")))
    written = {number: store.updated(f"{path}/tokens-{number:05d}.npy") for number in finished}
    assert packtool("verify", f"gs://{path}", env=env).returncode == 1
    shutil.rmtree(env["XDG_CACHE_HOME"])
    good(*words, "--resume", env=env)
    require_same(store, path, large / "packed")
    again = {number: store.updated(f"{path}/tokens-{number:05d}.npy") for number in finished}
    assert again == written, "what the store has and knows is not sent again"
    assert left(env) == []


def test_an_upload_that_is_given_up_leaves_what_was_there(store, env, monkeypatch, tmp_path):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    require_kept_when_given_up(store, "gs://corpus/given-up", tmp_path / "file")


def test_without_credentials_there_is_one_clear_line(env, local):
    words = ("pack", local / "tokens", "-o", "gs://corpus/denied", *PACK)
    done = packtool(*words, env={**env, "GOOGLE_APPLICATION_CREDENTIALS": "", "HOME": env["XDG_CACHE_HOME"]})
    assert done.returncode == 1
    assert done.stderr.startswith("packtool: error[store-denied]: gs://corpus/denied: "), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
