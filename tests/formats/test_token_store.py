"""Documents of one store, and of several as one corpus, wherever their shards end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats.schema import TokenizerInfo
from packtool.formats.token_store import Corpus, TokenStore, write_shard
from tests.stores import EOS, VOCAB, amended, document_loss, document_tokens, write_store

LENGTHS = [5, 1, 9, 30, 2, 2, 1, 7]


def test_documents_come_back_from_any_shard(tmp_path: Path) -> None:
    for per_shard in (1, 3, 8):
        store = TokenStore(write_store(tmp_path / str(per_shard), LENGTHS, per_shard=per_shard))
        assert (store.documents, store.tokens, len(store.shards)) == (8, sum(LENGTHS), -(-8 // per_shard))
        assert store.lengths().tolist() == LENGTHS
        for number, length in enumerate(LENGTHS):
            assert store.document(number).tolist() == document_tokens(number, length)
        assert {file.entry.name for file in store.files()} == {file.name for file in store.place.path.glob("*.npy")}


def test_a_corpus_numbers_the_documents_of_all_stores(tmp_path: Path) -> None:
    paths = [
        write_store(tmp_path / "a", LENGTHS, per_shard=3),
        write_store(tmp_path / "empty", []),
        write_store(tmp_path / "b", LENGTHS[:4], first=8),
    ]
    corpus = Corpus(paths)
    assert (corpus.documents, corpus.tokens) == (12, sum(LENGTHS) + sum(LENGTHS[:4]))
    assert corpus.lengths().tolist() == LENGTHS + LENGTHS[:4]
    stream = np.concatenate(corpus.shards)

    def found(document: int) -> list[int]:
        place = int(corpus.locate(np.array([document]))[0])
        return stream[place : place + int(corpus.lengths()[document])].tolist()

    lengths = LENGTHS + LENGTHS[:4]
    assert [found(n) for n in range(12)] == [document_tokens(n, length) for n, length in enumerate(lengths)]
    corpus.choose([np.array([3, 0, 3]), np.array([], np.int64), np.array([1])])
    assert corpus.store_documents == [3, 0, 1]
    assert corpus.lengths().tolist() == [30, 5, 30, 1]
    assert (corpus.documents, corpus.tokens) == (4, 66)
    assert [found(n) for n in range(4)] == [document_tokens(n, lengths[n]) for n in (3, 0, 3, 9)]
    assert corpus.stored_lengths().tolist() == lengths
    corpus.release()
    assert found(0) == document_tokens(3, 30)


def test_stores_of_different_tokenizers_are_no_corpus(tmp_path: Path) -> None:
    other = TokenizerInfo(sha256="1" * 64, vocab_size=VOCAB, eos_id=EOS, eos_token="<eos>", added_tokens={"<eos>": EOS})
    write_store(tmp_path / "a", LENGTHS)
    write_store(tmp_path / "b", LENGTHS, tokenizer=other)
    with pytest.raises(UsageError, match=r"tokenizer sha256 is 1{64}, but 0{64} in") as caught:
        Corpus([tmp_path / "a", tmp_path / "b"])
    assert caught.value.code == "stores-differ"


def test_which_tokens_train_lies_beside_the_tokens(tmp_path: Path) -> None:
    store = TokenStore(write_store(tmp_path / "a", [3, 5, 1, 4], per_shard=3, loss=document_loss))
    assert [loss.tolist() for loss in store.loss] == [
        document_loss(0, 3) + document_loss(1, 5) + document_loss(2, 1),
        document_loss(3, 4),
    ]
    assert [file.entry.name for file in store.files()][-2:] == ["loss-00000.npy", "loss-00001.npy"]
    assert TokenStore(write_store(tmp_path / "b", [3])).loss is None
    assert packtool.verify(tmp_path / "a").problems == []


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
