"""A table whose catalogue says which rows count is refused; splits of a dataset side by side are told."""

import json
import warnings
from pathlib import Path

import pytest

from packtool.errors import DataError, UsageError
from packtool.text.corpus.find import find_files
from packtool.warnings import PacktoolWarning
from tests.text.corpus.reading import put
from tests.text.tokenizing.runs import fails

CATALOGUES = (
    "_delta_log/00000000000000000000.json",
    "metadata/00001-3f2a.metadata.json",
    ".hoodie/hoodie.properties",
    "snapshot/snapshot-1",
)


@pytest.mark.parametrize("kept", CATALOGUES)
@pytest.mark.parametrize("below", ["", "deep"])
def test_a_table_with_a_catalogue_is_refused(tmp_path: Path, kept: str, below: str) -> None:
    folder = put(tmp_path / below, "day=1/a.jsonl", kept)
    for named in (tmp_path, folder / "day=1", folder / "day=1" / "*.jsonl"):
        with pytest.raises(DataError, match="its files also hold rows that were deleted") as error:
            find_files(named, None)
        assert (error.value.code, error.value.where) == ("foreign-folder", str(folder))
        assert [file.name[-7:] for file in find_files(named, "jsonl").files] == ["a.jsonl"]


@pytest.mark.parametrize("index", [{"shards": [], "version": 2}, {"chunks": [], "config": {}}])
def test_the_index_of_shards_is_no_text(tmp_path: Path, index: dict[str, object]) -> None:
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "index.json").write_text(json.dumps(index))
    assert "has neither 'text' nor a conversation" in fails(UsageError, tmp_path / "shards", tmp_path / "out")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["train.jsonl", "test.jsonl"], "test"),
        (["en/c4-train.0.json.gz", "en/c4-validation.0.json.gz"], "validation"),
        (["Train/a.jsonl", "Dev/a.jsonl"], "dev"),
        (["train_sft/a.jsonl", "val/a.jsonl", "test_sft/a.jsonl"], "test, val"),
        (["xTrain.jsonl", "xTest.jsonl"], "test"),
        (["trn.jsonl", "heldout.jsonl"], "heldout"),
    ],
)
def test_splits_side_by_side_are_told(tmp_path: Path, names: list[str], said: str) -> None:
    put(tmp_path, *names, "notes.jsonl")
    with pytest.warns(PacktoolWarning, match=f"files for training lie beside files of {said}, and all go into one"):
        find_files(tmp_path, None)


@pytest.mark.parametrize("names", [["train.jsonl", "extra.jsonl"], ["test.jsonl", "dev.jsonl"], ["a.jsonl"]])
def test_other_files_side_by_side_are_one_corpus(tmp_path: Path, names: list[str]) -> None:
    put(tmp_path, *names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(find_files(tmp_path, None).files) == len(names)
