"""URLs of datasets, and what is refused of them."""

from pathlib import Path

import pytest

import packtool
from packtool.errors import UsageError
from packtool.places.url import dataset_url, require_no_secret
from tests.shell import Shell

SECRETS = (
    "s3://AK:k3y@bucket/a",
    "s3://k3y@bucket/a",
    "s3:/AK:k3y@bucket/a",
    "s3://AK:k3/y+k3y@bucket/a",
    "gs://k3y@bucket/a",
    "http://k3y@host/a.jsonl",
    "https://user:k3y@host:8080/a.jsonl",
    "https://user%3Ak3y@host/a.jsonl",
    "https://user:k3y%40host/a.jsonl",
    "HTTPS://k3y@host/a.jsonl",
    "https://host/a.jsonl?sv=1&sig=k3y",
    "tcp://user:k3y@host:8786",
    "abfs://container:k3y@account/a",
    "abfs://container%3Ak3y@account/a",
    "az://container@account:k3y/a",
    "simplecache::https://user:k3y@host/a.jsonl",
)
NO_SECRETS = (
    "s3://bucket/a@b",
    "s3://bucket/k=1/a?.jsonl",
    "gs://bucket/a",
    "abfs://container@account.dfs.core.windows.net/a",
    "https://host:8080/a@b.jsonl",
    "tcp://[::1]:8786",
    "hf://datasets/org/name@main/a.jsonl",
    "a@b:c/d",
    "C:/a@b",
)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("hf://datasets/a", "datasets can't lie in hf://"),
        ("file:///a", "datasets can't lie in file://"),
        ("s3://bucket", "not the URL of a dataset"),
        ("s3:///a", "not the URL of a dataset"),
        ("s3://bucket/a//b", "not the URL of a dataset"),
        ("s3://bucket/../b", "not the URL of a dataset"),
        ("s3://bucket/a?region=x", "holds ?, #"),
        ("s3://bucket/a*", "holds ?, #"),
        ("s3://bucket/a%2f..", "holds ?, #"),
        ("s3://bucket/a?X-Amz-Signature=k3y", "s3://bucket/a: the URL of a dataset holds ?"),
    ],
)
def test_what_is_not_the_url_of_a_dataset_is_refused(given: str, what: str) -> None:
    with pytest.raises(UsageError) as error:
        dataset_url(given)
    assert error.value.code == "unsupported-store"
    assert what in str(error.value)
    assert "k3y" not in str(error.value)


def test_a_url_with_credentials_is_refused_without_repeating_them() -> None:
    for url in SECRETS:
        with pytest.raises(UsageError, match="holds credentials") as error:
            require_no_secret(url)
        assert "k3y" not in str(error.value)
    for url in NO_SECRETS:
        require_no_secret(url)


@pytest.mark.parametrize("url", SECRETS)
def test_so_it_is_wherever_one_may_be_given(url: str, tmp_path: Path, shell: Shell) -> None:
    """No message has it, and no file."""
    (tmp_path / "run.toml").write_text(f"[tokenize]\ninput = {url!r}\n[pack]\nstrategy = 'bfd'\nsequence-length = 9\n")
    (tmp_path / "blend.toml").write_text(f"[sources]\na = {url!r}\n")
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    out, text = tmp_path / "out", tmp_path / "a.jsonl"
    pack = ("pack", "--strategy", "bfd", "-L", 9, "-o")
    for words in (
        ("tokenize", url, "-o", out),
        ("tokenize", text, "-o", url),
        ("tokenize", text, "-o", out, "--tokenizer", url),
        ("tokenize", text, "-o", out, "--scheduler", url),
        ("tokenize", text, "-o", out, "--staging", url),
        ("tokenize", text, "-o", out, "--tokenizer", packtool.__file__, "--chat-template", url, "--conversations", "m"),
        (*pack, out, url),
        (*pack, url, tmp_path),
        (*pack, out, tmp_path, "--exclude", url),
        (*pack, out, tmp_path, "--holdout-of", url),
        ("shuffle", url, "-o", out),
        ("import", url, "-o", out, "-f", "parquet"),
        ("import", text, "-o", out, "-f", "parquet", "--tokenizer", url),
        ("export", url, "-o", out, "-f", "parquet"),
        ("materialize", tmp_path, "-o", out, "--store", url),
        ("stats", url),
        ("stats", tmp_path / "blend.toml"),
        ("info", url),
        ("verify", url),
        ("verify", tmp_path, "--store", url),
        ("show", url, "--row", 0),
        ("find", url, "a"),
        ("run", tmp_path / "run.toml", "-o", out),
        ("run", tmp_path / "run.toml", "-i", url, "-o", out),
        ("run", url),
    ):
        said = shell.refused(*words, status=2)
        assert "error[secret-in-url]" in said, words
        assert "k3y" not in said, words
    assert not [path for path in tmp_path.rglob("*") if path.is_dir()]
    for read in (packtool.open, lambda given: packtool.Blend({"a": given})):
        with pytest.raises(UsageError, match="holds credentials") as error:
            read(url)
        assert "k3y" not in str(error.value)
