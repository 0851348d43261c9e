"""Manifests that were changed, are damaged, or of another version."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import xxhash

from packtool.cli import run
from packtool.errors import DataError
from packtool.formats import manifest as manifests
from tests.shell import Shell
from tests.stores import load


def test_a_change_without_its_checksum(made: Path) -> None:
    text = (made / "packed" / "manifest.json").read_text()
    (made / "packed" / "manifest.json").write_text(text.replace('"seed": 42', '"seed": 43'))
    with pytest.raises(DataError, match="changed since it was written: its own checksum differs"):
        manifests.read(made / "packed")


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b'{"format": "' + b"\xff" * 9, b"[" * 980, b"\x00" * 99, b"1e999"])
def test_a_manifest_that_is_not_one(made: Path, shell: Shell, raw: bytes) -> None:
    (made / "packed" / "manifest.json").write_bytes(raw)
    for command in (["verify"], ["stats"], ["show", "--row", "0"], ["info"]):
        assert "error[bad-manifest]" in shell.refused(command[0], made / "packed", *command[1:])


@pytest.mark.parametrize("levels", [980, 1450, 100_000])
def test_deep_nesting_in_options(made: Path, capsys: pytest.CaptureFixture[str], levels: int) -> None:
    manifest = load(made / "packed")
    body = manifests.encode(manifest)[: -len("\n}\n")].rpartition(b",")[0]
    body = body.replace(b'"options": {', b'"options": {"x": ' + b"[" * levels + b"]" * levels + b",")
    seal = b',\n  "xxh3_128": "' + xxhash.xxh3_128_hexdigest(body).encode() + b'"\n}\n'
    (made / "packed" / "manifest.json").write_bytes(body + seal)
    assert run(["verify", str(made / "packed")]) == 1
    # How deep JSON may be nested follows from Python. What is read, the report does not agree with.
    error = "bad-manifest" if levels == 100_000 else "(bad-manifest|damaged-report)"
    assert re.match(rf"packtool: error\[{error}\]", capsys.readouterr().err)


def test_an_old_format(made: Path, shell: Shell) -> None:
    manifest = load(made / "packed") | {"format_version": 1}
    (made / "packed" / "manifest.json").write_text(json.dumps(manifest))
    assert "version 1 can't be read by this version. Make it again with this version." in shell.refused(
        "verify", made / "packed"
    )


def test_a_damaged_report(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("report.json", "run.json"):
        (made / "packed" / name).write_bytes(b"[" * 5000)
        again = ["pack", str(made / "store"), "-o", str(made / "packed"), "--strategy", "bfd", "-L", "16", "--resume"]
        assert run([*again, "--shard-tokens", "64"]) in (1, 2)
        assert "Traceback" not in capsys.readouterr().err
