"""Documents in parts become whole documents, with BOS and EOS, in shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.errors import DataError
from packtool.formats.schema import TokenizerInfo
from packtool.text.encoding.encode import Parts
from packtool.text.tokenizing import store_writer
from packtool.text.tokenizing.store_writer import ShardWriter

DOCUMENTS = st.lists(st.lists(st.lists(st.integers(2, 99), max_size=4), min_size=1, max_size=3), max_size=8)
EOS, BOS = 0, 1


def tokenizer(bos: int | None = None) -> TokenizerInfo:
    return TokenizerInfo("", 100, EOS, "", bos, {})


@given(DOCUMENTS, st.booleans(), st.data())
def test_every_document_begins_and_ends_once(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[list[int]]], begun: bool, data: st.DataObject
) -> None:
    place = tmp_path_factory.mktemp("shards")
    writer = ShardWriter(place, 0, tokenizer(BOS if begun else None))
    parts = [(part, n == len(document) - 1) for document in documents for n, part in enumerate(document)]
    kept = empty = 0
    while parts:
        count = data.draw(st.integers(1, len(parts)))
        batch, parts = parts[:count], parts[count:]
        ids = np.array([token for part, _ in batch for token in part], np.uint32)
        added = writer.add(Parts(ids, np.array([len(part) for part, _ in batch]), [ends for _, ends in batch]))
        kept, empty = kept + int(added.sum()), empty + int((~added).sum())
        if batch[-1][1] and data.draw(st.booleans()):
            writer.close()
    writer.close()
    whole = [[token for part in document for token in part] for document in documents]
    expected = [[BOS] * begun + tokens + [EOS] for tokens in whole if tokens]
    found = []
    for shard in writer.shards:
        tokens, offsets = np.load(place / shard.tokens.name), np.load(place / shard.offsets.name)
        found += [part.tolist() for part in np.split(tokens, offsets[1:-1])]
    assert found == expected
    assert (kept, empty) == (len(expected), len(whole) - len(expected))
    assert writer.tokens == sum(map(len, expected))


@given(DOCUMENTS, st.booleans(), st.data())
def test_what_trains_is_written_beside_the_tokens(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[list[int]]], begun: bool, data: st.DataObject
) -> None:
    """Whatever the parts and calls: as it is said of ids and of EOS, and BOS as the token after it."""
    place = tmp_path_factory.mktemp("shards")
    writer = ShardWriter(place, 0, tokenizer(BOS if begun else None))
    expected: list[list[int]] = []
    for document in documents:
        whole: list[int] = []
        eos = data.draw(st.integers(0, 1))
        for number, part in enumerate(document):
            loss = data.draw(st.lists(st.integers(0, 1), min_size=len(part), max_size=len(part)))
            whole += loss
            last = number == len(document) - 1
            marks = np.array(loss, np.uint8), np.array([eos][: int(last)], np.uint8)
            writer.add(Parts(np.array(part, np.uint32), np.array([len(part)]), [last], *marks))
        if whole:
            expected.append([*whole[: int(begun)], *whole, eos])
        if data.draw(st.booleans()):
            writer.close()
    writer.close()
    found = []
    for shard in writer.shards:
        assert shard.loss is not None
        loss = np.load(place / shard.loss.name)
        assert (loss.dtype, loss.shape) == (np.uint8, shard.tokens.shape)
        found += [part.tolist() for part in np.split(loss, np.load(place / shard.offsets.name)[1:-1])]
    assert found == expected
    assert writer.trained == sum(map(sum, expected))


def test_a_shard_closes_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_writer, "SHARD_TOKENS", 6)
    writer = ShardWriter(tmp_path, 0, tokenizer())
    for _ in range(3):
        writer.add(Parts(np.array([5, 6], np.uint32), np.array([2]), [True]))
        writer.close_full()
    writer.close()
    assert [shard.tokens.shape for shard in writer.shards] == [(6,), (3,)]


def test_an_id_beyond_the_vocabulary_is_refused_before_it_is_cast(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, 0, tokenizer())
    with pytest.raises(DataError, match="produced id 65541, but its vocabulary ends at 99"):
        writer.add(Parts(np.array([65_541], np.uint32), np.array([1]), [True]))
