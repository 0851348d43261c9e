"""Rejected records: kept with their place and their reason."""

import base64
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from packtool.errors import DataError
from packtool.warnings import PacktoolWarning
from tests.stores import contents
from tests.text.tokenizing.runs import TEXTS, fails, jsonl, run, special_texts


@pytest.mark.usefixtures("small_blocks")
@special_texts
def test_quarantine_keeps_every_bad_record_and_its_place(tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"good {n} " * 5}).encode() for n in range(200)]
    for at, bad in ((3, b'{"text": 1}'), (77, b"nonsense"), (150, b'{"text": "\xff"}'), (199, b'{"text": "\\udc00"}')):
        lines[at] = bad
    (tmp_path / "bad.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(jsonl(TEXTS)) + gzip.compress(jsonl(TEXTS))[:12])
    inputs = [tmp_path / "bad.jsonl", tmp_path / "cut.jsonl.gz"]
    stores = {}
    said = "5 records could not be used, of which 1 is all that follows the damage in a file"
    for workers in (1, 2):
        with pytest.warns(PacktoolWarning, match=said):
            result = run(inputs, tmp_path / f"q{workers}", on_error="quarantine", workers=workers)
        stores[workers] = contents(result.path)
    assert stores[1] == stores[2]
    rejected = [json.loads(line) for line in stores[1]["rejected.jsonl"].splitlines()]
    assert [(r["file"], r.get("record"), r["code"], r.get("raw")) for r in rejected] == [
        ("bad.jsonl", 4, "missing-text", '{"text": 1}'),
        ("bad.jsonl", 78, "invalid-json", "nonsense"),
        ("bad.jsonl", 151, "invalid-utf8", None),
        ("bad.jsonl", 200, "lone-surrogate", '{"text": "\\udc00"}'),
        ("cut.jsonl.gz", None, "damaged-file", None),
    ]
    assert not any("bytes" in record for record in rejected), "all of each is there"
    assert base64.b64decode(rejected[2]["raw_base64"]) == b'{"text": "\xff"}'
    assert result.counts["documents"] == 196 + len(TEXTS)
    assert result.counts["rejected"] == 5
    assert result.counts["rejected_invalid_json"] == 1
    with pytest.warns(PacktoolWarning):
        skipped = run(inputs, tmp_path / "skip", on_error="skip")
    assert not (skipped.path / "rejected.jsonl").exists()
    assert skipped.counts == result.counts
    share = 5 / (5 + 196 + len(TEXTS))
    for most, enough in ((5, True), (f"{100 * share + 0.01}%", True), (share - 0.0001, False), ("5/100000", False)):
        folder = tmp_path / f"share-{most}".replace("/", "-")
        if enough:
            with pytest.warns(PacktoolWarning):
                run(inputs, folder, on_error="skip", max_errors=most)
        else:
            message = fails(DataError, inputs, folder, on_error="skip", max_errors=most)
            assert "% of all records can't be used; here " in message
    for workers in (1, 2):
        message = fails(DataError, inputs, tmp_path / f"m{workers}", on_error="skip", max_errors=4, workers=workers)
        assert "more than 4 records can't be used; " in message
        assert message.startswith(tuple(map(str, inputs)))
        message = fails(DataError, inputs[0], tmp_path / f"f{workers}", workers=workers)
        assert message.startswith(f"{inputs[0]}:4: text field 'text' is a number")


@pytest.mark.usefixtures("small_blocks")
def test_a_failing_line_is_named_by_its_number_in_the_file(tmp_path: Path) -> None:
    lines = jsonl(["some words " * 10] * 300)
    (tmp_path / "a.jsonl").write_bytes(lines + b"{}\n" + lines)
    assert f"{tmp_path / 'a.jsonl'}:301: no text field 'text'" in fails(DataError, tmp_path / "a.jsonl", tmp_path / "o")
    table = pa.table({"text": ["x" * 30] * 250 + [None] + ["x"] * 50})
    parquet.write_table(table, tmp_path / "b.parquet", row_group_size=20)
    assert f"{tmp_path / 'b.parquet'}:251: text column 'text' is null" in fails(
        DataError, tmp_path / "b.parquet", tmp_path / "p"
    )


@pytest.mark.usefixtures("small_blocks")
@special_texts
def test_what_is_lost_with_a_file_is_counted(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.jsonl").write_bytes(jsonl(TEXTS))
    table = pa.table({"body": [f"{n} and more" for n in range(3000)]})
    parquet.write_table(table, folder / "other.parquet", row_group_size=500, use_dictionary=False)
    (folder / "cut.parquet").write_bytes((folder / "other.parquet").read_bytes()[:-9])
    (folder / "page.jsonl").write_text("<html>")
    (folder / "other.csv").write_text("body\na\n")
    lost = sum(path.stat().st_size for path in folder.iterdir() if path.name != "good.jsonl")
    for workers in (1, 2):
        with pytest.warns(PacktoolWarning, match="bytes of files are lost with all records in them"):
            result = run(folder, tmp_path / f"o{workers}", on_error="skip", workers=workers)
        assert result.counts["documents"] == len(TEXTS)
        assert 0 <= lost - result.counts["lost_bytes"] < result.counts["rejected"]


def test_a_share_of_errors_counts_the_bytes_of_what_can_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(900) + b"PAR1")
    (tmp_path / "b.jsonl").write_bytes(jsonl(f"text {n}" for n in range(5000)))
    inputs = [tmp_path / "a.parquet", tmp_path / "b.jsonl"]
    with pytest.warns(PacktoolWarning, match="bytes of files are lost"):
        lost = run(inputs, tmp_path / "any", on_error="skip").counts["lost_bytes"]
    size = sum(path.stat().st_size for path in inputs)
    message = fails(DataError, inputs, tmp_path / "few", on_error="skip", max_errors=f"{lost - 1}/{size}")
    assert message.startswith(f"{inputs[0]}: more than ")
    assert f"records can't be used; {lost:,} of {size:,} bytes of the files can't be read." in message
    with pytest.warns(PacktoolWarning):
        run(inputs, tmp_path / "enough", on_error="skip", max_errors=f"{lost}/{size}")


def test_an_empty_text_lacks_no_column(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "b.jsonl").write_text('{"text": "words", "n": 1}\n')
    counts = run([tmp_path / "a.txt", tmp_path / "b.jsonl"], tmp_path / "o", columns=["n"]).counts
    assert (counts["documents"], counts["rejected"]) == (1, 0)
