"""Manifests that name other files, or whose parts don't fit together, are refused before anything is touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.cli import run
from packtool.errors import DataError
from packtool.formats import manifest as manifests
from tests.shell import Shell
from tests.stores import amended, load, reseal


@pytest.mark.parametrize("directory", ["/abs", "../victim", "bucket-00002/../../victim", ".", "bucket-2", "a/b"])
def test_a_bucket_outside_the_dataset(made: Path, directory: str) -> None:
    """Its directory was once removed, with all that it held."""
    victim = made / "victim"
    victim.mkdir()
    (victim / "thesis.tex").write_text("years of work")
    with amended(made / "several") as manifest:
        manifest["buckets"][0]["directory"] = directory.replace("/abs", str(victim))
    with pytest.raises(DataError, match="matching regex") as caught:
        packtool.shuffle(made / "several", made / "out")
    assert caught.value.code == "bad-manifest"
    assert (victim / "thesis.tex").read_text() == "years of work"
    assert [file.name for file in victim.iterdir()] == ["thesis.tex"]
    assert run(["verify", str(made / "several"), "-q"]) == 1


ELSEWHERE = [
    "../secret.npy",
    "/etc/passwd",
    "thesis.tex",
    "manifest.json",
    "run.json",
    "unfinished/state.json",
    "a/b",
    "",
]
SHARD = ("buckets", 0, "shards", 0)


FILES: list[tuple[str, tuple[str | int, ...]]] = [
    ("packed", ("report",)),
    ("packed", ("lengths",)),
    ("packed", ("tokenizer_files", 0)),
    ("packed", (*SHARD, "tokens")),
    ("store", ("shards", 0, "columns")),
    ("store", ("rejected",)),
    ("store", ("tokenizer_files", 0)),
    ("export", ("files", 0)),
]
CASES = [(*file, name) for file in FILES for name in ELSEWHERE]
CASES += [("packed", (*SHARD, "tokens"), name) for name in ("segments-00000.npy", "tokens-00001.npy", "tokens-0.npy")]


@pytest.mark.parametrize(("dataset", "place", "name"), CASES)
def test_a_file_that_is_not_of_the_dataset(made: Path, dataset: str, place: tuple[str | int, ...], name: str) -> None:
    if dataset == "export":
        packtool.export(made / "packed", made / "export", format="parquet")
    manifest = load(made / dataset)
    file = {"name": name, "bytes": 9, "xxh3_128": "0" * 32, **({"shape": [9]} if place[-1] == "lengths" else {})}
    holder: Any = manifest
    for key in place[:-1]:
        holder = holder[key]
    if place[-1] == "tokens":
        file["shape"] = holder["tokens"]["shape"]
    if place[0] == "tokenizer_files":
        manifest["tokenizer_files"] = [file]
    else:
        holder[place[-1]] = file
    reseal(made / dataset, manifest)
    with pytest.raises(DataError) as caught:
        manifests.read(made / dataset)
    assert caught.value.code == "bad-manifest"


def test_no_manifest_lets_an_output_lose_other_files(made: Path) -> None:
    """`--overwrite` removes what the old manifest lists."""
    (made / "packed" / "thesis.tex").write_text("years of work")
    with amended(made / "packed") as manifest:
        manifest["report"]["name"] = "thesis.tex"
    assert run(
        ["pack", str(made / "store"), "-o", str(made / "packed"), "--strategy", "concat", "-L", "8", "--overwrite"]
    )
    assert (made / "packed" / "thesis.tex").read_text() == "years of work"


def test_two_buckets_in_one_directory(made: Path) -> None:
    with amended(made / "several") as manifest:
        manifest["buckets"][1]["directory"] = manifest["buckets"][0]["directory"]
    with pytest.raises(DataError, match="two of its buckets have the same directory"):
        packtool.open(made / "several")


def at(*path: str | int) -> Callable[[dict[str, Any], Any], None]:
    def change(manifest: dict[str, Any], value: Any) -> None:
        for key in path[:-1]:
            manifest = manifest[key]  # type: ignore[index]
        if value is None:
            del manifest[path[-1]]  # type: ignore[arg-type]
        else:
            manifest[path[-1]] = value  # type: ignore[index]

    return change


@pytest.mark.parametrize(
    ("dataset", "change", "value", "message"),
    [
        ("packed", at("surprise"), 1, "Object contains unknown field `surprise`"),
        ("packed", at(*SHARD, "surprise"), 1, "unknown field `surprise` - at `$.buckets[0].shards[0]`"),
        ("packed", at("ledger"), None, "Object missing required field `ledger`"),
        ("packed", at("dtype"), "|O", "Expected `str` matching regex"),
        ("packed", at("pad_id"), 1 << 16, "its ids of padding or EOS are no <u2"),
        ("packed", at("tokenizer", "eos_id"), 1 << 16, "its ids of padding or EOS are no <u2"),
        ("packed", at("documents"), 10, "it does not have 10 documents"),
        ("packed", at("store_documents"), [4, 4], "its documents are not those of its stores"),
        ("packed", at("store_documents"), [4, 5], "it does not count the documents of 1 stores"),
        ("packed", at("tokenizer", "vocab_size"), -1, "Expected `int` >= 1"),
        ("packed", at("ledger", "eos"), 1, "the ledger does not balance"),
        ("packed", at("buckets", 0, "unit"), 5, "its units do not"),
        ("packed", at("buckets", 0, "units"), 1, "its units do not make its rows"),
        ("packed", at("buckets", 0, "rows"), 1 << 63, "Expected `int` <= 9223372036854775807"),
        ("packed", at("buckets", 0, "rows"), 1, "its rows are not those of its shards"),
        ("packed", at("buckets", 0, "atom_units"), 0, "its shards do not list their atoms"),
        ("packed", at("buckets"), [], "Expected `array` of length >= 1"),
        ("packed", at(*SHARD, "segments"), None, "it has one half of a segment table"),
        ("packed", at(*SHARD, "tokens"), {}, "missing required field"),
        ("packed", at(*SHARD, "tokens", "shape"), [4, 15], "its shards have rows of another length"),
        ("packed", at(*SHARD, "tokens", "shape"), [5, 16], "its files have different numbers of rows"),
        ("packed", at(*SHARD, "tokens", "xxh3_128"), "AB" * 16, "Expected `str` matching regex"),
        ("packed", at("lengths", "shape"), [8], "it does not have 9 documents"),
        ("packed", at("shuffle", "epoch"), -1, "Expected `int` >= 0"),
        ("store", at("counts", "tokens"), 1, "its counts are not those of its shards"),
        ("store", at("counts", "documents"), None, "its counts are not those of its shards"),
        ("store", at("shards", 1, "first_document"), 6, "its shards do not follow each other"),
        ("store", at("shards", 0, "offsets", "shape"), [1], "its documents and tokens do not fit together"),
        ("store", at("shards", 0, "offsets", "shape"), [], "several dimensions"),
        ("store", at("shards", 0, "offsets", "name"), "offsets-00001.npy", "its files are not named alike"),
        ("store", at("format"), "packtool packed dataset", "Object contains unknown field"),
    ],
)
def test_parts_that_do_not_fit_together(
    made: Path,
    shell: Shell,
    dataset: str,
    change: Callable[[dict[str, Any], Any], None],
    value: Any,
    message: str,
) -> None:
    with amended(made / dataset) as manifest:
        change(manifest, value)
    with pytest.raises(DataError) as caught:
        manifests.read(made / dataset)
    assert message in caught.value.what
    assert f"error[{caught.value.code}]" in shell.refused("verify", made / dataset)
