"""`hf://` with the real client: the ids of the same files on a disk, and one clear error for whatever fails."""

import gzip
import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import packtool
from packtool.places.hub import answers
from tests.places.hub import Hub, serve
from tests.stores import contents


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("hub") / "corpus"
    (top / "part").mkdir(parents=True)
    lines = [json.dumps({"text": f"document {n} " * (1 + n % 9)}) + "\n" for n in range(3000)]
    (top / "a.jsonl").write_text("".join(lines))
    (top / "part" / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines[:700]).encode()))
    table = pa.table({"text": [f"row {n} " * (1 + n % 5) for n in range(2000)]})
    pq.write_table(table, top / "part" / "c.parquet", row_group_size=500)
    return top


@pytest.fixture
def hub(corpus: Path) -> Iterator[Hub]:
    with serve(corpus) as found:
        yield found


def tokenize(url: str, output: Path, endpoint: str, *more: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, whose client finds the endpoint in its environment."""
    command = [sys.executable, "-m", "packtool", "tokenize", url, "-o", str(output), "-q", "--workers", "1", *more]
    environment = {"HF_ENDPOINT": endpoint, "HF_HOME": str(output.parent / "home"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_repository_is_read_like_a_directory(hub: Hub, corpus: Path, tmp_path: Path) -> None:
    found = tokenize("hf://datasets/lab/corpus", tmp_path / "out", hub.endpoint)
    assert found.stderr == ""
    packtool.tokenize(corpus, tmp_path / "local", workers=1)
    assert contents(tmp_path / "out") == contents(tmp_path / "local")
    assert set(hub.asked) == {"a.jsonl", "b.jsonl.gz", "c.parquet"}


@pytest.mark.parametrize("failure", [503, 0])
def test_what_passes_is_tried_again(hub: Hub, corpus: Path, tmp_path: Path, failure: int) -> None:
    hub.failures.append(failure)
    found = tokenize("hf://datasets/lab/corpus/a.jsonl", tmp_path / "out", hub.endpoint)
    assert (found.returncode, hub.failures) == (0, []), found.stderr
    assert "error[" not in found.stderr  # the client says itself that it tries again
    packtool.tokenize(corpus / "a.jsonl", tmp_path / "local", workers=1)
    assert contents(tmp_path / "out") == contents(tmp_path / "local")


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("hf://datasets/lab/corpus/no.jsonl", "missing-input", "no such file"),
        ("hf://datasets/lab/other", "missing-input", "no such file"),
        # In the words of whatever the hub's package calls with.
        ("hf://datasets/lab/corpus", "store-unreachable", r"the store failed \(.*\[Errno 111\] Connection refused"),
    ],
)
def test_what_is_not_there(hub: Hub, tmp_path: Path, url: str, code: str, message: str) -> None:
    endpoint = hub.endpoint if code == "missing-input" else "http://127.0.0.1:9"
    found = tokenize(url, tmp_path / "out", endpoint)
    assert (found.returncode, found.stderr.count("\n")) == (1, 1), found.stderr
    assert re.search(rf"error\[{code}\]: {url}: {message}", found.stderr)
    assert not (tmp_path / "out").exists()


def test_a_host_that_does_not_answer_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert answers(address)
    assert not answers(address)
    assert not answers("https://nowhere.invalid")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    assert answers("https://nowhere.invalid"), "only the proxy knows"


def test_a_revision_chooses_the_tokenizer(tmp_path: Path) -> None:
    """From the cache of the hub's client: branches of one repository have other tokenizers, or none."""
    data = (Path(packtool.__file__).parent / "assets" / "tokenizer.json").read_bytes()
    repository = tmp_path / "home" / "hub" / "models--lab--model"
    for branch, commit, content in (("main", "a" * 40, None), ("v2", "b" * 40, data)):
        (repository / "snapshots" / commit).mkdir(parents=True)
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / branch).write_text(commit)
        if content is not None:
            (repository / "snapshots" / commit / "tokenizer.json").write_bytes(content)
    (tmp_path / "a.txt").write_text("a text")
    model = ("--tokenizer", "lab/model", "--eos-token", "<|endoftext|>")
    text, endpoint = str(tmp_path / "a.txt"), "http://127.0.0.1:9"
    found = tokenize(text, tmp_path / "main", endpoint, *model)
    assert "lab/model: no such file, and it could not be downloaded from the hub" in found.stderr
    assert tokenize(text, tmp_path / "v2", endpoint, *model, "--revision", "v2").stderr == ""
    assert (tmp_path / "v2" / "tokenizer.json").read_bytes() == data
