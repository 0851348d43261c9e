"""Which tokens train, from the columns of other tools to a store and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.exchange import FORMATS
from packtool.formats.token_store import TokenStore
from packtool.options.names import any_of
from tests.exchange.tables import WRITE, as_jsonl, rows_of
from tests.stores import contents, document_loss, write_store

LENGTHS = [5, 40, 1, 17, 3, 64, 9, 30]
IDS = [[5, 6, 7], [8], [], [9, 0]]
MASK = [[0, 1, 1], [0], [], [1, 0]]
LABELS = [[-100, 6, 7], [-100], [], [9, -100]]


def trained(store: Path) -> list[list[int]]:
    """The column of a store, document by document."""
    opened = TokenStore(store)
    return [
        part.tolist()
        for loss, offsets in zip(opened.loss, opened.offsets, strict=True)
        for part in np.split(loss, offsets[1:-1])
    ]


@pytest.mark.parametrize("name", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    "columns",
    [
        {"labels": LABELS},
        {"loss_mask": MASK},
        {"loss_mask": [[float(each) for each in row] for row in MASK]},
        {"assistant_masks": [[bool(each) for each in row] for row in MASK]},
        {"completion_mask": [[1, 1, 1], [1], [], [1, 0]], "assistant_masks": [[0, 1, 1], [0], [], [1, 1]]},
        {"labels": LABELS, "loss_mask": MASK, "attention_mask": [[1] * len(row) for row in IDS]},
    ],
    ids="+".join,
)
def test_masks_are_kept(tmp_path: Path, tokenizer: Path, name: str, columns: dict[str, Any]) -> None:
    """An EOS that is added trains where its document does, and one that is there as it says."""
    WRITE[name](tmp_path / f"a.{name}", {"input_ids": IDS, **columns})
    result = packtool.import_(tmp_path / f"a.{name}", tmp_path / "store", format=name, tokenizer=tokenizer)
    assert trained(tmp_path / "store") == [[0, 1, 1, 1], [0, 0], [1, 0]]
    assert result.counts["trained_tokens"] == 4
    assert packtool.verify(tmp_path / "store").problems == []
    options: Any = {"format": name, "tokenizer": tokenizer, "ids_only": True}
    ids_only = packtool.import_(tmp_path / f"a.{name}", tmp_path / "plain", **options)
    assert TokenStore(tmp_path / "plain").loss is None
    assert "trained_tokens" not in ids_only.counts


SHIFTED = r"labels has the label 6, another token than the id, as if labels were shifted \(token 0, whose id is 5\)"
SHORT = {"loss_mask": [[0, 1, 1], [0, 1], [], [1, 0]]}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("jsonl", {"labels": [[6, 7, 0], [8], [], [9, 0]]}, rf"a\.jsonl:1: {SHIFTED}"),
    ("parquet", {"labels": [[6, 7, 0], [8], [], [9, 0]]}, rf"a\.parquet, row 0: {SHIFTED}"),
    ("jsonl", {"loss_mask": [[0, 1, 1], [0.5], [], [1, 0]]}, r"a\.jsonl:2: loss_mask has the value 0\.5, neither 0"),
    ("jsonl", SHORT, r"l:2: column loss_mask has 2 values for 1 id\. Give every"),
    ("parquet", SHORT, r"t, row 1: column loss_mask has 2 values for 1 id\."),
    ("jsonl", {"loss_mask": [[0, 1, 1], ["x"], [], [1, 0]]}, r"a\.jsonl:2: loss_mask is not a list of numbers"),
]


@pytest.mark.parametrize(("name", "columns", "message"), BAD)
def test_masks_that_do_not_fit_are_refused(
    tmp_path: Path, tokenizer: Path, name: str, columns: dict[str, Any], message: str
) -> None:
    WRITE[name](tmp_path / f"a.{name}", {"input_ids": IDS, **columns})
    with pytest.raises(DataError, match=message) as caught:
        packtool.import_(tmp_path / f"a.{name}", tmp_path / "store", format=name, tokenizer=tokenizer)
    assert caught.value.code == "bad-mask"
    assert not (tmp_path / "store").exists()


def test_a_file_without_masks_beside_one_with_them_trains(tmp_path: Path, tokenizer: Path) -> None:
    as_jsonl(tmp_path / "b.jsonl", {"input_ids": IDS})
    as_jsonl(tmp_path / "a.jsonl", {"input_ids": IDS, "labels": LABELS})
    files = [tmp_path / "b.jsonl", tmp_path / "a.jsonl"]
    packtool.import_(files, tmp_path / "store", format="jsonl", tokenizer=tokenizer)
    assert trained(tmp_path / "store") == [[1] * 4, [1] * 2, [1] * 2, [0, 1, 1, 1], [0, 0], [1, 0]]


def test_the_loss_of_datatrove_is_read(tmp_path: Path, tokenizer: Path) -> None:
    """As its tokenizer writes it: a byte for each token of the .ds file, EOS included."""
    np.array([5, 6, 0, 7, 0], "<u2").tofile(tmp_path / "a.ds")
    (tmp_path / "a.ds.loss").write_bytes(b"\x00\x01\x01\x01\x00")
    options: dict[str, Any] = {"format": "datatrove", "tokenizer": tokenizer}
    with pytest.raises(DataError, match=r"a\.ds\.loss says which tokens train, but a\.ds\.index is not there"):
        packtool.import_(tmp_path / "a.ds", tmp_path / "store", **options)
    np.array([3, 5], "<u8").tofile(tmp_path / "a.ds.index")
    packtool.import_(tmp_path / "a.ds", tmp_path / "store", **options)
    assert trained(tmp_path / "store") == [[0, 1, 1], [1, 0]]
    (tmp_path / "a.ds.loss").write_bytes(b"\x00\x01")
    with pytest.raises(DataError, match=r"a\.ds\.loss has 2 values, but there are 5 tokens"):
        packtool.import_(tmp_path / "a.ds", tmp_path / "short", **options)


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
    packtool.export(tmp_path / "packed", tmp_path / "bridge", format="megatron-bridge")
    for row, mine in zip(rows_of(tmp_path / "bridge"), loss.tolist(), strict=True):
        ends = [*row["seq_start_id"][1:], len(mine)]
        for first, last in zip(row["seq_start_id"], ends, strict=True):
            assert row["loss_mask"][first:last] == [*mine[first + 1 : last], 0]


def test_an_export_that_is_resumed_keeps_it(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.interrupting import interrupted

    packtool.export(store, tmp_path / "whole", format="datatrove")
    interrupted(monkeypatch, packtool.export, store, tmp_path / "out", format="datatrove")
    packtool.export(store, tmp_path / "out", format="datatrove", resume=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
