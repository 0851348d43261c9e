"""The tokenizer's files stay with the tokens: from the store to rows, other orders, exports and back."""

from pathlib import Path

import pytest

import packtool
from packtool.errors import PacktoolError
from packtool.formats.names import TOKENIZER
from tests.making import write_records
from tests.stores import amended
from tests.text.encoding import shapes

TEXTS = ["a short text", "another, a little longer than the first one", "été"] * 5
CONFIG = b'{"eos_token": "<|endoftext|>"}'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, and a store made with a tokenizer that has a configuration file beside it; the tokenizer is gone."""
    top = tmp_path_factory.mktemp("tokenizer")
    write_records(top / "corpus.jsonl", [{"text": text} for text in TEXTS])
    (top / "model").mkdir()
    (top / "model" / TOKENIZER).write_bytes(shapes.data(shapes.spec()))
    (top / "model" / "tokenizer_config.json").write_bytes(CONFIG)
    packtool.tokenize(top / "corpus.jsonl", top / "store", tokenizer=top / "model", workers=1)
    (top / "model" / TOKENIZER).rename(top / "model" / "gone")
    return top


def test_every_dataset_has_the_tokenizer_that_made_its_tokens(made: Path, tmp_path: Path) -> None:
    packtool.pack(made / "store", tmp_path / "packed", strategy="bfd", sequence_length=32)
    packtool.shuffle(tmp_path / "packed", tmp_path / "shuffled", method="atom", epoch=1)
    packtool.shuffle(made / "store", tmp_path / "partial", method="partial", sequence_length=8, batch_size=2)
    packtool.export(made / "store", tmp_path / "exported", format="megatron")
    packtool.import_(tmp_path / "exported", tmp_path / "back", format="megatron")
    for path in (made / "store", *(tmp_path / name for name in ("packed", "shuffled", "partial", "exported", "back"))):
        assert (path / TOKENIZER).read_bytes() == shapes.data(shapes.spec())
        assert (path / "tokenizer_config.json").read_bytes() == CONFIG
        assert packtool.verify(path).problems == []
    for name in ("packed", "shuffled"):
        segments = packtool.show(tmp_path / name, 0).segments
        assert segments[0].text
        assert segments[0].text.removesuffix("<|endoftext|>") in TEXTS


def test_a_store_is_a_tokenizer(made: Path, tmp_path: Path) -> None:
    packtool.tokenize(made / "corpus.jsonl", tmp_path / "again", tokenizer=made / "store", workers=1)
    assert (tmp_path / "again" / "manifest.json").read_bytes() == (made / "store" / "manifest.json").read_bytes()


def test_what_was_changed_is_found(made: Path, tmp_path: Path) -> None:
    packtool.pack(made / "store", tmp_path / "packed", strategy="bfd", sequence_length=32)
    with amended(tmp_path / "packed") as manifest:
        manifest["tokenizer"]["sha256"] = "0" * 64
    assert "its sha256 is" in str(packtool.verify(tmp_path / "packed").problems[0])
    (tmp_path / "packed" / TOKENIZER).write_text("{}")
    with pytest.raises(PacktoolError, match="has 2 bytes, but the manifest says"):
        packtool.show(tmp_path / "packed", 0)
