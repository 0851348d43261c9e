"""Every format holds what it says it does, as a reader sees it that shares nothing with packtool."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool import exchange
from packtool.formats.token_store import TokenStore
from packtool.options.names import EXPORTED_FILES, EXPORTS, IMPORTS
from tests.exchange import foreign
from tests.exchange.readers import READERS
from tests.exchange.streams import LENGTHS, rows_in_order, stream
from tests.stores import document_loss, write_store

ROOT = Path(__file__).parents[2]


def missing(name: str) -> list[str]:
    """List the places that do not know a format which is exported. Other tests are of the formats with a reader."""
    page = (ROOT / "docs/coming-from.md").read_text(encoding="utf-8")
    known = {
        "READERS in tests/exchange/readers.py": name in READERS,
        "WRITERS in tests/exchange/foreign.py": name not in IMPORTS or name in foreign.WRITERS,
        "the table of trainers in docs/coming-from.md": re.search(rf"^\|.*\| `{name}` \|", page, re.MULTILINE),
    }
    return [place for place, knows in known.items() if not knows]


@pytest.mark.parametrize("name", EXPORTS)
def test_readers_and_documentation_know_it(name: str) -> None:
    assert not missing(name), f"{name} is missing from {'; '.join(missing(name))}"


def test_each_place_that_lacks_one_is_named() -> None:
    assert len(missing("that nobody made")) == 2


def exported(source: Path, place: Path, name: str) -> list[Any]:
    result = packtool.export(source, place / name, format=name)
    for file in result.manifest.files:
        assert any(fnmatch(file.name, each) for each in EXPORTED_FILES[name]), f"EXPORTED_FILES lacks {file.name}"
    return list(READERS[name](place / name, result.manifest.dtype))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", READERS)
def test_documents(tmp_path: Path, name: str, *, masked: bool) -> None:
    """Every token in order; each document by itself, and which of its tokens train, where the format says so."""
    chosen = exchange.FORMATS[name]
    if masked and not chosen.loss:
        pytest.skip("refuses what it can't say")
    loss = [document_loss(*each) for each in enumerate(LENGTHS)] if masked else None
    store = write_store(tmp_path / "store", LENGTHS, per_shard=4, loss=document_loss if masked else None)
    found = exported(store, tmp_path, name)
    np.testing.assert_array_equal(np.concatenate([each.ids for each in found]), stream(store))
    if chosen.documents:
        assert [len(each.ids) for each in found] == TokenStore(store).lengths().tolist() == LENGTHS
    if loss is not None:
        shift = name == "megatron-bridge"  # whose mask of a token is that of the label after it
        expected = [[*mask[1:], 0] if shift else mask for mask in loss]
        assert [each.trains for each in found] == [[bool(one) for one in mask] for mask in expected]


@pytest.mark.parametrize("strategy", ["bfd", "padding", "seamless"])
@pytest.mark.parametrize("name", READERS)
def test_rows(tmp_path: Path, name: str, strategy: str) -> None:
    """Every row in order; where documents begin and end in it, and what is padding, where the format says so."""
    chosen = exchange.FORMATS[name]
    store = write_store(tmp_path / "store", LENGTHS, per_shard=4)
    packtool.pack(store, tmp_path / "rows", strategy=strategy, sequence_length=16, shard_tokens=64)
    found = exported(tmp_path / "rows", tmp_path, name)
    rows = rows_in_order(tmp_path / "rows")
    np.testing.assert_array_equal(np.concatenate([each.ids for each in found]), np.concatenate(rows))
    dataset = packtool.open(tmp_path / "rows")
    batches = [dataset.batch([number]) for number in range(len(dataset))]
    pieces = [np.diff(batch["cu_seqlens"]).tolist() for batch in batches]
    if chosen.boundaries and name == "datatrove":
        assert [each.pieces for each in found] == [[size] for row in pieces for size in row]
    elif chosen.boundaries:
        assert [each.pieces for each in found] == pieces
    if chosen.labels:
        assert [each.trains for each in found] == [(batch["document_ids"][0] >= 0).tolist() for batch in batches]
