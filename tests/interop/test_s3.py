"""Datasets in an object store: SeaweedFS, a server on this machine, by the protocols of S3 and of Google's store."""

import json
import re
import shutil

import pytest

from tests.interop.object_store import PACK, good, left, packtool, put, require_same

pytestmark = pytest.mark.interop


def test_what_is_not_in_the_bucket_is_one_clear_error(env, tmp_path):
    done = packtool("tokenize", "s3://corpus/nothing.jsonl", "-o", tmp_path / "o", "--quiet", env=env)
    assert done.returncode == 1
    assert "s3://corpus/nothing.jsonl" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "o" / "manifest.json").exists()


def test_the_whole_way_in_a_bucket_has_the_bytes_of_the_local_one(bucket, store, local, monkeypatch, tmp_path):
    import packtool as here

    base, path, env = bucket.url, bucket.path, bucket.env
    put(store, local / "data", f"{path}/data")
    done = good("tokenize", f"{base}/data/*", "-o", f"{base}/tokens", env=env)
    assert f"Wrote {base}/tokens." in done.stdout
    good("pack", f"{base}/tokens", "-o", f"{base}/packed", *PACK, env=env)
    good("shuffle", f"{base}/packed", "-o", f"{base}/shuffled", "--epoch", "1", "--quiet", env=env)
    good("export", f"{base}/packed", "-o", f"{base}/exported", "--format", "megatron", "--quiet", env=env)
    for name in ("tokens", "packed", "shuffled", "exported"):
        require_same(store, f"{path}/{name}", local / name)
        done = good("verify", f"{base}/{name}", env=env)
        assert done.stdout.startswith(f"{base}/{name}: nothing wrong in "), done.stdout
    good("verify", f"{base}/packed", "--store", f"{base}/tokens", env=env)
    for words in (("info",), ("show", "--row", "3", "--store", f"{base}/tokens"), ("stats",)):
        remote = good(words[0], f"{base}/packed", *words[1:], "--json", env=env)
        there = [str(word).replace(base, str(local)) for word in words[1:]]
        at_home = good(words[0], local / "packed", *there, "--json", env=env)
        said = json.loads(remote.stdout)
        assert said["path"] == f"{base}/packed"
        assert remote.stdout.replace(base, str(local)) == at_home.stdout, words
    both = [good("stats", place, "--compare", "bfd", "-L", "64", "--json", env=env).stdout for place in
            (f"{base}/tokens", local / "tokens")]  # fmt: skip
    told = [re.sub(r'"\w*seconds":[0-9.e-]+', "", each) for each in both]
    assert told[0].replace(base, str(local)) == told[1]
    assert left(env) == []
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    for fetch in ("shards", "rows"):
        found = here.open(f"{base}/packed", cache=tmp_path / fetch, fetch=fetch)
        assert (found[:] == here.open(local / "packed")[:]).all()


def test_an_output_that_lies_in_the_bucket_is_kept_resumed_or_replaced(bucket, store, local):
    url, path, env = f"{bucket.url}/twice", f"{bucket.path}/twice", bucket.env
    store.put(f"{path}/foreign/notes.txt", b"mine")
    words = ("tokenize", local / "data", "-o", f"{url}/tokens", "--quiet")
    good(*words, env=env)
    before = store.fs.get_file_info(f"{path}/tokens/tokens-00000-000.npy").mtime_ns
    for more, code in ((), "output-not-empty"), (("--resume", "--min-words", "3"), "resume-differs"):
        done = packtool(*words, *more, env=env)
        assert done.returncode == 2
        assert f"error[{code}]: {url}/tokens: " in done.stderr
    shutil.rmtree(env["XDG_CACHE_HOME"], ignore_errors=True)
    said = good(*words[:-1], "--resume", env=env).stdout
    assert f"{url}/tokens was finished already" in said, said
    assert store.fs.get_file_info(f"{path}/tokens/tokens-00000-000.npy").mtime_ns == before
    good(*words, "--overwrite", "--min-words", "3", env=env)
    good(*words, "--overwrite", env=env)
    require_same(store, f"{path}/tokens", local / "tokens")
    done = packtool("tokenize", local / "data", "-o", f"{url}/foreign", "--overwrite", env=env)
    assert done.returncode == 2
    assert "holds notes.txt, which packtool did not write" in done.stderr
    assert store.names(f"{path}/foreign") == ["notes.txt"]
    assert left(env) == []
