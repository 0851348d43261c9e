"""The sample corpus of `make demo`: large enough, of all kinds, and the same every time."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sample_corpus
from stdlib_text import Document


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("sample") / "corpus"
    documents, size = sample_corpus.write(output)
    assert documents >= 2_000
    assert size >= 10_000_000
    return output


def texts(corpus: Path) -> dict[str, list[str]]:
    plain = (corpus / "sources.jsonl").read_text(encoding="utf-8")
    compressed = gzip.decompress((corpus / "reference.jsonl.gz").read_bytes()).decode()
    return {
        "sources": [json.loads(line)["text"] for line in plain.splitlines()],
        "reference": [json.loads(line)["text"] for line in compressed.splitlines()],
        "docstrings": pq.read_table(corpus / "docstrings.parquet")["text"].to_pylist(),
    }


def test_each_file_holds_its_texts(corpus: Path) -> None:
    found = texts(corpus)
    assert {path.name for path in corpus.iterdir()} == {"docstrings.parquet", "reference.jsonl.gz", "sources.jsonl"}
    assert Path(os.__file__).read_text(encoding="utf-8") in found["sources"]
    assert json.dumps.__doc__ is not None
    assert any("Serialize ``obj`` to a JSON formatted ``str``" in text for text in found["docstrings"])
    assert any('The "assert" statement' in text for text in found["reference"])
    assert all(text.strip() for part in found.values() for text in part)


@pytest.mark.slow
def test_another_run_writes_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    script = Path(sample_corpus.__file__)
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    run = subprocess.run(
        [sys.executable, script, tmp_path / "again"], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith(f"{tmp_path / 'again'}: ")
    for path in corpus.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_an_incomplete_installation_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_corpus, "modules", lambda: iter([Document("a.py", "pass")]))
    monkeypatch.setattr(sample_corpus, "docstrings", lambda: iter(()))
    with pytest.raises(SystemExit, match=r"standard library has only 80 documents .* Use a complete Python"):
        sample_corpus.write(tmp_path)
    assert not list(tmp_path.iterdir())
