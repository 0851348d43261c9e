"""The laws of every format: tokens back in order, boundaries where it has them, an error where it can't hold them."""

import os
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool import exchange
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.exchange.exported import contents_of
from packtool.exchange.formats import datatrove, megatron, raw
from packtool.exchange.model import Contents, ReadOptions
from packtool.formats.token_store import TokenStore
from packtool.options.names import EXPORTS, IMPORTS
from tests.exchange.streams import LENGTHS, packed, small_large_and_empty, stream
from tests.interrupting import interrupted_everywhere
from tests.making import Make
from tests.stores import contents, document_loss


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return small_large_and_empty(tmp_path_factory.mktemp("exchange"))


@pytest.mark.parametrize("size", ["small", "large", "empty"])
@pytest.mark.parametrize("name", EXPORTS)
def test_documents_go_there_and_back(stores: dict[str, Path], tmp_path: Path, name: str, size: str) -> None:
    chosen = exchange.FORMATS[name]
    if chosen.dtypes[4 if size == "large" else 2] is None:
        with pytest.raises(UsageError, match=f"format: {name} holds ids of 16 bits, but the vocabulary has 131072"):
            packtool.export(stores[size], tmp_path / "out", format=name)
        assert not (tmp_path / "out").exists()
        return
    result = packtool.export(stores[size], tmp_path / "out", format=name)
    store = TokenStore(stores[size])
    assert (result.manifest.sequences, result.manifest.tokens) == (store.documents, store.tokens)
    assert any("where documents end" in what for what in result.manifest.lost) != chosen.documents
    assert packtool.verify(tmp_path / "out").problems == []
    assert packtool.info(tmp_path / "out").state == "whole"
    if name not in IMPORTS:
        return
    if not list((tmp_path / "out").glob(chosen.files)):
        return  # no shard, no file
    back = packtool.import_(tmp_path / "out", tmp_path / "back", format=name)
    assert packtool.verify(tmp_path / "back").problems == []
    assert back.counts == {"documents": store.documents, "tokens": store.tokens, "empty": 0, "eos_added": 0}
    again = TokenStore(tmp_path / "back")
    np.testing.assert_array_equal(again.lengths(), store.lengths())
    np.testing.assert_array_equal(stream(tmp_path / "back"), stream(stores[size]))
    assert again.manifest.tokenizer == store.manifest.tokenizer


def test_an_altered_table_of_batches_is_found(make: Make, tmp_path: Path) -> None:
    source = packed(make, "batches", tmp_path)
    table = np.load(source / "batches.npy")
    np.save(source / "batches.npy", table[::-1])
    with pytest.raises(DataError, match=r"batches\.npy"):
        packtool.export(source, tmp_path / "out", format="parquet")
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("name", ["datatrove", "litdata", "megatron", "parquet"])
def test_the_same_bytes_after_any_interruption(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Where the format has a place for it, with which tokens train."""
    store = make(LENGTHS, {"per_shard": 4, "loss": document_loss if exchange.FORMATS[name].loss else None}) / "store"

    def export(output: Path, **options: Any) -> Any:
        return packtool.export(store, output, format=name, **options)

    assert interrupted_everywhere(monkeypatch, tmp_path, export) > 3


@pytest.mark.parametrize("name", EXPORTS)
def test_what_changed_before_a_resume_is_written_anew(
    stores: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whichever of its files it is: an index counts as much as what it points into."""
    expected = contents(packtool.export(stores["small"], tmp_path / "whole", format=name).path)
    names = [Path(each).name for each in expected]

    def full(*_: object) -> None:
        raise OSError(28, "full")

    def interrupted(output: Path) -> list[Path]:
        with monkeypatch.context() as cut:
            cut.setattr("packtool.commands.export.copy_tokenizer", full)
            with pytest.raises((OSError, DataError)):
                packtool.export(stores["small"], output, format=name)
        return sorted(file for file in output.rglob("*") if _stem(file) in names and file.parent.name != "unfinished")

    files = interrupted(tmp_path / "first")
    assert files
    for number, _ in enumerate(files):
        output = tmp_path / f"changed-{number}"
        file = interrupted(output)[number]
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        packtool.export(stores["small"], output, format=name, resume=True)
        assert contents(output) == expected, file.name


def _stem(file: Path) -> str:
    return file.name.removesuffix(".partial")


@pytest.mark.parametrize("name", EXPORTS)
def test_counts_are_of_what_was_written(
    stores: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A source that gives less than it promised is found, whatever the format."""
    from packtool.commands import export

    def short(path: Path, *given: Any) -> Contents:
        whole = contents_of(path, *given)
        return replace(
            whole, blocks=lambda part: islice(whole.blocks(part), 1, None) if part.number == 1 else whole.blocks(part)
        )

    monkeypatch.setattr(export, "contents_of", short)
    with pytest.raises(DataError, match="shard 1 of small: 0 sequences were written, but the source has 4") as caught:
        packtool.export(stores["small"], tmp_path / "out", format=name)
    assert caught.value.code == "ledger-unbalanced"
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("name", ["nanogpt", "datatrove", "megatron"])
def test_a_file_that_is_cut_while_it_is_read_is_an_error_and_no_signal(
    stores: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for module in (raw, datatrove, megatron):
        monkeypatch.setattr(module, "READ_TOKENS", 16)
    packtool.export(stores["small"], tmp_path / "out", format=name)
    chosen = exchange.FORMATS[name]
    file = min((tmp_path / "out").glob(chosen.files))
    found = iter(chosen.read(file, ReadOptions(np.dtype("<u2"), ids_only=True)))
    next(found)
    ids = file.with_suffix(".bin") if name == "megatron" else file
    os.truncate(ids, ids.stat().st_size - 2)
    with pytest.raises(DataError, match=f"{ids.name}: became shorter while it was read"):
        list(found)


@pytest.mark.parametrize("writer", ["new_stream", "new_file"])
def test_an_arrow_file_that_is_cut_while_it_is_read_is_an_error_and_no_signal(tmp_path: Path, writer: str) -> None:
    import pyarrow as pa

    batch = pa.record_batch({"input_ids": pa.array([list(range(1000))] * 100)})
    with getattr(pa.ipc, writer)(tmp_path / "ids.arrow", batch.schema) as out:
        for _ in range(8):
            out.write_batch(batch)
    read = exchange.FORMATS["arrow"].read
    found = iter(read(tmp_path / "ids.arrow", ReadOptions(np.dtype("<u2"))))
    next(found)
    os.truncate(tmp_path / "ids.arrow", 2_000_000)
    with pytest.raises(DataError, match=r"ids\.arrow: not a whole Arrow file"):
        list(found)


@pytest.mark.parametrize("name", [name for name in EXPORTS if name in IMPORTS])
def test_exported_rows_are_not_taken_for_documents(make: Make, tmp_path: Path, name: str) -> None:
    packtool.export(packed(make, "joined", tmp_path), tmp_path / "out", format=name)
    files = [tmp_path / "out", next(tmp_path.glob(f"out/{exchange.FORMATS[name].files}"))]
    for given in files:
        with pytest.raises(DataError, match="an export of a packed dataset, whose sequences are rows, not") as caught:
            packtool.import_(given, tmp_path / "store", format=name)
        assert caught.value.code == "import-loses"
    packtool.import_(tmp_path / "out", tmp_path / "store", format=name, ids_only=True)


def test_options_that_make_no_sense(stores: dict[str, Path], tmp_path: Path, tokenizer: Path) -> None:
    source = stores["small"]
    cases: list[tuple[Any, str]] = [
        (lambda: packtool.export(source, tmp_path / "x", format="nope"), "there is no format 'nope'"),
        (
            lambda: packtool.import_(tokenizer, tmp_path / "x", format="megatron-bridge"),
            "there is no format 'megatron-",
        ),
        (lambda: packtool.import_(tokenizer, tmp_path / "x", format="olmo"), "tokenizer: nothing says which"),
        (lambda: packtool.import_(tmp_path / "no", tmp_path / "x", format="olmo"), "no such file or directory"),
        (lambda: packtool.import_(source, tmp_path / "x", format="arrow"), r"no file that matches \*\.arrow"),
    ]
    for call, message in cases:
        with pytest.raises(PacktoolError, match=message):
            call()
        assert not (tmp_path / "x").exists()


def test_every_registered_name_goes_the_way_it_says() -> None:
    assert all(exchange.FORMATS[name].part for name in EXPORTS)
    assert all(exchange.FORMATS[name].read for name in IMPORTS)
    assert [name for name, each in exchange.FORMATS.items() if each.name != name] == []
