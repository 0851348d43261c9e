"""Tables of values: one document a row. Of CSV every column is text, whatever it looks like; of Parquet, row groups,
long values, bytes that are not text, damage."""

import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import packtool
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.read import records_before
from packtool.text.corpus.records import Fields, Reject, Span
from packtool.text.faults import Fault
from tests.text.corpus.reading import find, only_batch, read, salvage, together
from tests.text.tokenizing.runs import ASSET


def test_a_table_without_the_column_is_refused_with_the_columns_it_has(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,a\n")
    with pytest.raises(UsageError, match=r"it has id .a text., body .a text.. Name the text with text_field"):
        packtool.tokenize(tmp_path / "a.csv", tmp_path / "store", tokenizer=ASSET)
    (tmp_path / "first.csv").write_text("text\nb\n")
    with pytest.raises(DataError) as error:
        packtool.tokenize([tmp_path / "first.csv", tmp_path / "a.csv"], tmp_path / "store", tokenizer=ASSET)
    assert str(error.value) == (
        f"{tmp_path / 'a.csv'}: no text field 'text'; there are id, body (read as csv; or format=\"text\"). "
        "Name the field with text_field or conversations, or the fields with prompt and completion, "
        'or give on_error="skip", or quarantine.'
    )


def test_a_column_that_begins_with_numbers_may_go_on_with_words(tmp_path: Path) -> None:
    beyond_a_block = 9000 * ("1," + "a" * 2000 + "\n")
    assert len(beyond_a_block) > 1 << 24
    (tmp_path / "a.csv").write_text("id,text\n" + beyond_a_block + "x,b\n")
    [file] = find(tmp_path / "a.csv")
    batches = list(read(file, Span(0), "text"))
    assert [batch.rejects for batch in batches] == [[]] * len(batches)
    assert sum(len(batch.documents) for batch in batches) == 9001


def test_parquet_pages_are_checked(tmp_path: Path) -> None:
    texts = [f"document number {n} {random.Random(n).random()}" for n in range(3000)]
    path = tmp_path / "x.parquet"
    table = pa.table({"text": texts})
    parquet.write_table(
        table, path, row_group_size=1000, compression="none", use_dictionary=False, write_page_checksum=True
    )
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"number 1700 ") + 7] ^= 1
    path.write_bytes(raw)
    kept, [reject], _ = salvage(path)
    assert kept == texts[: len(kept)]
    assert 1000 <= len(kept) < 1700
    assert reject.fault.code == "damaged-file"
    assert reject.fault.what.endswith(f"; {3000 - len(kept):,} rows are lost")


def test_parquet_rows_and_columns(tmp_path: Path) -> None:
    texts = ["a", None, "ü", "", "e"]
    table = pa.table(
        {
            "text": texts,
            "big": pa.array(texts, pa.large_string()),
            "coded": pa.array(texts).dictionary_encode(),
            "deep": [{"body": t} for t in texts[:4]] + [None],
            "number": range(5),
        }
    )
    parquet.write_table(table, tmp_path / "x", row_group_size=2)
    [file] = find(tmp_path / "x")
    assert file.format == "parquet"
    for column in ("text", "big", "coded"):
        found, rejects = together(read(file, Span(0), column))
        assert (found, [record for record, *_ in rejects]) == (["a", "ü", "", "e"], [2])
    found, rejects = together(read(file, Span(0), "deep.body"))
    assert (found, len(rejects)) == (["a", "ü", ""], 2)
    assert together(read(file, Span(0, 1, 2), "text"))[0] == ["ü", ""]
    assert records_before(file, Span(0, 1, 2)) == 2
    twice = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    [two] = only_batch(tmp_path / "twice.parquet").rejects
    assert two.fault.what == "2 columns are called 'text' (read as parquet)"
    for column, reason in (
        ("body", "no text field 'body'; there are text, big, coded, deep, number"),
        ("number", "column 'number' holds int64, not strings"),
    ):
        [batch] = read(file, Span(0), column)
        assert batch.rejects == [Reject(0, Fault("missing-text", f"{reason} (read as parquet)"), lost=file.bytes)]
    parts = [list(read(file, Span(0, *bounds), "body")) for bounds in ((0, 1), (1, 2), (2, -1))]
    lost = [reject.lost for [batch] in parts for reject in batch.rejects]
    assert len(lost) == 3
    assert 0 <= file.bytes - sum(lost) < 3


def test_parquet_with_bytes_that_are_no_text(tmp_path: Path) -> None:
    raw = pa.array([b"fine", b"\xff\xfe", None], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    parquet.write_table(pa.table({"text": broken}), tmp_path / "x.parquet")
    batch = only_batch(tmp_path / "x.parquet")
    assert batch.documents == ["fine"]
    assert [(r.record, r.fault.code, r.raw) for r in batch.rejects] == [
        (2, "invalid-utf8", b"\xff\xfe"),
        (3, "missing-text", None),
    ]


def test_values_above_the_limit_of_a_record(tmp_path: Path) -> None:
    texts = ["short", "\ufefflong 😀 " * 100, None, "日本語 " * 100]
    table = pa.table({"text": texts, "coded": pa.array(texts).dictionary_encode()})
    parquet.write_table(table, tmp_path / "x.parquet")
    for column in ("text", "coded"):
        batch = only_batch(tmp_path / "x.parquet", column, limit=1000)
        assert batch.documents == ["short", texts[3]]
        assert [reject.record for reject in batch.rejects] == [2, 3]
        assert batch.rejects[0].fault.what == "a record of 1,300 bytes, above the limit of 1,000"


def write_table_bytes() -> bytes:
    out = pa.BufferOutputStream()
    parquet.write_table(pa.table({"text": ["some text"] * 500}), out)
    data: bytes = out.getvalue().to_pybytes()
    return data


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *(("Parquet", write_table_bytes()[:cut]) for cut in (0, 3, 100, -1)),
        *(("Arrow", data) for data in (b"", b"\xff", b"\xff" * 4)),
    ],
)
def test_damaged_tables(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / f"x.{name.lower()}"
    path.write_bytes(data)
    [reject] = salvage(path)[1]
    assert reject.fault.code == "damaged-file"
    assert f"not a whole {name} file" in reject.fault.what


POINTING = """
import struct, sys, numpy as np, pyarrow as pa, packtool
from pathlib import Path
from tests.text.corpus.arrow_fuzz import COLUMNS, foreign, tokenized
for number, last in enumerate((70, 20_000, 10**9, -5)):
    for name, values in (("text", pa.array(["a" * 40, "b" * 24])), ("input_ids", pa.array([[1] * 40, [2] * 24]))):
        path, store = Path(f"{name}-{number}.arrow"), Path(f"{name}-{number}")
        table = pa.table({name: values, "n": pa.array(["c", "d"])})
        with pa.ipc.new_stream(path, table.schema) as out:
            out.write_table(table)
        data = path.read_bytes().replace(struct.pack("<3i", 0, 40, 64), struct.pack("<3i", 0, 40, last))
        path.write_bytes(data)
        assert tokenized(path, store, name) == "tokenized"
        assert not foreign(data, store, name)
        print((store / "rejected.jsonl").read_text().strip())
        if name == "text":
            assert packtool.stats(path).counts["rejected_damaged_file"] == 1
"""


def test_texts_and_lists_that_point_elsewhere_in_memory(tmp_path: Path) -> None:
    """They were read as they stood: six foreign bytes, or 20,000 of them in the rejects, or the end of the process."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", POINTING],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert len(said) == 8
    for rejected in said:
        assert json.loads(rejected)["reason"].startswith("column ")
        assert "is damaged: " in rejected


@pytest.mark.parametrize(("cases", "seed"), [(40, 1), pytest.param(1000, 2, marks=pytest.mark.slow)])
def test_damaged_arrow_files_hold_nothing_foreign(cases: int, seed: int) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.text.corpus.arrow_fuzz", str(cases), str(seed)]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.json", "a.arrow", "nested.arrow"])
@pytest.mark.parametrize("on_error", ["fail", "skip", "quarantine"])
def test_names_that_are_not_utf_8_reach_messages_escaped(tmp_path: Path, name: str, on_error: str) -> None:
    """A message and a file of rejects hold text."""
    column = pa.array(["a"])
    if name == "nested.arrow":
        column = pa.StructArray.from_arrays([column], ["text"])
    table = pa.table({"text" if name == "a.arrow" else "other": column})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    files = {
        "a.csv": b"te\xe9t,b\nx,y\n",
        "a.tsv": b"te\xe9t\tb\nx\ty\n",
        "a.jsonl": b'{"te\\ud800t": "a"}\n',
        "a.json": b'[{"te\\udce9t": "a"}]\n',
    }
    data = files.get(name, out.getvalue().to_pybytes().replace(b"text", b"te\xe9t"))
    (tmp_path / name).write_bytes(data)
    options: dict[str, Any] = {"workers": 1, "on_error": on_error}
    if on_error == "fail":
        with pytest.raises(PacktoolError) as caught:
            packtool.tokenize(tmp_path / name, tmp_path / "store", **options)
        assert str(caught.value).encode().isascii()
        return
    if on_error == "skip" and not name.endswith("arrow"):
        with pytest.raises(UsageError, match="no text field 'text' in any record") as lacking:
            packtool.tokenize(tmp_path / name, tmp_path / "store", text_field="text", **options)
        assert str(lacking.value).encode().isascii()
        return
    packtool.tokenize(tmp_path / name, tmp_path / "store", text_field="text", **options)
    if on_error == "quarantine":
        [line] = (tmp_path / "store" / "rejected.jsonl").read_text("utf-8").splitlines()
        assert any(each in line for each in ("udce9", "ud800", "not UTF-8"))


@pytest.mark.parametrize("option", ["columns", "text_field", "id_field", "separator", "eos_token"])
def test_options_that_are_not_utf_8_are_refused(tmp_path: Path, option: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(UsageError, match=rf"{option}: 't\\udce9xt' is not valid UTF-8\. Write it in UTF-8"):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "store", **{option: "t\udce9xt"})  # type: ignore[arg-type]


class Counted(io.FileIO):
    """Counts the bytes that are read."""

    read_bytes = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size) or b""
        self.read_bytes += len(data)
        return data


def test_videos_beside_texts_are_not_read_to_say_that_they_are_not_read(tmp_path: Path) -> None:
    video = [bytes(1 << 20)] * 8
    frames = [[{"path": "a", "bytes": each}] for each in video]
    columns = {"video": video, "text": ["words"] * 8, "frames": frames, "sound": [[0.5] * 100_000] * 8, "n": [1] * 8}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet", compression="none", use_dictionary=False)
    first = FORMATS["parquet"].first
    assert first is not None
    with Counted(tmp_path / "a.parquet") as file:
        assert first(file) == {
            "video": b"",
            "text": "words",
            "frames": [{"path": "", "bytes": b""}],
            "sound": [0],
            "n": 1,
        }
        assert file.read_bytes < 1 << 18
    with Counted(tmp_path / "a.parquet") as file:
        assert sum(len(batch.documents) for batch in FORMATS["parquet"].read(file, Fields(), 1 << 20)) == 8
        assert file.read_bytes < 1 << 18
