"""What an export becomes on its way through a trainer: whether documents of a row see each other in the model, and
whether only those tokens train that do in the store."""

import json
from pathlib import Path

import numpy as np
import pytest

import packtool
from tests.interop.peers import HERE, ROOT, in_peer
from tests.test_docs import blocks
from tests.text.tokenizing.runs import ASSET

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a store, packed rows of it, and both exported under the names that the page gives them."""
    place = tmp_path_factory.mktemp("trained")
    words = np.random.default_rng(0).integers(1, 12, 200)
    texts = (" ".join(f"w{number}x{n}" for n in range(count)) for number, count in enumerate(words))
    chats = [{"prompt": text[: len(text) // 2], "completion": text[len(text) // 2 :] + "."} for text in texts]
    (place / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    (place / "chat.jinja").write_text(TEMPLATE)
    packtool.tokenize(place / "chats.jsonl", place / "store", tokenizer=ASSET, chat_template=place / "chat.jinja")
    packtool.pack(place / "store", place / "packed", strategy="bfd", sequence_length=64, too_long="drop")
    packtool.export(place / "packed", place / "parquet", format="parquet")
    packtool.export(place / "packed", place / "rows-arrow", format="arrow")
    packtool.export(place / "store", place / "for-axolotl", format="parquet", max_tokens=64)
    return place


def prepared(place: Path, peer: str) -> None:
    """Run what the page has for a trainer."""
    name = f"for_{peer}.py"
    (code,) = (code for _, found, code in blocks(ROOT / "docs" / "coming-from.md") if found == name)
    (place / name).write_text(code)
    in_peer(peer, place, name)


@pytest.mark.parametrize(
    ("way", "peer", "export", "apart"),
    [
        ("trainer", "training", "parquet", True),
        ("trainer", "training", "rows-arrow", True),
        ("trainer eval", "training", "parquet", True),
        ("trl padding_free", "training", "parquet", True),
        ("trl padding_free", "training", "rows-arrow", True),
        ("trl", "training", "parquet", False),
        ("trl packing", "training", "parquet", False),
        ("lightning", "training", "parquet", True),
        ("lightning use_cache", "training", "parquet", False),
        ("llamafactory", "llamafactory", "for-llamafactory", True),
        ("llamafactory plain", "llamafactory", "for-llamafactory", False),
        ("axolotl", "axolotl", "for-axolotl.parquet", True),
        ("axolotl", "axolotl", "for-llamafactory", False),
    ],
)
def test_documents_of_a_row_see_each_other_only_where_the_page_says_so(
    place: Path, way: str, peer: str, export: str, apart: bool
) -> None:
    if export.startswith("for-") and not (place / export).exists():
        prepared(place, Path(export).stem.removeprefix("for-"))
    found = json.loads(in_peer(peer, place, HERE / "what_trains.py", way, export, "store").splitlines()[-1])
    assert found["rows"] >= 6
    assert found["documents"] >= (found["rows"] if export.endswith(".parquet") else 2 * found["rows"])
    assert found["targets"] > 0
    assert found["labels"] > 0
    assert found["wrong"] == 0, found["first_wrong"]
    assert (found["difference"] < 1e-5) == apart
    if not apart:
        assert found["difference"] > 0.1
