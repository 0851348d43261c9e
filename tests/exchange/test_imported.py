"""Documents out of a stream of tokens: ended where EOS is, or where it lacks."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import packtool
from packtool.formats.token_store import TokenStore
from tests.exchange.streams import stream


def lines(path: Path, *records: object) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    return path


def test_eos_is_added_where_it_lacks_and_empty_documents_are_counted(tmp_path: Path, tokenizer: Path) -> None:
    source = lines(tmp_path / "a.jsonl", {"ids": [5, 6]}, {"ids": []}, {"ids": [7, 0]}, {"ids": [0]}, {"ids": [0, 8]})
    result = packtool.import_(source, tmp_path / "store", format="jsonl", tokenizer=tokenizer)
    assert result.counts == {"documents": 4, "tokens": 9, "empty": 1, "eos_added": 2}
    store = TokenStore(tmp_path / "store")
    assert [store.document(n).tolist() for n in range(4)] == [[5, 6, 0], [7, 0], [0], [0, 8, 0]]
    assert packtool.verify(tmp_path / "store").problems == []


def test_a_document_may_span_what_is_read_at_a_time(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from packtool.exchange.formats import raw

    monkeypatch.setattr(raw, "READ_TOKENS", 4)
    ids = [3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 5, 0, 0, 1, 2, 3, 4, 5]
    np.array(ids, "<u2").tofile(tmp_path / "train.bin")
    packtool.import_(tmp_path / "train.bin", tmp_path / "store", format="nanogpt", tokenizer=tokenizer)
    store = TokenStore(tmp_path / "store")
    assert store.lengths().tolist() == [10, 2, 1, 6]
    assert stream(tmp_path / "store").tolist() == [*ids, 0]
