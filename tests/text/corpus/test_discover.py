"""What arguments stand for: every file and directory once, links and pipes told, nothing left out without a word."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from packtool.errors import DataError
from packtool.text.corpus.discover import discover_files
from packtool.text.corpus.find import find_files
from packtool.warnings import PacktoolWarning
from tests.text.corpus.reading import find as files
from tests.text.corpus.reading import put

LINE = b'{"text": "a"}\n'


def names(top: Path, **options: object) -> list[str]:
    return [file.name for file in discover_files(top, **options).files]  # type: ignore[arg-type]


def test_only_known_suffixes_are_read_from_a_directory(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", "b.JSONL", "README.md", "t.xml", "d/dataset_info.json", "d/e.txt.gz", "LICENSE", "x.gz")
    found = discover_files(tmp_path)
    assert [file.name for file in found.files] == ["a.jsonl", "b.JSONL", "d/e.txt.gz"]
    assert found.skipped == ["LICENSE", "README.md", "d/dataset_info.json", "t.xml", "x.gz"]
    assert names(tmp_path, include=["*.md", "d/*"], format="text") == ["README.md", "d/dataset_info.json", "d/e.txt.gz"]
    assert names(tmp_path, exclude=["*.JSONL", "d/**"]) == ["a.jsonl"]
    assert names(tmp_path / "README.md", format="text") == ["README.md"]
    with pytest.raises(DataError, match=r"no file is left\. Check include and exclude"):
        discover_files(tmp_path, include=["*.nothing"])
    (tmp_path / "a.jsonl").unlink()
    (tmp_path / "b.JSONL").unlink()
    (tmp_path / "d" / "e.txt.gz").unlink()
    with pytest.raises(
        DataError, match=r"no file has a known name and suffix; there are LICENSE, README\.md, .*\. Name the"
    ):
        discover_files(tmp_path)


def test_finding_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.jsonl", "a/z.txt", "a/y.json.gz", "a/.git/x", "_SUCCESS", ".hidden", "c"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        plain = b"plain" if name.endswith("txt") else b'\n {"text": 1}'
        path.write_bytes(gzip.compress(b"[1]") if name.endswith("gz") else plain)
    kinds = [(file.name, file.format, file.compression) for file in files(tmp_path / "in")]
    assert kinds == [("a/y.json.gz", "json", "gzip"), ("a/z.txt", "text", ""), ("b.jsonl", "jsonl", "")]
    assert discover_files(tmp_path / "in").skipped == ["c"]
    assert [file.format for file in files(tmp_path / "in" / "c", "jsonl")] == ["jsonl"]
    assert [file.name for file in files(tmp_path / "in" / "**" / "*.json*")] == ["a/y.json.gz", "b.jsonl"]
    monkeypatch.chdir(tmp_path / "in")
    assert [file.name for file in files("*.jsonl")] == ["b.jsonl"]
    assert [file.name for file in files("a/*")] == ["y.json.gz", "z.txt"]
    assert [file.format for file in files("b.jsonl", "lines")] == ["lines"]
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "empty", tmp_path / "gone", "*.none"):
        with pytest.raises(DataError, match=r"(empty directory|no such file|no file matches)"):
            files(nothing)


def test_documents_of_work_in_progress_are_listed(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", "_part-0.jsonl", "_temporary/0/b.jsonl", ".c.jsonl", ".git/d.jsonl", "_SUCCESS", ".crc")
    found = discover_files(tmp_path)
    assert [file.name for file in found.files] == ["a.jsonl"]
    hidden = [".c.jsonl", ".git/d.jsonl", "_part-0.jsonl", "_temporary/0/b.jsonl"]
    assert found.skipped == hidden
    listed = ", ".join(map(re.escape, hidden))
    with pytest.warns(PacktoolWarning, match=f"or begin with _ or a dot: {listed}"):
        find_files(tmp_path, None)
    assert names(tmp_path / "_part-0.jsonl") == ["_part-0.jsonl"]


def test_a_folder_of_save_to_disk_is_read_by_its_state(tmp_path: Path) -> None:
    table = pa.table({"text": ["one"]})
    for name in (
        "train/data-0.arrow",
        "train/cache-0.arrow",
        "train/old.arrow",
        "other/cache-9.arrow",
        "other/x.arrow",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with pa.ipc.new_stream(tmp_path / name, table.schema) as writer:
            writer.write_table(table)
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train"]}')
    (tmp_path / "train" / "dataset_info.json").write_text("{}")
    (tmp_path / "train" / "state.json").write_text('{"_data_files": [{"filename": "data-0.arrow"}], "_split": null}')
    found = discover_files(tmp_path)
    assert [(file.name, file.format) for file in found.files] == [
        ("other/x.arrow", "arrow"),
        ("train/data-0.arrow", "arrow"),
    ]
    assert found.skipped == ["other/cache-9.arrow", "train/cache-0.arrow", "train/old.arrow"]
    (tmp_path / "train" / "data-0.arrow").unlink()
    with pytest.raises(DataError, match=r"state\.json: it names train/data-0\.arrow, which is not there"):
        discover_files(tmp_path)


def test_a_device_is_refused() -> None:
    with pytest.raises(DataError, match="to read a pipe, give it as the only input"):
        files(Path("/dev/null"))


def test_a_name_that_is_not_there_is_told_with_what_may_be_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "data[1]", "a.jsonl")
    for name, remedy in (
        ("HuggingFaceFW/fineweb", "for a dataset of the Hugging Face hub, give hf://datasets/HuggingFaceFW/fineweb."),
        ("data[1]/*.jsonl", "for these themselves, write 'data[[]1]/*.jsonl'."),
        ("data[2]/*.jsonl", "no file matches. Check the path."),
        ("none", "Check the path."),
    ):
        with pytest.raises(DataError) as error:
            find_files(name, None)
        assert str(error.value).endswith(remedy)
    assert len(find_files("data[[]1]/*.jsonl", None).files) == 1


def test_each_directory_is_read_once_and_by_its_own_name(tmp_path: Path) -> None:
    top = put(tmp_path / "top", "z/x.jsonl", "y.jsonl")
    (top / "up").symlink_to("..", target_is_directory=True)
    (top / "z" / "round").symlink_to("..", target_is_directory=True)
    (top / "a").symlink_to("z", target_is_directory=True)
    put(tmp_path, "beside/b.jsonl")
    found = discover_files(top)
    assert [file.name for file in found.files] == ["up/beside/b.jsonl", "y.jsonl", "z/x.jsonl"]
    assert found.repeated == [str(top / each) for each in ("a", "up/top", "z/round")]


def test_a_listing_error_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a.jsonl", "closed/b.jsonl")
    original = os.scandir

    def refuse(path: str | int) -> object:  # a number where pytest removes the directory
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return original(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataError, match=r"closed: the directory can't be read \(permission denied\)"):
        discover_files(tmp_path)


def test_links_to_nothing_and_pipes_are_errors_unless_left_out(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl")
    (tmp_path / "gone.jsonl").symlink_to("nowhere")
    with pytest.raises(DataError, match=r"gone\.jsonl: a link that leads nowhere \(no such file or directory\)"):
        discover_files(tmp_path)
    with pytest.raises(DataError, match=r"gone\.jsonl: can't be read"):
        discover_files(tmp_path / "gone.jsonl")
    assert names(tmp_path, exclude=["gone*"]) == ["a.jsonl"]
    (tmp_path / "gone.jsonl").unlink()
    (tmp_path / "self.jsonl").symlink_to("self.jsonl")
    with pytest.raises(DataError, match=r"self\.jsonl: a link that leads nowhere"):
        discover_files(tmp_path)
    (tmp_path / "self.jsonl").unlink()
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DataError, match=r"pipe\.jsonl: not a regular file but a pipe"):
        discover_files(tmp_path)
    (tmp_path / "pipe.jsonl").rename(tmp_path / "pipe")
    assert names(tmp_path) == ["a.jsonl"]
    assert discover_files(tmp_path).skipped == ["pipe"]


SCRIPT = """
import sys
from packtool.text.corpus.discover import discover_files
from packtool.text.corpus.find import find_files
from packtool.warnings import PacktoolWarning
print([ascii(file.name) for file in discover_files(sys.argv[1]).files])
"""


def test_names_are_the_same_in_every_locale(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in (b"caf\xe9.jsonl", "日本.jsonl".encode(), b"z.jsonl", b"\x80\xff.jsonl"):
        (tmp_path / "in" / os.fsdecode(name)).write_bytes(LINE)
    outputs = []
    for variables in ({}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "in")]
        outputs.append(subprocess.check_output(command, env={**os.environ, **variables}))
    assert outputs[0] == outputs[1]
    found = [file.name for file in discover_files(tmp_path / "in").files]
    assert found == ["caf\\xe9.jsonl", "z.jsonl", "\\x80\\xff.jsonl", "日本.jsonl"]
