"""What a dry run says will be written is within a fifth of what is written."""

from __future__ import annotations

import gzip
import json
import random
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import packtool
from packtool.cli import run
from packtool.exchange.formats import raw
from packtool.storage.token_store import TokenStore

TEXT = "the of and model token length row shuffle Zürich 東京 pack 12345 def return"
WORDS = TEXT.split()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of two kinds, short first, so that no beginning stands for the whole."""
    place = tmp_path_factory.mktemp("dry")
    draw = random.Random(5)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 60 if n < 9000 else 900))) for n in range(12_000)]
    lines = "".join(json.dumps({"text": text}, ensure_ascii=n % 2 == 0) + "\n" for n, text in enumerate(texts))
    (place / "plain.jsonl").write_text(lines)
    draw.shuffle(texts)
    mixed = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (place / "packed.jsonl.gz").write_bytes(gzip.compress(mixed.encode()))
    pyarrow.parquet.write_table(pa.table({"text": texts}), place / "table.parquet", row_group_size=500)
    (place / "several").mkdir()
    for n in range(40):
        (place / "several" / f"{n}.txt").write_text("\n".join(texts[300 * n : 300 * n + 300]))
    packtool.tokenize(place / "plain.jsonl", place / "tokens", workers=1)
    packtool.pack(place / "tokens", place / "rows", strategy="bfd", sequence_length=256)
    return place


def size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def compare(command: str, *arguments: Any, output: Path, **options: Any) -> None:
    function = getattr(packtool, command)
    preview = function(*arguments, output, dry_run=True, **options).preview
    assert preview.estimated
    assert not output.exists()
    function(*arguments, output, **options)
    share = preview.figures["bytes"] / size(output)
    assert 0.8 < share < 1.2


@pytest.mark.parametrize("name", ["plain.jsonl", "packed.jsonl.gz", "table.parquet", "several"])
def test_tokenize(place: Path, tmp_path: Path, name: str) -> None:
    compare("tokenize", place / name, output=tmp_path / "out", workers=1)


def test_tokenize_with_filters(place: Path, tmp_path: Path) -> None:
    compare("tokenize", place / "plain.jsonl", output=tmp_path / "out", workers=1, min_words=100)


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("concat", {"sequence_length": 64}),
        ("bfd", {"sequence_length": 512}),
        ("bfd", {"sequence_length": 64, "segments": False}),
        ("seamless", {"sequence_length": 128}),
        ("buckets", {"buckets": (128, 1024)}),
        ("decompose", {"sequence_length": 256}),
    ],
)
def test_pack(place: Path, tmp_path: Path, strategy: str, options: dict[str, Any]) -> None:
    compare("pack", place / "tokens", output=tmp_path / "out", strategy=strategy, **options)


def test_shuffle(place: Path, tmp_path: Path) -> None:
    compare("shuffle", place / "rows", output=tmp_path / "rows", epoch=1)
    options = {"method": "partial", "sequence_length": 128, "batch_size": 8}
    compare("shuffle", place / "tokens", output=tmp_path / "partial", **options)


@pytest.mark.parametrize("format", ["megatron", "nanogpt", "datatrove", "arrow", "mds"])
@pytest.mark.parametrize("source", ["tokens", "rows"])
def test_export(place: Path, tmp_path: Path, format: str, source: str) -> None:
    compare("export", place / source, output=tmp_path / "out", format=format)


@pytest.mark.parametrize("format", ["megatron", "nanogpt", "llmc", "olmo", "datatrove", "parquet", "arrow"])
def test_import(place: Path, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packtool.export(place / "tokens", tmp_path / "exported", format=format)
    whole = packtool.import_(tmp_path / "exported", tmp_path / "dry", format=format, dry_run=True).preview
    assert whole is not None
    compare("import_", tmp_path / "exported", output=tmp_path / "out", format=format)
    store = TokenStore(tmp_path / "out")
    assert whole.figures["tokens"] == pytest.approx(store.tokens, rel=0.01)
    held = [file for file in (tmp_path / "exported").iterdir() if file.suffix not in (".json", ".jinja")]
    assert whole.figures["input_bytes"] == sum(file.stat().st_size for file in held)
    assert {entry.name for entry in store.manifest.inputs} == {file.name for file in held}
    # Of large files, the beginning: here of 32,768 tokens, read in pieces of a quarter.
    monkeypatch.setattr(raw, "READ_TOKENS", 1 << 13)
    monkeypatch.setattr(import_module(f"packtool.exchange.formats.{format}"), "READ_TOKENS", 1 << 13, raising=False)
    monkeypatch.setattr("packtool.exchange.formats.parquet._ROWS", 100)
    monkeypatch.setattr("packtool.exchange.imported.SAMPLE_TOKENS", 1 << 15)
    compare("import_", tmp_path / "exported", output=tmp_path / "again", format=format)


def test_import_of_json_lines_and_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(7)
    (tmp_path / "in").mkdir()
    for number in range(40):
        lines = [json.dumps({"ids": draw.choices(range(1, 900), k=draw.randint(1, 300))}) for _ in range(50)]
        (tmp_path / "in" / f"{number:02}.jsonl").write_text("\n".join(lines))
    packtool.tokenize(tmp_path / "in" / "00.jsonl", tmp_path / "t", ids_field="ids", workers=1)
    options: dict[str, Any] = {"format": "jsonl", "field": "ids", "tokenizer": tmp_path / "t"}
    monkeypatch.setattr("packtool.exchange.formats.jsonl.READ_TOKENS", 1000)
    monkeypatch.setattr("packtool.exchange.imported.SAMPLE_TOKENS", 2000)
    compare("import_", tmp_path / "in", output=tmp_path / "out", **options)


def test_a_corpus_without_documents(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n\n")
    found = packtool.tokenize(tmp_path / "empty.jsonl", tmp_path / "out", dry_run=True).preview
    assert found is not None
    assert found.figures["documents"] == found.figures["tokens"] == 0


def test_what_is_printed(place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["tokenize", str(place / "plain.jsonl"), "-o", str(tmp_path / "out"), "--dry-run"]
    assert run(arguments) == 0
    out = capfd.readouterr().out
    assert f"packtool tokenize would write {tmp_path / 'out'}: 1 file, 1 block, " in out
    assert re.search(r" to read, about 12,\d00 documents, about [\d,]+000 tokens, about [\d.]+ MB ", out)
    assert not (tmp_path / "out").exists()
