"""Documents get BOS and EOS, and go to shards, with what trains of them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.errors import DataError
from packtool.formats.schema import TokenizerInfo
from packtool.text.encoding.encode import EncodedDocuments
from packtool.text.tokenizing import store_writer
from packtool.text.tokenizing.store_writer import ShardWriter

DOCUMENTS = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(2, 99), st.integers(0, 1)), max_size=9), st.integers(0, 1))
)
EOS, BOS = 0, 1


def tokenizer(bos: int | None = None) -> TokenizerInfo:
    return TokenizerInfo("", 100, EOS, "", bos, {})


def encoded(documents: list[tuple[list[tuple[int, int]], int]], loss: bool) -> EncodedDocuments:
    lengths = np.array([len(text) for text, _ in documents], np.int64)
    pairs = np.array([pair for text, _ in documents for pair in text], np.uint32).reshape(-1, 2)
    eos = np.array([trains for _, trains in documents], np.uint8)
    return EncodedDocuments(pairs[:, 0], lengths, *((pairs[:, 1].astype(np.uint8), eos) if loss else ()))


@given(DOCUMENTS, st.booleans(), st.booleans(), st.data())
def test_documents_are_written_with_what_trains_of_them(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[tuple[list[tuple[int, int]], int]],
    begun: bool,
    loss: bool,
    data: st.DataObject,
) -> None:
    """Whatever the calls: ids and their loss, EOS with its own, and BOS with that of the token after it."""
    place = tmp_path_factory.mktemp("shards")
    writer = ShardWriter(place, 0, tokenizer(BOS if begun else None))
    rest, kept = documents, []
    while rest:
        count = data.draw(st.integers(1, len(rest)))
        kept += writer.add(encoded(rest[:count], loss)).tolist()
        rest = rest[count:]
        if data.draw(st.booleans()):
            writer.close()
    writer.close()
    assert kept == [len(text) > 0 for text, _ in documents]
    expected = [[(BOS, text[0][1])] * begun + text + [(EOS, eos)] for text, eos in documents if text]
    found: list[list[int]] = []
    trains: list[list[int]] = []
    for shard in writer.shards:
        ends = np.load(place / shard.offsets.name)[1:-1]
        found += [part.tolist() for part in np.split(np.load(place / shard.tokens.name), ends)]
        if loss:
            marks = np.load(place / shard.loss.name)
            assert (marks.dtype, marks.shape) == (np.uint8, shard.tokens.shape)
            trains += [part.tolist() for part in np.split(marks, ends)]
    assert found == [[token for token, _ in document] for document in expected]
    assert trains == [[mark for _, mark in document] for document in expected if loss]
    assert (writer.tokens, writer.trained) == (sum(map(len, found)), sum(map(sum, trains)))


def test_a_shard_closes_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "SHARD_TOKENS", 6)
    writer = ShardWriter(tmp_path, 0, tokenizer())
    for _ in range(3):
        writer.add(EncodedDocuments(np.array([5, 6], np.uint32), np.array([2])))
    writer.close()
    assert [shard.tokens.shape for shard in writer.shards] == [(6,), (3,)]


def test_an_id_beyond_the_vocabulary_is_refused_before_it_is_cast(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, 0, tokenizer())
    with pytest.raises(DataError, match="produced id 65541, but its vocabulary ends at 99"):
        writer.add(EncodedDocuments(np.array([65_541], np.uint32), np.array([1])))
