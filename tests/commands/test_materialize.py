"""Index-only datasets in other commands: a pipeline that writes their tokens last, and what tells about them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

import packtool
from packtool.formats import manifest as manifests
from packtool.formats.schema import listed_files
from tests.making import Make, write_records
from tests.stores import contents

OPTIONS: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "shard_tokens": 1024}
CONFIG = """
[pack]
strategy = "bfd"
sequence-length = 64
shard-tokens = 1024
index-only = true

[shuffle]
epoch = 1
index-only = true
store = "PLACE/store"

[materialize]
store = "PLACE/store"

[stats]
"""


@pytest.fixture
def place(tmp_path: Path, make: Make) -> Path:
    lengths = [3 + n * n % 60 for n in range(200)]
    return make(lengths, packed=OPTIONS, index={**OPTIONS, "index_only": True}, at=tmp_path)


def test_a_run_tries_orders_without_tokens_and_writes_them_last(place: Path) -> None:
    (place / "c.toml").write_text(CONFIG.replace("PLACE", str(place)))
    given: dict[str, Any] = {"input": place / "store", "output": place / "out"}
    assert [each.state for each in packtool.run(place / "c.toml", **given, dry_run=True)] == ["would do"] * 4
    assert [each.state for each in packtool.run(place / "c.toml", **given)] == ["done"] * 4
    packtool.shuffle(place / "packed", place / "expected", epoch=1)
    assert contents(place / "out" / "materialized") == contents(place / "expected")
    assert not list((place / "out" / "packed").glob("tokens-*"))
    assert not list((place / "out" / "shuffled").glob("tokens-*"))
    assert [each.state for each in packtool.run(place / "c.toml", **given)] == ["kept"] * 3 + ["done"]


def test_info_counts_its_shards_and_weighs_it(place: Path) -> None:
    facts = packtool.info(place / "index").facts
    assert facts["shards"] == packtool.info(place / "packed").facts["shards"] > 1
    size = sum(file.bytes for file in listed_files(manifests.read(place / "index")))
    assert facts["bytes"] == size < packtool.info(place / "packed").facts["bytes"]
    assert facts["rows gathered from"] == "../store"
    assert "the tokens of its rows would take" in str(facts["index"])


def test_a_document_is_found_and_shown_as_with_tokens(tmp_path: Path) -> None:
    records = [{"id": f"n{n}", "text": f"document {n} " + "again and " * (n % 13)} for n in range(80)]
    packtool.tokenize(write_records(tmp_path / "corpus.jsonl", records), tmp_path / "store", id_field="id")
    packtool.pack(tmp_path / "store", tmp_path / "packed", **OPTIONS)
    packtool.pack(tmp_path / "store", tmp_path / "index", **OPTIONS, index_only=True)
    for record in ("n7", "corpus.jsonl:8"):
        places = packtool.find(tmp_path / "index", record, store=tmp_path / "store").places
        assert places
        assert places == packtool.find(tmp_path / "packed", record, store=tmp_path / "store").places
    row = packtool.find(tmp_path / "index", "n7").places[0].row
    shown, expected = (packtool.show(tmp_path / name, row, store=tmp_path / "store") for name in ("index", "packed"))
    assert shown.segments == expected.segments


def test_stats_are_those_with_tokens(place: Path) -> None:
    index, packed = (packtool.stats(place / name) for name in ("index", "packed"))
    assert msgspec.structs.replace(index, path="", command="") == msgspec.structs.replace(packed, path="", command="")  # type: ignore[type-var]


def test_a_foreign_file_beside_an_index_is_not_read(place: Path) -> None:
    (place / "index" / "tokens-00000.npy").write_bytes(b"not ours")
    assert packtool.verify(place / "index").problems == []
    assert (packtool.open(place / "index")[:] == packtool.open(place / "packed")[:]).all()
