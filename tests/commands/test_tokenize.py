"""`tokenize` from files to a finished store, and one clear error for whatever a user can get wrong."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tokenizers import Tokenizer

import packtool
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.storage import manifest as manifests
from packtool.storage.token_store import TokenStore

ASSET = Path(packtool.__file__).parent / "assets" / "tokenizer.json"
TEXTS = [
    "Hello world.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "tabs\tand\r\nlines\n\n  with spaces  ",
    "<|endoftext|> is special 😀",
    "今日は",
] * 7


def reference(texts: list[str]) -> list[list[int]]:
    tokenizer = Tokenizer.from_file(str(ASSET))
    eos = tokenizer.token_to_id("<|endoftext|>")
    return [[*tokenizer.encode(text, add_special_tokens=False).ids, eos] for text in texts if text]


def documents(store: Path) -> list[list[int]]:
    opened = TokenStore(store)
    return [opened.document(number).tolist() for number in range(opened.documents)]


def jsonl(texts: list[Any], field: str = "text") -> bytes:
    return b"".join(json.dumps({"id": n, field: text}).encode() + b"\n" for n, text in enumerate(texts))


def contents(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.iterdir() if path.name != "run.json"}


def run(inputs: Any, output: Path, **options: Any) -> packtool.commands.tokenize.TokenizeResult:
    return packtool.tokenize(inputs, output, **{"workers": 1, "quiet": True, **options})


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    (folder / "deep").mkdir(parents=True)
    raw = jsonl(TEXTS)
    (folder / "a.jsonl").write_bytes(raw)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(raw) + gzip.compress(raw))
    (folder / "c.jsonl.bz2").write_bytes(bz2.compress(raw))
    (folder / "d.jsonl.xz").write_bytes(lzma.compress(raw))
    with pa.CompressedOutputStream(str(folder / "misnamed.jsonl"), "zstd") as out:
        out.write(raw)
    parquet.write_table(pa.table({"text": TEXTS}), folder / "deep" / "e.parquet", row_group_size=3)
    (folder / ".hidden").write_text("no")
    return folder


@pytest.mark.parametrize("encoder", ["auto", "tokenizers"])
def test_every_format_gives_the_documents_of_the_reference(corpus: Path, tmp_path: Path, encoder: str) -> None:
    result = run(corpus, tmp_path / "store", encoder=encoder)
    assert documents(result.path) == reference(TEXTS * 7)
    manifest = manifests.read(result.path)
    assert isinstance(manifest, manifests.StoreManifest)
    assert [entry.name for entry in manifest.inputs] == [
        "a.jsonl",
        "b.jsonl.gz",
        "c.jsonl.bz2",
        "d.jsonl.xz",
        "deep/e.parquet",
        "misnamed.jsonl",
    ]
    assert result.counts["documents"] == len(TEXTS) * 7
    assert result.counts["tokens"] == sum(map(len, reference(TEXTS * 7)))
    assert sorted(p.name for p in result.path.iterdir()) == [
        "manifest.json",
        "offsets-00000.npy",
        "run.json",
        "tokens-00000.npy",
    ]


def fails(kind: type[PacktoolError], inputs: Any, output: Path, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        run(inputs, output, **options)
    assert not (output / "manifest.json").exists()
    return str(caught.value)


def test_errors_name_the_place_and_the_remedy(tmp_path: Path) -> None:
    out = tmp_path / "store"
    assert "no such file or directory" in fails(DataError, tmp_path / "nothing.jsonl", out)
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b'{"text": "fine"}\n\n{"text": "broken}\n')
    assert fails(DataError, bad, out).startswith(f"{bad}:3: not valid JSON: Unterminated string")
    bad.write_bytes(b'{"text": "fine"}\n{"body": "elsewhere"}\n')
    message = fails(DataError, bad, out)
    assert message.startswith(f"{bad}:2: no text field 'text'. Name the field with --text-field")
    bad.write_bytes(b'{"text": null}\n')
    assert f"{bad}:1: text field 'text' is null" in fails(DataError, bad, out)
    bad.write_bytes(b'{"text": 5}\n')
    assert f"{bad}:1: text field 'text' is a number, not a string" in fails(DataError, bad, out)
    bad.write_bytes(b'{"text": "\xff"}\n')
    assert f"{bad}:1: not valid UTF-8" in fails(DataError, bad, out)
    bad.write_bytes(b'{"text": "\\ud800"}\n')
    assert f"{bad}:1: lone surrogate in text field" in fails(DataError, bad, out)
    assert not out.exists(), "an error leaves nothing to clean up"


def test_an_unknown_eos_is_a_usage_error(tmp_path: Path) -> None:
    spec = json.loads(ASSET.read_text())
    spec["added_tokens"] = []
    spec["model"]["vocab"].pop("<|endoftext|>", None)
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    options = {"tokenizer": tmp_path}
    message = fails(UsageError, tmp_path / "a.jsonl", tmp_path / "o", **options)
    assert message.startswith("--eos-token: no EOS token is known for this tokenizer")
    assert "Name it with --eos-token TEXT or --eos-token ID." in message
    result = run(tmp_path / "a.jsonl", tmp_path / "o", eos_token="5", **options)
    assert all(document[-1] == 5 for document in documents(result.path))


def test_the_hub_out_of_reach_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    message = fails(DataError, tmp_path / "a.jsonl", tmp_path / "o", tokenizer="someone/some-model")
    assert message.startswith("someone/some-model: no such file, and ")
    assert "download its tokenizer.json and give the file" in message
    message = fails(DataError, tmp_path / "a.jsonl", tmp_path / "o", tokenizer=tmp_path / "nowhere" / "tokenizer.json")
    assert "no tokenizer.json there" in message


def test_uint32_where_uint16_is_too_small(tmp_path: Path) -> None:
    spec = json.loads(ASSET.read_text())
    size = len(spec["model"]["vocab"])
    spec["model"]["vocab"].update({f"filler{n}": n for n in range(size, 70000)})
    spec["added_tokens"].append({**spec["added_tokens"][0], "id": 70000, "content": "<|high|>"})
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    (tmp_path / "a.jsonl").write_bytes(jsonl(["a <|high|> b"]))
    result = run(tmp_path / "a.jsonl", tmp_path / "o", tokenizer=tmp_path)
    store = TokenStore(result.path)
    assert store.dtype == np.dtype("<u4")
    assert 70000 in store.document(0)
