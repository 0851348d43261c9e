"""What a token store must not hold is not written, and refused where it is found."""

from pathlib import Path

import numpy as np
import pytest

from packtool.errors import DataError
from packtool.formats.token_store import TokenStore, write_shard
from tests.stores import amended, document_loss, write_store


@pytest.mark.parametrize("missing", [0, 1])
def test_all_shards_say_which_tokens_train_or_none_does(tmp_path: Path, missing: int) -> None:
    path = write_store(tmp_path / "a", [3, 5], per_shard=1, loss=document_loss)
    with amended(path) as manifest:
        del manifest["shards"][missing]["loss"]
    with pytest.raises(DataError, match="not all of its shards have loss"):
        TokenStore(path)


def test_ids_beyond_the_vocabulary_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="produced id 50, but its vocabulary ends at 49"):
        write_shard(tmp_path, 0, [np.array([1, 49]), np.array([50])], np.array([0, 3]), 50)


def test_a_document_too_long_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packtool.formats.token_store.LONGEST_DOCUMENT", 5)
    write_shard(tmp_path, 0, np.zeros(8, np.uint16), np.array([0, 3, 8]), 9)
    with pytest.raises(DataError, match="a document of 6 tokens, where 5 is the most") as caught:
        write_shard(tmp_path, 1, np.zeros(8, np.uint16), np.array([0, 2, 8]), 9)
    assert caught.value.code == "document-too-long"
