"""Blocks: what is too large is passed over, in bounded memory."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

from packtool.errors import DataError
from tests.text.tokenizing.runs import ASSET, documents, fails, jsonl, reference


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
