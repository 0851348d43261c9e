"""Blocks: what an interrupted run made of them is kept only where it is, bit for bit, what that run wrote."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import DataError
from tests.interrupting import DAMAGES, interrupted
from tests.stores import contents
from tests.text.tokenizing.runs import ASSET, documents, fails, jsonl, reference


def write_corpus(path: Path) -> Path:
    path.mkdir()
    for number in range(3):
        lines = "".join(f'{{"text": "document {number} {n}"}}\n' for n in range(50))
        (path / f"{number}.jsonl").write_text(lines + '{"txet": 1}\n', encoding="utf-8")
    return path


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "pattern", ["tokens-*", "offsets-*", "unfinished/scratch/rejected-*", "unfinished/pieces/block/*"]
)
@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
def test_a_block_that_changed_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any, pattern: str
) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    options: dict[str, Any] = {"tokenizer": ASSET, "on_error": "quarantine", "workers": 1}
    packtool.tokenize(corpus, tmp_path / "whole", **options)
    interrupted(monkeypatch, packtool.tokenize, corpus, tmp_path / "out", **options)
    file = sorted((tmp_path / "out").glob(pattern))[-1]
    damage(file)
    packtool.tokenize(corpus, tmp_path / "out", **options, resume=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert packtool.verify(tmp_path / "out").problems == []


def test_an_archive_that_bursts_takes_no_more_memory_than_a_record_may(tmp_path: Path) -> None:
    record = b'{"text": "' + b"0" * (300 << 20) + b'"}\n'
    (tmp_path / "bomb.jsonl.gz").write_bytes(gzip.compress(jsonl(["before"]) + record + jsonl(["after"]), 1))
    script = """
import re, sys, packtool
if __name__ == "__main__":
    options = {"tokenizer": sys.argv[3], "workers": 1, "on_error": "quarantine", "max_record_bytes": "8MiB"}
    packtool.tokenize(sys.argv[1], sys.argv[2], **options)
    print(int(re.search("VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10)
"""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        script,
        *map(str, (tmp_path / "bomb.jsonl.gz", tmp_path / "o", ASSET)),
    ]
    assert int(subprocess.check_output(command)) < 400
    assert documents(tmp_path / "o") == reference(["before", "after"])
    [rejected] = [json.loads(line) for line in (tmp_path / "o" / "rejected.jsonl").read_text().splitlines()]
    assert (rejected["record"], rejected["code"], rejected["bytes"]) == (2, "record-too-large", len(record) - 1)
    assert rejected["raw"] == record[: 1 << 16].decode()
    bomb = tmp_path / "bomb.jsonl.gz"
    message = fails(DataError, bomb, tmp_path / "p", max_record_bytes="8MiB")
    assert message.startswith(f"{bomb}:2: a record of 314,572,812 bytes, above the limit of 8,388,608")
    assert message.endswith('Raise max_record_bytes, or give on_error="skip", or quarantine.')
