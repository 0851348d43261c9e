"""What is imported is what a naive reader reads; streams of tokens become documents where EOS is, or where it lacks."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.exchange.formats import datatrove, megatron, raw
from packtool.formats.token_store import TokenStore
from tests.exchange.foreign import VOCAB, WRITERS, Document, ended, read, write
from tests.exchange.fuzz import says_no_type
from tests.exchange.readers import TABLES
from tests.exchange.streams import words
from tests.making import write_records


def documents(store: Path) -> list[Document]:
    """Of a store, with what trains of them: all, where it does not say."""
    opened, found = TokenStore(store), []
    loss = np.concatenate(opened.loss) if opened.loss else np.ones(opened.tokens, np.uint8)
    for number, trains in enumerate(np.split(loss, np.cumsum(opened.lengths())[:-1])):
        found.append(Document(opened.document(number).tolist(), (trains == 1).tolist()))
    return found


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_imported_is_what_a_naive_reader_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever the types, masks and boundaries of files, and however few tokens are read at a time."""
    for module in (raw, datatrove, megatron):
        monkeypatch.setattr(module, "READ_TOKENS", 4)
    words(VOCAB).save(str(tmp_path / "tokenizer.json"))
    for seed in range(10):
        place, out = tmp_path / f"in-{seed}", tmp_path / f"out-{seed}"
        place.mkdir()
        write(name, place, random.Random(seed))
        options: dict[str, Any] = {"format": name, "tokenizer": tmp_path / "tokenizer.json"}
        if name in ("nanogpt", "olmo") and says_no_type(place):
            options["dtype"] = "uint16"
        expected = list(read(name, place))
        result = packtool.import_(place, out, **options)
        assert documents(out) == expected
        assert (result.counts["documents"], result.counts["tokens"]) == (
            len(expected),
            sum(len(document.ids) for document in expected),
        )
        if "trained_tokens" in result.counts:
            assert result.counts["trained_tokens"] == sum(sum(document.trains) for document in expected)
        assert packtool.verify(out).problems == []
        if name in TABLES:
            plain = packtool.import_(place, tmp_path / f"plain-{seed}", ids_only=True, **options)
            assert documents(plain.path) == [each for row in TABLES[name](place) for each in ended(row["input_ids"])]
            assert "trained_tokens" not in plain.counts


def test_eos_is_added_where_it_lacks_and_empty_documents_are_counted(tmp_path: Path, tokenizer: Path) -> None:
    lists: list[list[int]] = [[5, 6], [], [7, 0], [0], [0, 8]]
    source = write_records(tmp_path / "a.jsonl", [{"ids": ids} for ids in lists])
    result = packtool.import_(source, tmp_path / "store", format="jsonl", tokenizer=tokenizer)
    assert result.counts == {"documents": 4, "tokens": 9, "empty": 1, "eos_added": 2}
    store = TokenStore(tmp_path / "store")
    assert [store.document(n).tolist() for n in range(4)] == [[5, 6, 0], [7, 0], [0], [0, 8, 0]]
    assert packtool.verify(tmp_path / "store").problems == []
