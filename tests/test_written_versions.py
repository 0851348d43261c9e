"""Read every version of the format as packtool wrote it: an archive in `tests/golden` has datasets of versions 3 to 6.

`python -m tests.test_written_versions` writes the archive anew; a release whose format has more adds one of its own.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import packtool

ARCHIVE = Path(__file__).parent / "golden" / "written-0.1-versions.tar.xz"
VERSIONS = {"texts": 3, "rows": 3, "index": 4, "chats": 5, "trained": 5, "kept": 6}
"""Stores and datasets of the archive, and the version of the format that each has."""
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


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("versions")
    checked = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(place, **checked)
    return place


def test_every_version_is_read(written: Path) -> None:
    for name, version in VERSIONS.items():
        manifest = json.loads((written / name / "manifest.json").read_text(encoding="utf-8"))
        assert manifest["format_version"] == version, name
        assert packtool.verify(written / name), name
        assert packtool.info(written / name), name


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
