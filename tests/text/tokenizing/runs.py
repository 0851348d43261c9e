"""Texts tokenized by `tokenize`, and what the reference makes of them."""

import bz2
import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tokenizers import Tokenizer

import packtool
from packtool.commands.tokenize import TokenizeResult
from packtool.errors import PacktoolError
from packtool.formats.token_store import TokenStore
from tests.text.corpus.archives import zstd

ASSET = Path(__file__).with_name("tokenizer.json")
"""The tokenizer that comes with packtool, of which a few merges are kept: it loads in a tenth of the time."""
TEXTS = [
    "Hello world.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "tabs\tand\r\nlines\n\n  with spaces  ",
    "<|endoftext|> is special 😀",
    "今日は",
] * 7
special_texts = pytest.mark.filterwarnings("ignore:.*texts hold special tokens")
"""For tests that tokenize these: one holds a special token, of which `tokenize` warns."""


def reference(texts: list[str]) -> list[list[int]]:
    tokenizer = Tokenizer.from_file(str(ASSET))
    eos = tokenizer.token_to_id("<|endoftext|>")
    return [[*tokenizer.encode(text, add_special_tokens=False).ids, eos] for text in texts if text]


def documents(store: Path) -> list[list[int]]:
    opened = TokenStore(store)
    return [opened.document(number).tolist() for number in range(opened.documents)]


def jsonl(texts: list[Any], field: str = "text") -> bytes:
    return b"".join(json.dumps({"id": n, field: text}).encode() + b"\n" for n, text in enumerate(texts))


def corpus_of_every_kind(folder: Path, texts: list[str]) -> Path:
    """The same texts in every format and compression, also below, misnamed and hidden."""
    (folder / "deep").mkdir(parents=True)
    raw = jsonl(texts)
    (folder / "a.jsonl").write_bytes(raw)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(raw) + gzip.compress(raw))
    (folder / "c.jsonl.bz2").write_bytes(bz2.compress(raw))
    (folder / "d.jsonl.xz").write_bytes(lzma.compress(raw))
    (folder / "misnamed.jsonl").write_bytes(zstd(raw))
    parquet.write_table(pa.table({"text": texts}), folder / "deep" / "e.parquet", row_group_size=3)
    (folder / ".hidden").write_text("no")
    return folder


def run(inputs: Any, output: Path, **options: Any) -> TokenizeResult:
    return packtool.tokenize(inputs, output, **{"tokenizer": ASSET, "workers": 1, "quiet": True, **options})


def stored(inputs: Any, output: Path, **options: Any) -> list[list[int]]:
    """The documents of a store that is made of these inputs."""
    return documents(run(inputs, output, **options).path)


def fails(kind: type[PacktoolError], inputs: Any, output: Path, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        run(inputs, output, **options)
    assert not (output / "manifest.json").exists()
    return str(caught.value)
