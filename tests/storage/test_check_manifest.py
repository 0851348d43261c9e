"""Manifests that contradict themselves, or name what lies elsewhere, are refused before anything is touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.cli import run
from packtool.errors import DataError
from packtool.storage import manifest as manifests
from tests.stores import load, reseal


@pytest.mark.parametrize("directory", ["/abs", "../victim", "bucket-00002/../../victim", ".", "bucket-2", "a/b"])
def test_a_bucket_outside_the_dataset(made: Path, directory: str) -> None:
    """Its directory was once removed, with all that it held."""
    victim = made / "victim"
    victim.mkdir()
    (victim / "thesis.tex").write_text("years of work")
    manifest = load(made / "several")
    manifest["buckets"][0]["directory"] = directory.replace("/abs", str(victim))
    reseal(made / "several", manifest)
    with pytest.raises(DataError, match=r"buckets\[.*directory|Bucket|matching regex") as caught:
        packtool.shuffle(made / "several", made / "out")
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
