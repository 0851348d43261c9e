"""Documents of several stores in one export, and a source that is replaced meanwhile."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import packtool
from packtool.commands import export
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.exchange import FORMATS
from packtool.formats.token_store import TokenStore
from tests.exchange.readers import READERS
from tests.exchange.streams import stream
from tests.shell import Shell
from tests.stores import TOKENIZER, document_loss, write_store

LENGTHS = {"web": [5, 1, 9, 33, 2], "wiki": [2, 64, 1, 17], "code": [100, 3, 40, 8, 8, 1]}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("stores")
    firsts = dict(zip(LENGTHS, (0, 100, 200), strict=True))
    return [write_store(place / name, sizes, per_shard=2, first=firsts[name]) for name, sizes in LENGTHS.items()]


def documents(path: Path, name: str) -> list[list[int]]:
    return [each.ids for each in READERS[name](path, "<u2")]


@pytest.mark.parametrize("name", READERS)
def test_documents_of_several_stores_follow_each_other(stores: list[Path], tmp_path: Path, name: str) -> None:
    result = packtool.export(stores, tmp_path / "out", format=name)
    assert len(result.manifest.inputs) == len(stores)
    assert packtool.verify(tmp_path / "out").problems == []
    found = documents(tmp_path / "out", name)
    assert np.concatenate(found).tolist() == np.concatenate([stream(store) for store in stores]).tolist()
    if FORMATS[name].documents:
        assert list(map(len, found)) == [size for sizes in LENGTHS.values() for size in sizes]
    assert packtool.export(stores, tmp_path / "out", format=name, resume=True).kept
    with pytest.raises(UsageError, match="begun with other options: SOURCE was "):
        packtool.export(stores[::-1], tmp_path / "out", format=name, resume=True)


def test_a_mixture_is_one_megatron_dataset(stores: list[Path], tmp_path: Path) -> None:
    """Each store as often as its weight says, the documents of a part of a pass in corpus order."""
    mix = {"web": "2x", "wiki": "0.5x", "code": "1x"}
    result = packtool.export(stores, tmp_path / "out", format="megatron", mix=mix)
    packtool.pack(stores, tmp_path / "rows", strategy="concat", sequence_length=2, mix=mix, shuffle=False)
    rows = packtool.open(tmp_path / "rows")[:].reshape(-1)
    found = documents(tmp_path / "out", "megatron")
    tokens = np.concatenate(found).tolist()
    assert tokens == rows[: len(tokens)].tolist()
    assert len(rows) - len(tokens) <= 1  # padding
    assert found[:5] == found[5:10]
    assert result.manifest.choice is not None
    whole = packtool.export(stores[1:], tmp_path / "some", format="megatron", max_tokens=20)
    assert whole.manifest.sequences == sum(size <= 20 for name in ("wiki", "code") for size in LENGTHS[name])


def test_all_tokens_of_a_store_that_does_not_say_which_train_do(stores: list[Path], tmp_path: Path) -> None:
    masked = write_store(tmp_path / "masked", [5, 40], loss=document_loss)
    packtool.export([stores[0], masked], tmp_path / "out", format="parquet")
    trains = [each.trains for each in READERS["parquet"](tmp_path / "out", "<u2")]
    expected = [[1] * size for size in LENGTHS["web"]] + [document_loss(n, size) for n, size in enumerate([5, 40])]
    assert trains == [[bool(one) for one in row] for row in expected]


def test_what_does_not_go_together_is_refused(stores: list[Path], tmp_path: Path) -> None:
    packtool.pack(stores[0], tmp_path / "rows", strategy="bfd", sequence_length=16)
    other = write_store(tmp_path / "other", [3], tokenizer=msgspec.structs.replace(TOKENIZER, sha256="2" * 64))
    cases: list[tuple[Any, str]] = [
        ([stores[0], tmp_path / "rows"], "a packed dataset, where several token stores are exported together"),
        ([stores[0], stores[0]], "named twice among the inputs"),
        ([stores[0], other], "tokenizer sha256 is"),
    ]
    for given, message in cases:
        with pytest.raises(PacktoolError, match=message):
            packtool.export(given, tmp_path / "out", format="megatron")
        assert not (tmp_path / "out").exists()


def test_a_source_that_is_replaced_meanwhile_is_an_error(
    stores: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The export would have the old tokens under the digest of the new ones, and pass every check."""
    store, new = tmp_path / "store", write_store(tmp_path / "new", [7, 7])
    shutil.copytree(stores[0], store)
    open_contents = export.contents_of

    def replaced(*given: Any) -> Any:
        contents = open_contents(*given)
        shutil.rmtree(store)
        shutil.copytree(new, store)
        return contents

    monkeypatch.setattr(export, "contents_of", replaced)
    with pytest.raises(DataError, match=r"store: has been replaced since the command began\. Run the command again"):
        packtool.export(store, tmp_path / "out", format="olmo")
    assert not (tmp_path / "out").exists()


def test_run_says_what_an_export_does_not_keep(stores: list[Path], tmp_path: Path, shell: Shell) -> None:
    """As `export` does; and its table may name several stores."""
    configuration = tmp_path / "run.toml"
    inputs = ", ".join(f'"{store}"' for store in stores)
    configuration.write_text(f'[export]\ninput = [{inputs}]\nformat = "llmc"\n')
    command = ["run", str(configuration), "-o", str(tmp_path / "out")]
    ends = "the tokens at the end of each file that fill no row of its reader"
    said = shell(*command)
    assert "Not kept: where documents end, except for the EOS after each.\n" in said
    assert f"Not kept: {ends}.\n" in said
    stages = json.loads(shell(*command, "--json"))["stages"]
    assert stages[0]["lost"] == ["where documents end, except for the EOS after each", ends]
    whole = np.concatenate([stream(store) for store in stores])
    assert np.concatenate(documents(tmp_path / "out" / "exported", "llmc")).tolist() == whole.tolist()
    assert TokenStore(stores[0]).documents == len(LENGTHS["web"])
