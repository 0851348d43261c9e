"""What can be read only once: pipes, as a shell makes them of commands, and standard input."""

import gzip
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from packtool.errors import DataError, UsageError
from packtool.text.corpus.once import Once
from packtool.text.corpus.records import Fields
from tests.stores import load
from tests.text.tokenizing.runs import documents, fails, reference, stored

TEXTS = ["one", "two words", "three"]


def feeding(path: Path, data: bytes) -> threading.Thread:
    """A thread that writes to a pipe."""
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=(data,), daemon=True)  # or a test that fails would wait
    thread.start()
    return thread


def test_pipes_are_read_like_files_several_at_once(tmp_path: Path) -> None:
    threads = [
        feeding(tmp_path / f"{number}", b"".join(b'{"text": "%s"}\n' % text.encode() for text in TEXTS))
        for number in range(2)
    ]
    (tmp_path / "a.jsonl").write_text('{"text": "file"}\n')
    inputs = [tmp_path / "0", tmp_path / "a.jsonl", tmp_path / "1"]
    assert stored(inputs, tmp_path / "s") == reference([*TEXTS, "file", *TEXTS])
    for thread in threads:
        thread.join()
    assert [file["name"] for file in load(tmp_path / "s")["inputs"]] == [f"{inputs[0]}", "a.jsonl", f"{inputs[2]}"]


def test_a_shell_gives_commands_as_pipes(tmp_path: Path) -> None:
    command = f"{sys.executable} -m packtool tokenize <(echo one) <(echo two) -o {tmp_path}/s -q --format lines"
    subprocess.run(["bash", "-c", command], check=True)
    assert len(documents(tmp_path / "s")) == 2


ARROW = pa.table({"text": ["one", "two"]})


def arrow(new: Callable[..., Any]) -> bytes:
    sink = pa.BufferOutputStream()
    with new(sink, ARROW.schema) as writer:
        writer.write_table(ARROW)
    return bytes(sink.getvalue())


def table() -> bytes:
    sink = io.BytesIO()
    parquet.write_table(ARROW, sink)
    return sink.getvalue()


KNOWN = {
    "lines": b'{"text": "one"}\n{"text": "two"}\n',
    "over lines": b'\xef\xbb\xbf\n{\n"text": "one"\n}\n{"text": "two"}',
    "an array": b' [{"text": "one"}, {"text": "two"}]',
    "packed": gzip.compress(b'{"text": "one"}\n{"text": "two"}\n'),
    "parquet": table(),
    "arrow": arrow(pa.ipc.new_file),
    "arrow stream": arrow(pa.ipc.new_stream),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_what_a_pipe_holds_is_known_by_how_it_begins(tmp_path: Path, kind: str) -> None:
    thread = feeding(tmp_path / "p", KNOWN[kind])
    assert stored(tmp_path / "p", tmp_path / "s") == reference(["one", "two"])
    thread.join()


def test_a_table_that_only_its_end_tells_is_looked_at_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("packtool.text.corpus.once.RECORD_BYTES", 1 << 20)  # other streams are read no further
    texts = [os.urandom(1 << 19).hex(), "two"]  # which no compression makes as small as what is looked at first
    parquet.write_table(pa.table({"prompt": texts, "completion": texts[::-1]}), tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    thread = feeding(tmp_path / "p", data)
    once = Once(f"{tmp_path}/p")
    assert once.first() == ({"prompt": texts[0], "completion": texts[1]}, f"{tmp_path}/p")
    once.begin()
    assert Path(once.copied(tmp_path, 0, Fields()).location).read_bytes() == data
    thread.join()


@pytest.mark.parametrize("data", [b"id,text\n1,a\n", b"words", gzip.compress(b"words", mtime=0), b"\0", b'"a"'])
def test_a_pipe_that_begins_otherwise_is_refused_before_anything_is_made(tmp_path: Path, data: bytes) -> None:
    thread = feeding(tmp_path / "p", data)
    said = fails(UsageError, tmp_path / "p", tmp_path / "s")
    thread.join()
    assert (
        "p: a stream without a suffix that does not begin with { or [, as JSON does. Give format: jsonl, json" in said
    )
    assert not (tmp_path / "s").exists()


def test_messages_call_a_pipe_by_its_name(tmp_path: Path) -> None:
    thread = feeding(tmp_path / "p", b'{"text": "one"}\n{"body": "two"}\n')
    assert fails(DataError, tmp_path / "p", tmp_path / "s").startswith(f"{tmp_path}/p:2: no text field 'text'")
    thread.join()
    assert not (tmp_path / "s").exists()
    feeding(tmp_path / "b", b'{"text": "one"}\n')
    separated = fails(UsageError, tmp_path / "b", tmp_path / "s", separator="x")
    assert f"separator: has no effect on jsonl, as which {tmp_path / 'b'} is read." in separated


def test_a_pipe_is_not_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    assert "a pipe is named twice" in fails(UsageError, [tmp_path / "p"] * 2, tmp_path / "s")
    assert "a pipe can't be resumed" in fails(UsageError, tmp_path / "p", tmp_path / "s", resume=True)


def test_closed_standard_input_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # as Python has it
    with pytest.raises(DataError, match="standard input is closed"):
        Once("-").begin()
