"""Datasets that others made: manifests that point elsewhere, contradict themselves, or were changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xxhash

import packtool
from packtool.cli import run
from packtool.errors import DataError
from packtool.storage import manifest as manifests
from tests.stores import reseal, rewrite, write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A store, a packed dataset of one and one of several lengths, and an order."""
    store = write_store(tmp_path / "store", LENGTHS)
    packtool.pack(store, tmp_path / "packed", strategy="bfd", sequence_length=16, shard_tokens=64)
    packtool.pack(store, tmp_path / "several", strategy="decompose", sequence_length=16)
    packtool.shuffle(tmp_path / "several", tmp_path / "order", order_only=True)
    return tmp_path


def load(path: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((path / "manifest.json").read_bytes())
    return manifest


@pytest.mark.parametrize("directory", ["/abs", "../victim", "bucket-00002/../../victim", ".", "bucket-2", "a/b"])
@pytest.mark.parametrize("options", [{}, {"order_only": True}])
def test_a_bucket_outside_the_dataset(made: Path, directory: str, options: dict[str, Any]) -> None:
    """Its directory was once removed, with all that it held."""
    victim = made / "victim"
    victim.mkdir()
    (victim / "thesis.tex").write_text("years of work")
    manifest = load(made / "several")
    manifest["buckets"][0]["directory"] = directory.replace("/abs", str(victim))
    reseal(made / "several", manifest)
    with pytest.raises(DataError, match=r"buckets\[.*directory|Bucket|matching regex") as caught:
        packtool.shuffle(made / "several", made / "out", **options)
    assert caught.value.code == "bad-manifest"
    assert (victim / "thesis.tex").read_text() == "years of work"
    assert [file.name for file in victim.iterdir()] == ["thesis.tex"]
    assert run(["verify", str(made / "several"), "-q"]) == 1


@pytest.mark.parametrize("name", ["../secret.npy", "/etc/passwd", "tokens-00001.npy", "tokens-0.npy", "manifest.json"])
def test_a_file_outside_the_dataset(made: Path, name: str) -> None:
    manifest = load(made / "packed")
    manifest["buckets"][0]["shards"][0]["tokens"]["name"] = name
    reseal(made / "packed", manifest)
    with pytest.raises(DataError) as caught:
        packtool.open(made / "packed")
    assert caught.value.code == "bad-manifest"


def test_a_bucket_that_is_a_link_out(made: Path) -> None:
    bucket = next((made / "several").glob("bucket-*"))
    bucket.rename(made / "elsewhere")
    bucket.symlink_to("../elsewhere")
    with pytest.raises(DataError, match="a symbolic link that leads out of the dataset"):
        packtool.open(made / "several")
    assert run(["verify", str(made / "several"), "-q"]) == 1


def at(*path: str | int) -> Callable[[dict[str, Any], Any], None]:
    def change(manifest: dict[str, Any], value: Any) -> None:
        for key in path[:-1]:
            manifest = manifest[key]  # type: ignore[index]
        if value is None:
            del manifest[path[-1]]  # type: ignore[arg-type]
        else:
            manifest[path[-1]] = value  # type: ignore[index]

    return change


SHARD = ("buckets", 0, "shards", 0)


@pytest.mark.parametrize(
    ("dataset", "change", "value", "message"),
    [
        ("packed", at("surprise"), 1, "Object contains unknown field `surprise`"),
        ("packed", at(*SHARD, "surprise"), 1, "unknown field `surprise` - at `$.buckets[0].shards[0]`"),
        ("packed", at("ledger"), None, "Object missing required field `ledger`"),
        ("packed", at("dtype"), "<u4", "dtype is '<u4', not '<u2'"),
        ("packed", at("dtype"), "|O", "Expected `str` matching regex"),
        ("packed", at("documents"), 10, "the ledger does not balance: eos = documents + inserted - omitted"),
        ("packed", at("pad_id"), 70_000, "pad_id is 70000, but vocab_size is 65536"),
        ("packed", at("pad_id"), 1, "options.pad_id is 0, not 1"),
        ("packed", at("options", "shard_tokens"), 0, "options.shard_tokens is 0"),
        ("packed", at("options", "shard_tokens"), 32, "the number of buckets[0].shards is"),
        ("packed", at("store_documents"), [4, 4], "documents is 9, not 8"),
        ("packed", at("store_documents"), [4, 5], "store_documents is 2, not 1"),
        ("packed", at("tokenizer", "eos_id"), 7, "eos_id is 7, but added_tokens says 0"),
        ("packed", at("tokenizer", "added_tokens", "<x>"), 65_536, "the id of '<x>' is 65536, but vocab_size is 65536"),
        ("packed", at("tokenizer", "vocab_size"), -1, "Expected `int` >= 1"),
        ("packed", at("buckets", 0, "unit"), 5, "buckets[0].unit is 5, which does not divide rows of 16"),
        ("packed", at("buckets", 0, "units"), 1, "buckets[0].rows is"),
        ("packed", at("buckets", 0, "rows"), 1 << 63, "Expected `int` <= 9223372036854775807"),
        ("packed", at("buckets", 0, "atom_units"), 0, "buckets[0].shards[0].atoms is missing"),
        ("packed", at("buckets"), [], "ledger.rows is"),
        ("packed", at(*SHARD, "segments"), None, "buckets[0].shards[0].segments is missing"),
        ("packed", at(*SHARD, "tokens", "shape"), [4, 15], "buckets[0].shards[0].tokens.shape is (4, 15), not (4, 16)"),
        ("packed", at(*SHARD, "tokens", "bytes"), 1, "buckets[0].shards[0].tokens.bytes is 1, not 4224"),
        ("packed", at(*SHARD, "tokens", "xxh3_128"), "AB" * 16, "Expected `str` matching regex"),
        ("packed", at("lengths", "shape"), [8], "lengths.shape is (8,), not (9,)"),
        ("packed", at("shuffle", "epoch"), -1, "Expected `int` >= 0"),
        ("packed", at("report", "name"), "../report.json", "report.name is '../report.json', not 'report.json'"),
        ("store", at("counts", "tokens"), 1, "counts.tokens is 1, not 129"),
        ("store", at("counts", "documents"), None, "counts.documents is None, not 9"),
        ("store", at("counts", "rejected_bad_json"), 2, "counts.rejected is 0, not 2"),
        ("store", at("shards", 1, "first_document"), 6, "shards[1].first_document is 6, not 7"),
        ("store", at("shards", 0, "offsets", "shape"), [1], "shards[0] has (114,) tokens and (1,) offsets"),
        ("store", at("rejected"), {"name": "x", "bytes": 0, "xxh3_128": "0" * 32}, "rejected.name is 'x'"),
        ("order", at("orders"), [], "its orders are []"),
        ("order", at("orders", 0, "bytes"), 9, "orders[0].bytes is 9"),
        ("order", at("format"), "packtool packed dataset", "Object contains unknown field"),
    ],
)
def test_a_manifest_that_contradicts_itself(
    made: Path,
    capsys: pytest.CaptureFixture[str],
    dataset: str,
    change: Callable[[dict[str, Any], Any], None],
    value: Any,
    message: str,
) -> None:
    manifest = load(made / dataset)
    change(manifest, value)
    reseal(made / dataset, manifest)
    with pytest.raises(DataError) as caught:
        manifests.read(made / dataset)
    assert message in caught.value.what
    assert run(["verify", str(made / dataset)]) == 1
    assert f"error[{caught.value.code}]" in capsys.readouterr().err


def test_a_change_without_its_checksum(made: Path) -> None:
    text = (made / "packed" / "manifest.json").read_text()
    (made / "packed" / "manifest.json").write_text(text.replace('"seed": 42', '"seed": 43'))
    with pytest.raises(DataError, match="changed since it was written: its own checksum differs"):
        manifests.read(made / "packed")


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b'{"format": "' + b"\xff" * 9, b"[" * 980, b"\x00" * 99, b"1e999"])
def test_a_manifest_that_is_not_one(made: Path, capsys: pytest.CaptureFixture[str], raw: bytes) -> None:
    (made / "packed" / "manifest.json").write_bytes(raw)
    for command in (["verify"], ["stats"], ["show", "--row", "0"], ["info"]):
        assert run([command[0], str(made / "packed"), *command[1:]]) == 1
        assert "error[bad-manifest]" in capsys.readouterr().err


def test_deep_nesting_in_options(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = load(made / "packed")
    body = manifests.encode(manifest)[: -len("\n}\n")].rpartition(b",")[0]
    body = body.replace(b'"options": {', b'"options": {"x": ' + b"[" * 980 + b"]" * 980 + b",")
    seal = b',\n  "xxh3_128": "' + xxhash.xxh3_128_hexdigest(body).encode() + b'"\n}\n'
    (made / "packed" / "manifest.json").write_bytes(body + seal)
    assert run(["verify", str(made / "packed")]) == 1
    assert "error[bad-manifest]" in capsys.readouterr().err


def test_an_old_format(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = load(made / "packed") | {"format_version": 1}
    (made / "packed" / "manifest.json").write_text(json.dumps(manifest))
    assert run(["verify", str(made / "packed")]) == 1
    assert "version 1 can't be read by this version. Make it again with this version." in capsys.readouterr().err


def test_a_damaged_report(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("report.json", "run.json"):
        (made / "packed" / name).write_bytes(b"[" * 5000)
        again = ["pack", str(made / "store"), "-o", str(made / "packed"), "--strategy", "bfd", "-L", "16", "--resume"]
        assert run([*again, "--shard-tokens", "64"]) in (1, 2)
        assert "Traceback" not in capsys.readouterr().err


def wrong_offsets(table: Any) -> None:
    table[1] = 1 << 40


@pytest.mark.parametrize(
    ("dataset", "name", "change", "message"),
    [
        ("packed", "segment_offsets-00000.npy", wrong_offsets, "its segments lie outside the segment table"),
        ("packed", "segment_offsets-00000.npy", lambda t: t.__setitem__(0, -9), "outside"),
        ("packed", "segments-00000.npy", lambda t: t["document"].__setitem__(0, 1 << 50), "outside its document"),
        ("packed", "segments-00000.npy", lambda t: t["document"].__setitem__(0, -7), "outside its document"),
        ("packed", "segments-00000.npy", lambda t: t["start"].__setitem__(0, 1 << 31), "outside its document"),
        ("packed", "segments-00000.npy", lambda t: t["length"].__setitem__(0, 0), "outside its document"),
        ("packed", "segments-00000.npy", lambda t: t["length"].__setitem__(0, 1), "do not add up to the sequence"),
        ("store", "offsets-00000.npy", wrong_offsets, "its offsets do not divide its 114 tokens into documents"),
        ("store", "offsets-00000.npy", lambda t: t.__setitem__(2, -1), "its offsets do not divide its 114 tokens"),
        ("store", "offsets-00000.npy", lambda t: t.__setitem__(0, 1), "its offsets do not divide its 114 tokens"),
    ],
)
def test_numbers_that_point_elsewhere(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], dataset: str, name: str, change: Any, message: str
) -> None:
    """They once ended in memory that is not the dataset's, or in a crash."""
    rewrite(made / dataset, name, change)
    commands = {
        "packed": [
            ["shuffle", str(made / "packed"), "-o", str(tmp_path / "s")],
            ["shuffle", str(made / "packed"), "-o", str(tmp_path / "t"), "--memory", "1KiB", "-j", "1"],
            ["stats", str(made / "packed")],
            ["show", str(made / "packed"), "--row", "0"],
        ],
        "store": [
            ["pack", str(made / "store"), "-o", str(tmp_path / "p"), "--strategy", "concat", "-L", "16"],
            ["stats", str(made / "store")],
        ],
    }
    for command in [*commands[dataset], ["verify", str(made / dataset)]]:
        assert run(command) == 1, command
        assert message in capsys.readouterr().err, command


def test_an_order_that_is_not_one(made: Path) -> None:
    name = load(made / "order")["orders"][-1]["name"]
    rewrite(made / "order", name, lambda t: t.__setitem__(0, t[1]))
    with pytest.raises(DataError, match=r"atom \d+ is not in it"):
        packtool.open(made / "several", order=made / "order")
    assert run(["verify", str(made / "order"), "-q"]) == 1


def test_batches_of_rows_that_are_not_there(made: Path) -> None:
    packtool.shuffle(made / "several", made / "batched", method="bucket", batch_tokens=32)
    assert run(["verify", str(made / "batched"), "-q"]) == 0
    for field, value in (("bucket", 5), ("first_row", -1), ("rows", 99)):
        packtool.shuffle(made / "several", made / field, method="bucket", batch_tokens=32)
        rewrite(made / field, "batches.npy", lambda t, f=field, v=value: t[f].__setitem__(0, v))
        with pytest.raises(DataError, match="batch 0 names rows that are not there"):
            packtool.open(made / field)
        assert run(["verify", str(made / field), "-q"]) == 1
