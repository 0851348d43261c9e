"""A folder whose catalogue says which files count is refused by name; splits of a dataset side by side are told."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from packtool.errors import DataError
from packtool.text.corpus.find import find_files
from packtool.warnings import PacktoolWarning
from tests.text.corpus.reading import put

EXPORTS = {
    "_delta_log/00000000000000000000.json": ("a Delta table, whose _delta_log says which rows count", "delta_scan('"),
    "_delta_log/00000000000000000010.checkpoint.parquet": ("a Delta table, whose _delta_log says", "delta_scan('"),
    "metadata/v1.metadata.json": ("an Iceberg table, whose metadata says which rows count", "iceberg_scan('"),
    "metadata/00001-3f2a.metadata.json": ("an Iceberg table", "iceberg_scan('"),
    ".hoodie/hoodie.properties": ("a Hudi table, whose .hoodie says which rows count", 'format("hudi").load("'),
    "snapshot/snapshot-1": ("a Paimon table, whose snapshots say which rows count", 'format("paimon").load("'),
}


@pytest.mark.parametrize("kept", EXPORTS)
@pytest.mark.parametrize("below", ["", "deep"])
def test_a_table_with_a_catalogue_is_refused_by_name(tmp_path: Path, kept: str, below: str) -> None:
    what, export = EXPORTS[kept]
    folder = put(tmp_path / below, "day=1/a.jsonl", kept)
    for include in ([], ["*.jsonl"]):
        with pytest.raises(DataError) as error:
            find_files(tmp_path, None, include)
        assert (error.value.code, error.value.where) == ("foreign-folder", str(folder))
        assert error.value.what.startswith(what)
        assert f"{export}{folder}" in error.value.remedy
    with pytest.warns(PacktoolWarning, match=f"its files are read one by one, but it is {what}"):
        assert len(find_files(str(folder / "day=1" / "*.jsonl"), None)) == 1


@pytest.mark.parametrize(
    ("shard", "what"),
    [
        ("shard.00000.mds", "samples in shards of MosaicML Streaming (MDS)"),
        ("shard.00000.mds.zstd", "samples in shards of MosaicML Streaming (MDS)"),
        ("chunk-0-0.bin", "samples in chunks of LitData"),
        ("chunk-0-0.zstd.bin", "samples in chunks of LitData"),
    ],
)
def test_shards_with_an_index_are_named(tmp_path: Path, shard: str, what: str) -> None:
    put(tmp_path / "train", shard, "index.json")
    for place in (tmp_path, tmp_path / "train" / "index.json"):
        with pytest.raises(DataError) as error:
            find_files(place, None)
        assert (error.value.code, error.value.what, error.value.where) == ("foreign-folder", what, f"{tmp_path}/train")
        assert "StreamingDataset" in error.value.remedy


@pytest.mark.parametrize(
    ("names", "said", "pattern"),
    [
        (["train.jsonl", "test.jsonl"], "files of train lie beside files of test", "*train*"),
        (["data/train-0.jsonl", "data/validation-0.jsonl"], "train lie beside files of validation", "*train*"),
        (["en/c4-train.0.json.gz", "en/c4-validation.0.json.gz"], "files of validation", "*train*"),
        (["Train/a.jsonl", "Dev/a.jsonl"], "files of Train lie beside files of Dev", "Train/**"),
        (["a/train/a.jsonl", "a/val/a.jsonl", "b/eval/a.jsonl"], "beside files of val, eval", "**/train/**"),
        (["train_sft/a.jsonl", "test_sft/a.jsonl"], "files of train lie beside files of test", "**/*train*/**"),
    ],
)
def test_splits_side_by_side_are_told_with_what_takes_the_first(
    tmp_path: Path, names: list[str], said: str, pattern: str
) -> None:
    put(tmp_path, *names, "notes.jsonl")
    with pytest.warns(PacktoolWarning, match=said) as caught:
        find_files(tmp_path, None)
    assert f"give include='{pattern}'." in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [file.name for file in find_files(tmp_path, None, [pattern])] == names[:1]


@pytest.mark.parametrize(
    "names",
    [["train.jsonl", "extra.jsonl"], ["test.jsonl", "dev.jsonl"], ["training/a.jsonl", "latest.jsonl"], ["a.jsonl"]],
)
def test_other_files_side_by_side_are_one_corpus(tmp_path: Path, names: list[str]) -> None:
    put(tmp_path, *names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(find_files(tmp_path, None)) == len(names)


def test_the_pattern_for_a_dictionary_of_splits_takes_its_data_alone(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    for split in ("train", "test"):
        put(tmp_path / split, "data-0.arrow", "dataset_info.json")
        (tmp_path / split / "state.json").write_text('{"_data_files": [{"filename": "data-0.arrow"}]}')
    with pytest.warns(PacktoolWarning, match="give include='train/"):
        assert len(find_files(tmp_path, None)) == 2
    assert [file.name for file in find_files(tmp_path, None, ["train/**"])] == ["train/data-0.arrow"]
