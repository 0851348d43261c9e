"""What is wrong with a record or a file is one fault: told, kept beside the columns of a batch, or sent by a worker."""

import gzip
import io
import json
import pickle
import tarfile
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from packtool.formats.token_store import TokenStore
from packtool.text.faults import Fault, bad_conversation, nothing_trains, unsuited
from packtool.warnings import PacktoolWarning
from tests.text.tokenizing.runs import run

GOOD = b"".join(b'{"text": "word %d", "id": "n%d"}\n' % (number, number) for number in range(3000))


@pytest.mark.parametrize("fault", [Fault("bad-field", "x"), bad_conversation("x"), nothing_trains("x"), unsuited("x")])
def test_a_fault_keeps_all_its_parts_on_the_way_from_a_worker(fault: Fault) -> None:
    again = pickle.loads(pickle.dumps(fault))
    assert again == fault
    assert hash(again) == hash(fault)
    assert str(again.at("a.jsonl:3", ", or leave it out")) == str(fault.at("a.jsonl:3", ", or leave it out"))
    assert again != Fault("bad-field", "y")
    assert again != Fault(fault.code, fault.what, "do something else")


def tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"), io.BytesIO())
    return made.getvalue()


def table(**columns: list[object]) -> bytes:
    made = io.BytesIO()
    parquet.write_table(pa.table(columns), made)
    return made.getvalue()


UNUSABLE = {
    "LICENSE.txt": b"Words, in a licence.",
    "tar.txt": tar(),
    "cut.jsonl.gz": gzip.compress(GOOD)[:-9],
    "cut.parquet": table(text=["a"], id=["b"])[:-5],
    "no-text.parquet": table(body=["a"], id=["b"]),
    "no-id.parquet": table(text=["a"]),
    "nested.parquet": table(text=["a"], id=[{"b": 1}]),
    "no-id.csv": b"text,url\na,b\nc,d\n",
    "cut.json": b'[{"text": "a", "id": "b"}, {"text',
    "open.csv": b'text,id\na,b\n"c,d\n',
    "long.jsonl": json.dumps({"text": "x" * 3_000_000, "id": "y"}).encode() + b"\n",
    "wide.jsonl": GOOD.decode().encode("utf-16"),
}
"""Files that can't be used, wholly or from some place on."""
WITHOUT_ID = ("LICENSE.txt", "no-id.parquet", "no-id.csv")
"""Of these, files that can be used unless the id is required."""


@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("on_error", ["skip", "quarantine"])
@pytest.mark.parametrize("options", [{"columns": ["id"]}, {"id_field": "id"}], ids=str)
def test_columns_of_what_can_be_used_are_kept_beside_what_cannot(
    tmp_path: Path, name: str, on_error: str, options: dict[str, object]
) -> None:
    (tmp_path / name).write_bytes(UNUSABLE[name])
    (tmp_path / "good.jsonl").write_bytes(GOOD)
    inputs = [tmp_path / name, tmp_path / "good.jsonl"]
    usable = name in WITHOUT_ID and "columns" in options
    with nullcontext() if usable else pytest.warns(PacktoolWarning, match="1 record could not be used"):
        run(inputs, tmp_path / "s", text_field="text", on_error=on_error, max_record_bytes=1_000_000, **options)
    store = TokenStore(tmp_path / "s")
    ids = store.column("id").to_pylist()
    assert len(ids) == store.documents
    assert ids[-3000:] == [f"n{number}" for number in range(3000)]
    assert (tmp_path / "s" / "rejected.jsonl").exists() == (on_error == "quarantine" and not usable)


def test_a_time_that_python_has_not_is_no_crash(tmp_path: Path) -> None:
    times = pa.array([1 << 44], pa.timestamp("s"))
    parquet.write_table(pa.table({"text": ["a"], "at": times}), tmp_path / "a.parquet")
    run(tmp_path / "a.parquet", tmp_path / "s")
    assert TokenStore(tmp_path / "s").documents == 1
