"""Every format holds what it says it does, as a reader sees it that shares nothing with packtool."""

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.exchange import FORMATS
from packtool.formats.schema import ExportManifest
from packtool.options.names import EXPORTED_FILES, EXPORTS, IMPORTS, any_of
from tests.exchange import foreign
from tests.exchange.readers import READERS
from tests.exchange.streams import PACKS, STORES, packed, rows_in_order, rows_of_batches, stores_of, stream
from tests.exchange.tables import rows_of
from tests.making import Make
from tests.stores import TOKENIZER, document_loss, rewrite, write_store

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


def exported(source: Any, place: Path, name: str) -> tuple[ExportManifest, list[Any]]:
    manifest = packtool.export(source, place, format=name).manifest
    for file in manifest.files:
        assert any(fnmatch(file.name, each) for each in EXPORTED_FILES[name]), f"EXPORTED_FILES lacks {file.name}"
    assert packtool.verify(place).problems == []
    return manifest, list(READERS[name](place, manifest.dtype))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", READERS)
def test_documents(make: Make, tmp_path: Path, name: str, *, masked: bool) -> None:
    """Of several stores every token in order; each document alone, and what of it trains, where the format says so."""
    chosen, stores = FORMATS[name], stores_of(make, masked=masked)
    loss = []
    for number, lengths in enumerate(STORES.values()):
        for document, size in enumerate(lengths):
            loss.append(document_loss(100 * number + document, size) if masked and number else [1] * size)
    if masked and not chosen.loss:
        with pytest.raises(UsageError, match=f"{name} can't say which tokens train, and some of them do not") as error:
            packtool.export(stores, tmp_path / "out", format=name)
        able = sorted(other for other, each in FORMATS.items() if each.part and each.loss)
        assert (error.value.code, error.value.remedy) == ("format-without-loss", f"choose {any_of(tuple(able))}")
        return
    manifest, found = exported(stores, tmp_path / "out", name)
    assert len(manifest.inputs) == len(stores)
    assert np.concatenate([each.ids for each in found]).tolist() == np.concatenate([*map(stream, stores)]).tolist()
    if chosen.documents:
        assert [len(each.ids) for each in found] == [size for sizes in STORES.values() for size in sizes]
    if masked:
        shift = name == "megatron-bridge"  # whose mask of a token is that of the label after it
        expected = [[*mask[1:], 0] if shift else mask for mask in loss]
        assert [each.trains for each in found] == [[bool(one) for one in mask] for mask in expected]
    assert packtool.export(stores, tmp_path / "out", format=name, resume=True).kept
    with pytest.raises(UsageError, match="begun with other options: SOURCE was "):
        packtool.export(stores[::-1], tmp_path / "out", format=name, resume=True)


@pytest.mark.parametrize("kind", PACKS)
@pytest.mark.parametrize("name", READERS)
def test_rows(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str) -> None:
    """Every row as a trainer reads it, in order, however they are cut to parts and blocks.

    Where the format says so, with the bounds of documents, and what is padding or does not train.
    """
    monkeypatch.setattr("packtool.exchange.exported.BLOCK_TOKENS", 150)
    monkeypatch.setattr("packtool.exchange.exported.PART_TOKENS", 200)
    chosen, source = FORMATS[name], packed(make, kind, tmp_path)
    if kind == "masked" and (not chosen.loss or name == "megatron-bridge"):
        pytest.skip("refused, as documents are; of Megatron-Bridge in test_multiples.py")
    if "buckets" in PACKS[kind] and not chosen.several_lengths:
        with pytest.raises(UsageError, match=f"{name} holds rows of one length, but the dataset has rows of 8, 32"):
            packtool.export(source, tmp_path / "out", format=name)
        return
    manifest, found = exported(source, tmp_path / "out", name)
    padded = any("padding" in what for what in manifest.lost)
    assert padded == (manifest.padding > 0 and not chosen.labels)
    rows = rows_in_order(source)
    assert (manifest.sequences, manifest.tokens) == (len(rows), sum(map(len, rows)))
    np.testing.assert_array_equal(np.concatenate([each.ids for each in found]), np.concatenate(rows))
    if kind in ("unbounded", "buckets", "whole-batches"):
        return  # no batches, or none that have all rows and know their documents
    said = rows_of_batches(source)
    if chosen.boundaries and name == "datatrove":
        assert [each.pieces for each in found] == [[size] for row in said for size in row.pieces]
    elif chosen.boundaries:
        assert [each.pieces for each in found] == [row.pieces for row in said]
    if chosen.labels or kind == "masked":
        trains = [each for row in found for each in row.trains]
        assert trains == [each for row in said for each in row.trains]
    if name == "parquet":
        assert [row["position_ids"] for row in rows_of(tmp_path / "out")] == [row.positions for row in said]


@pytest.mark.parametrize("size", [1 << 31, (1 << 31) + 1, 1 << 32])
@pytest.mark.parametrize("name", READERS)
def test_the_largest_id_of_a_vocabulary_stays_or_is_refused(name: str, size: int, tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [3, 4], tokenizer=msgspec.structs.replace(TOKENIZER, vocab_size=size))

    def largest(ids: np.ndarray) -> None:
        ids[0] = size - 1

    rewrite(store, "tokens-00000.npy", largest)
    if FORMATS[name].largest_vocab < size or FORMATS[name].dtypes[4] is None:
        with pytest.raises(UsageError, match=rf"{name} .*, but the vocabulary has {size} tokens") as error:
            packtool.export(store, tmp_path / "out", format=name)
        assert error.value.where == "--format"
        return
    _, found = exported(store, tmp_path / "out", name)
    ids = np.concatenate([each.ids for each in found])
    assert int(ids[0]) == size - 1
