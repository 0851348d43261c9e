"""A pipeline at a URL of a real object store, on a local cluster: the short way, which `make test-slow` runs."""

import pytest

from tests.interop.object_store import good, left, put, require_same

pytestmark = pytest.mark.slow


def test_a_pipeline_at_a_url_on_a_cluster_of_its_own(store, env, local, monkeypatch, tmp_path):
    import packtool as here

    put(store, local / "data", "corpus/run/data")
    (tmp_path / "p.toml").write_text(
        '[tokenize]\n[pack]\nstrategy = "bfd"\nsequence_length = 64\nshard_tokens = 16384\n[shuffle]\nepoch = 1\n'
    )
    url = "s3://corpus/run/out"
    words = ("run", tmp_path / "p.toml", "-i", "s3://corpus/run/data", "-o", url)
    good(*words, "--scheduler", "local", "--workers", "2", env=env)
    for name in ("tokens", "packed", "shuffled"):
        require_same(store, f"corpus/run/out/{name}", local / name)
    assert good(*words, env=env).stdout.count("kept") == 3
    assert good("verify", f"{url}/shuffled", env=env).stdout.startswith(f"{url}/shuffled: nothing wrong in ")
    assert left(env) == []
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    expected = here.open(local / "shuffled")
    for fetch in ("shards", "rows"):
        assert (here.open(f"{url}/shuffled", cache=tmp_path / fetch, fetch=fetch)[:] == expected[:]).all()
