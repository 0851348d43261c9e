"""What `tokenize --dry-run` estimates is about what `tokenize` writes."""

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import packtool
from packtool.errors import DataError
from packtool.options.check import checked
from packtool.options.tokenize import TokenizeArguments
from packtool.text.corpus.find import find_texts
from packtool.text.tokenizing.estimate import Estimate, estimate
from packtool.text.tokenizing.recipe import StoreRecipe
from packtool.text.tokenizing.tokenizer import load
from tests.text.corpus.archives import zstd


def texts(kind: int, count: int) -> list[str]:
    """Texts of one kind, which differ in their tokens a byte: code, Chinese, numbers, the same again and again."""
    draw = random.Random(kind)
    made = []
    for _ in range(count):
        size = draw.choice([20, 200, 600])
        if kind == 0:
            made.append("".join(f"    if value[{draw.randrange(99)}] is None:\n" for _ in range(size // 10)))
        elif kind == 1:
            made.append("".join(draw.choice("中文天气日本語今天") for _ in range(size)))
        elif kind == 2:
            made.append(" ".join(str(draw.random()) for _ in range(size // 10)))
        else:
            made.append("the end of it all " * (size // 4))
    return made


def jsonl(made: list[str]) -> str:
    return "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in made)


def one_file(place: Path, groups: list[list[str]]) -> None:
    (place / "all.jsonl").write_text("".join(map(jsonl, groups)))


def a_file_a_kind(place: Path, groups: list[list[str]]) -> None:
    for number, made in enumerate(groups):
        (place / f"{number}.jsonl").write_text(jsonl(made))


def compressed(place: Path, groups: list[list[str]]) -> None:
    (place / "all.jsonl.gz").write_bytes(gzip.compress("".join(map(jsonl, groups)).encode()))


def table(place: Path, groups: list[list[str]]) -> None:
    parquet.write_table(
        pa.table({"text": list(chain.from_iterable(groups))}), place / "all.parquet", row_group_size=100
    )


def text_files(place: Path, groups: list[list[str]]) -> None:
    for number, text in enumerate(list(chain.from_iterable(groups))):
        (place / f"{number:05d}.txt").write_text(text)


WAYS: list[Callable[[Path, list[list[str]]], None]] = [one_file, a_file_a_kind, compressed, table, text_files]


def estimated(place: Path, **options: Any) -> Estimate:
    arguments = checked(TokenizeArguments(str(place), "unused", **options))
    found = find_texts(arguments)
    tokenizer = load(arguments, found.kind)
    return estimate(StoreRecipe.of(arguments, found, tokenizer), tokenizer, found.files, fall_back=True)


def counted(place: Path, output: Path, **options: Any) -> dict[str, int]:
    return packtool.tokenize(place, output, workers=1, **options).counts


@pytest.mark.parametrize("way", WAYS)
def test_a_small_corpus_is_read_in_whole(tmp_path: Path, way: Callable[..., None]) -> None:
    place = tmp_path / "corpus"
    place.mkdir()
    way(place, [texts(kind, 5) for kind in range(4)])
    options = {"min_tokens": 30, "encoder": "tokenizers"}
    counts, said = counted(place, tmp_path / "s", **options), estimated(place, **options)
    assert (said.tokens, said.documents) == (counts["tokens"], counts["documents"])
    assert said.counts.filtered.documents == counts["filtered"]


@pytest.mark.parametrize("way", [way for way in WAYS if way is not compressed])
def test_of_a_sorted_corpus_it_is_right_within_a_fifth(tmp_path: Path, way: Callable[..., None]) -> None:
    place = tmp_path / "corpus"
    place.mkdir()
    way(place, [texts(kind, count) for kind, count in enumerate([3000, 1000, 2000, 1500])])
    said, tokens = estimated(place), counted(place, tmp_path / "s")["tokens"]
    assert (said.places <= 64, said.beginnings) == (True, 0)
    assert abs(said.tokens - tokens) < tokens / 5
    size = sum(file.stat().st_size for file in (tmp_path / "s").glob("*.npy"))
    assert abs(said.bytes - size) < size / 4


@pytest.mark.parametrize("way", [one_file, table])
@pytest.mark.parametrize("power", [0, 1, 6])
def test_what_is_said_of_documents_in_order_of_length_is_within_its_margin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[..., None], power: int
) -> None:
    monkeypatch.setattr("packtool.text.tokenizing.estimate.WINDOW", 1 << 14)
    count = 40_000
    way(tmp_path, [["x" * int(2000 * (place / count) ** power) + str(place) for place in range(count)]])
    said = estimated(tmp_path)
    assert said.documents_margin is not None
    assert abs(said.documents - count) <= count * (said.documents_margin + 0.01)
    assert said.documents_margin < 0.1 or power


def test_a_record_that_a_run_refuses_is_no_million_of_documents(tmp_path: Path) -> None:
    place = tmp_path / "a.jsonl"
    good = jsonl(["one", "two"])
    for before in (2, 100_000):
        place.write_text(good * before + jsonl(["x" * 9_000_000]) + good)
        with pytest.raises(DataError, match=r"a\.jsonl.*: a record of (9,000,012|more than 1,000,000) bytes"):
            estimated(place, max_record_bytes=1_000_000)
        assert estimated(place).documents_margin == 0
        assert abs(estimated(place).documents - 2 * before - 3) < before / 1000 + 1


def test_long_documents_between_places_are_not_missed(tmp_path: Path) -> None:
    made = [" ".join(texts(2, 900)) for _ in range(10)]
    (tmp_path / "a.jsonl").write_text(jsonl(made))
    said = estimated(tmp_path / "a.jsonl")
    assert abs(said.documents - 10) <= 2


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_compressed_file_is_read_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    """Of text a hundredth as large, too, although a decompressor takes more than it gives at once."""
    monkeypatch.setattr("packtool.text.tokenizing.estimate.CHUNK", 1)
    place = tmp_path / "a.jsonl"
    place.write_bytes(pack(jsonl([f"the end of it all {n} " * 400 for n in range(2000)]).encode()))
    said = estimated(place)
    assert (said.places, said.beginnings) == (1, 1)
    assert abs(said.documents - 2000) < 400
