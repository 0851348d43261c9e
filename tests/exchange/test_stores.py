"""What is chosen and mixed of several stores in one export, and a source that is replaced meanwhile."""

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
from packtool.formats.token_store import TokenStore
from tests.exchange.readers import READERS
from tests.exchange.streams import STORES, stores_of, stream
from tests.making import Make
from tests.shell import Shell
from tests.stores import TOKENIZER, document_loss, write_store


@pytest.fixture
def stores(make: Make) -> list[Path]:
    return stores_of(make)


def documents(path: Path, name: str) -> list[list[int]]:
    return [each.ids for each in READERS[name](path, "<u2")]


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
    assert whole.manifest.sequences == sum(size <= 20 for name in ("wiki", "code") for size in STORES[name])


def test_chosen_documents_keep_what_trains_of_them(make: Make, tmp_path: Path) -> None:
    chosen = packtool.export(stores_of(make, masked=True), tmp_path / "out", format="parquet", min_tokens=40)
    assert not any("train" in lost for lost in chosen.manifest.lost)
    trains = [each.trains for each in READERS["parquet"](tmp_path / "out", "<u2")]
    expected = [document_loss(101, 64), document_loss(200, 100), document_loss(202, 40)]
    assert trains == [[bool(one) for one in mask] for mask in expected]


@pytest.mark.parametrize("options", [{}, {"max_tokens": 20}, {"min_tokens": 20}], ids=str)
def test_what_trains_is_asked_of_the_documents_chosen(tmp_path: Path, options: dict[str, int]) -> None:
    """Documents all of whose tokens train need no format that says so, whatever the others of their store do."""

    def short_ones_train(_: int, size: int) -> list[int]:
        return [int(size <= 20)] * size

    store = write_store(tmp_path / "store", [5, 30, 9], loss=short_ones_train)
    if "max_tokens" not in options:
        with pytest.raises(UsageError, match="megatron can't say which tokens train, and some of them do not"):
            packtool.export(store, tmp_path / "out", format="megatron", **options)
        assert not (tmp_path / "out").exists()
        return
    assert packtool.export(store, tmp_path / "out", format="megatron", **options).manifest.sequences == 2
    every = write_store(tmp_path / "every", [5, 9], loss=short_ones_train)
    assert packtool.export(every, tmp_path / "all", format="megatron").manifest.sequences == 2


def test_what_does_not_go_together_is_refused(stores: list[Path], tmp_path: Path) -> None:
    packtool.pack(stores[0], tmp_path / "rows", strategy="bfd", sequence_length=16)
    other = write_store(tmp_path / "other", [3], tokenizer=msgspec.structs.replace(TOKENIZER, sha256="2" * 64))
    cases: list[tuple[Any, str]] = [
        ([stores[0], tmp_path / "rows"], "a packed dataset, where several token stores are exported together"),
        ([stores[0], stores[0]], "named twice among the inputs"),
        ([stores[0], other], "its tokenizer is sha256 222222222222, but sha256 000000000000 in"),
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
    assert TokenStore(stores[0]).documents == len(STORES["web"])
