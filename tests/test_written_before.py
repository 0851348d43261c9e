"""Read what was written before: archives in `tests/golden` hold datasets as they lay on disk.

`written-0.1` is of packtool 0.1.0: a store of 120 documents with ids, and of it `bfd` without a hold-out, `padding` in
atoms of four rows, `buckets`, `plain` without a segment table, an order of `bfd`, batches of `buckets`, and an export
of `bfd` to Parquet. `written-0.1-versions` has every version of the format, 3 to 6:
`python -m tests.test_written_before` writes it anew; a release whose format has more adds one of its own.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.errors import DataError

GOLDEN = Path(__file__).parent / "golden"
ARCHIVE = GOLDEN / "written-0.1-versions.tar.xz"
KINDS = ("store", "bfd", "padding", "buckets", "plain", "batches", "export")
PACKED = ("bfd", "padding", "plain")
VERSIONS = {"texts": 3, "rows": 3, "index": 4, "chats": 5, "trained": 5, "kept": 6}
"""Stores and datasets of the second archive, and the version of the format that each has."""
TEMPLATE = """{% for m in messages %}<{{ m.role }}>{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"""


def write(place: Path) -> None:
    """Write stores of texts and of chats, and of them rows, an index, rows that say what trains, and kept columns."""
    texts, chats = [], []
    for number in range(40):
        text = f"Document {number}: {'a corpus of many words ' * (number % 9)}"
        texts.append({"id": f"doc-{number}", "text": text, "score": number % 5})
        asked, said = {"role": "user", "content": text}, {"role": "assistant", "content": f"It is {number}."}
        chats.append({"messages": [asked, said]})
    packtool.tokenize(texts, place / "texts", id_field="id", columns="score")
    (place / "template.jinja").write_text(TEMPLATE)
    packtool.tokenize(chats, place / "chats", chat_template=place / "template.jinja")
    (place / "template.jinja").unlink()
    packtool.pack(place / "texts", place / "rows", strategy="bfd", sequence_length=64)
    packtool.pack(place / "texts", place / "index", strategy="bfd", sequence_length=64, index_only=True)
    packtool.pack(place / "texts", place / "kept", strategy="bfd", sequence_length=64, keep="score:number")
    packtool.pack(place / "chats", place / "trained", strategy="bfd", sequence_length=96)


def extracted(archive: Path, place: Path) -> Path:
    checked = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
    with tarfile.open(archive) as opened:
        opened.extractall(place, **checked)
    return place


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extracted(GOLDEN / "written-0.1.tar.xz", tmp_path_factory.mktemp("written"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extracted(ARCHIVE, tmp_path_factory.mktemp("versions"))


def test_everything_verifies_and_is_described(old: Path, written: Path) -> None:
    for path in [*(old / kind for kind in KINDS), *(written / name for name in VERSIONS)]:
        assert packtool.verify(path).problems == [], path
        assert packtool.info(path).state == "whole", path
    for name, version in VERSIONS.items():
        manifest = json.loads((written / name / "manifest.json").read_text(encoding="utf-8"))
        assert manifest["format_version"] == version, name


@pytest.mark.parametrize("kind", PACKED)
def test_rows_are_those_on_disk(old: Path, kind: str) -> None:
    stored = np.concatenate([np.load(file) for file in sorted((old / kind).glob("tokens-*.npy"))])
    dataset = packtool.open(old / kind)
    np.testing.assert_array_equal(dataset[:], stored)
    np.testing.assert_array_equal(dataset[np.arange(len(dataset))[::-1]], stored[::-1])


def test_segments_name_the_documents_of_the_store(old: Path) -> None:
    dataset = packtool.open(old / "bfd")
    store_tokens = np.concatenate([np.load(file) for file in sorted((old / "store").glob("tokens-*.npy"))])
    offsets = np.load(old / "store" / "offsets-00000.npy")
    chosen = np.load(old / "bfd" / "chosen.npy")
    for row in range(len(dataset)):
        at = 0
        for document, start, length, _ in dataset.segments(row).tolist():
            if document >= 0:
                begin = int(offsets[chosen[document]]) + start
                np.testing.assert_array_equal(dataset[row][at : at + length], store_tokens[begin : begin + length])
            at += length


def test_an_order_is_the_one_that_an_epoch_computes(old: Path) -> None:
    rows, order = packtool.open(old / "bfd"), np.load(old / "order" / "order.npy")
    np.testing.assert_array_equal(packtool.open(old / "bfd").epoch(1)[: len(order)], rows[order])
    with pytest.raises(DataError, match=r"an order, which is not read any more\. Read its dataset in an epoch, which"):
        packtool.verify(old / "order")


def test_batches_are_read_in_their_order(old: Path) -> None:
    batches = packtool.open(old / "batches")
    table = np.load(old / "batches" / "batches.npy")
    assert [batch.shape for batch in batches] == [(rows, bucket) for bucket, _, rows in table.tolist()]


def test_the_store_packs_to_the_same_rows(old: Path, tmp_path: Path) -> None:
    packtool.pack(old / "store", tmp_path / "padding", strategy="padding", sequence_length=32, atom_size=128)
    np.testing.assert_array_equal(packtool.open(tmp_path / "padding")[:], packtool.open(old / "padding")[:])


def test_a_document_is_found_by_its_id(old: Path) -> None:
    assert packtool.find(old / "padding", "doc-7", store=[old / "store"])


def test_an_index_gathers_the_rows_that_were_written_beside_it(written: Path) -> None:
    rows = packtool.open(written / "rows")
    np.testing.assert_array_equal(packtool.open(written / "index")[:], rows[:])
    np.testing.assert_array_equal(packtool.open(written / "kept")[:], rows[:])


def test_columns_are_those_of_the_documents(written: Path) -> None:
    kept = packtool.open(written / "kept")
    scores = kept.batch(slice(None), fields=("column.score",))["column.score"]
    documents = np.concatenate([kept.segments(row)["document"] for row in range(len(kept))])
    np.testing.assert_array_equal(scores[~np.isnan(scores)], documents[documents >= 0] % 5)  # padding has none


def test_what_trains_is_what_the_store_says(written: Path) -> None:
    trained = packtool.open(written / "trained")
    stored = np.concatenate([np.load(file) for file in sorted((written / "chats").glob("loss-*.npy"))])
    assert sum(int(trained.loss(row).sum()) for row in range(len(trained))) == int(stored.sum()) > 0


def _without_the_machine(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out who wrote a file, when and on which machine."""
    if entry.name.endswith("run.json"):
        return None
    entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
    return entry


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(ARCHIVE, "w:xz") as made:
        write(Path(scratch))
        for name in VERSIONS:
            made.add(Path(scratch) / name, name, filter=_without_the_machine)
