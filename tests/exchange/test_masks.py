"""Which tokens train, from the columns of other tools to a store and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.exchange import FORMATS
from packtool.formats.token_store import TokenStore
from packtool.options.names import any_of
from tests.exchange.tables import rows_of
from tests.stores import contents, document_loss, write_store

LENGTHS = [5, 40, 1, 17, 3, 64, 9, 30]


def trained(store: Path) -> list[list[int]]:
    """The column of a store, document by document."""
    opened = TokenStore(store)
    return [
        part.tolist()
        for loss, offsets in zip(opened.loss, opened.offsets, strict=True)
        for part in np.split(loss, offsets[1:-1])
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("masks") / "store", LENGTHS, per_shard=3, loss=document_loss)


@pytest.mark.parametrize("name", ["parquet", "arrow", "datatrove", "jsonl"])
def test_documents_come_back_with_what_trains(store: Path, tmp_path: Path, name: str) -> None:
    packtool.export(store, tmp_path / "out", format=name)
    packtool.import_(tmp_path / "out", tmp_path / "back", format=name)
    assert trained(tmp_path / "back") == trained(store)
    chosen = packtool.export(store, tmp_path / "some", format=name, min_tokens=10)
    packtool.import_(tmp_path / "some", tmp_path / "long", format=name)
    assert trained(tmp_path / "long") == [loss for loss in trained(store) if len(loss) >= 10]
    assert not any("train" in lost for lost in chosen.manifest.lost)


@pytest.mark.parametrize("name", [name for name, each in FORMATS.items() if each.part and not each.loss])
def test_formats_that_would_lose_it_are_refused(store: Path, tmp_path: Path, name: str) -> None:
    masked = sum(row.count(0) for row in trained(store))
    what = f"{name} can't say which tokens train, and {masked} of them do not"
    with pytest.raises(UsageError, match=what) as error:
        packtool.export(store, tmp_path / name, format=name)
    assert error.value.code == "format-without-loss"
    able = sorted(other for other, each in FORMATS.items() if each.part and each.loss)
    assert error.value.remedy == f"choose {any_of(tuple(able))}"


@pytest.mark.parametrize("options", [{"strategy": "ffd"}, {"strategy": "padding", "atom_size": 16}])
def test_rows_have_the_labels_of_the_reader(store: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    packtool.pack(store, tmp_path / "packed", sequence_length=64, **options)
    dataset = packtool.open(tmp_path / "packed")
    loss = dataset.loss(slice(None))
    packtool.export(tmp_path / "packed", tmp_path / "parquet", format="parquet")
    labels = [row["labels"] for row in rows_of(tmp_path / "parquet")]
    assert labels == np.where(loss == 1, dataset[:].astype(np.int64), -100).tolist()


def test_an_export_that_is_resumed_keeps_it(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.interrupting import interrupted

    packtool.export(store, tmp_path / "whole", format="datatrove")
    interrupted(monkeypatch, packtool.export, store, tmp_path / "out", format="datatrove")
    packtool.export(store, tmp_path / "out", format="datatrove", resume=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
