"""Manifests that were changed, are damaged, name other files, or don't fit together are refused before all else."""

import re
from pathlib import Path
from typing import Any

import pytest
import xxhash

import packtool
from packtool.errors import DataError, PacktoolError
from packtool.formats import manifest as manifests
from tests.shell import Shell
from tests.stores import amended, load


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b'{"format": "' + b"\xff" * 9, b"[" * 980, b"\x00" * 99, b"1e999"])
def test_a_manifest_that_is_not_one(made: Path, shell: Shell, raw: bytes) -> None:
    (made / "packed" / "manifest.json").write_bytes(raw)
    for command, *more in (["verify"], ["stats"], ["show", "--row", 0], ["info"]):
        assert "error[bad-manifest]" in shell.refused(command, made / "packed", *more)


@pytest.mark.parametrize("levels", [980, 1450, 100_000])
def test_deep_nesting_in_options(made: Path, shell: Shell, levels: int) -> None:
    body = manifests.encode(load(made / "packed"))[: -len("\n}\n")].rpartition(b",")[0]
    body = body.replace(b'"options": {', b'"options": {"x": ' + b"[" * levels + b"]" * levels + b",")
    seal = b',\n  "xxh3_128": "' + xxhash.xxh3_128_hexdigest(body).encode() + b'"\n}\n'
    (made / "packed" / "manifest.json").write_bytes(body + seal)
    # How deep JSON may be nested follows from Python. What is read, the report does not agree with.
    error = "bad-manifest" if levels == 100_000 else "(bad-manifest|damaged-report)"
    assert re.match(rf"packtool: error\[{error}\]", shell.refused("verify", made / "packed"))


def test_no_manifest_lets_an_output_lose_other_files(made: Path) -> None:
    """`--overwrite` removes what the old manifest lists."""
    (made / "packed" / "thesis.tex").write_text("years of work")
    with amended(made / "packed") as manifest:
        manifest["report"]["name"] = "thesis.tex"
    with pytest.raises(PacktoolError):
        packtool.pack(made / "store", made / "packed", strategy="concat", sequence_length=8, overwrite=True)
    assert (made / "packed" / "thesis.tex").read_text() == "years of work"


def holder_of(manifest: dict[str, Any], place: tuple[str | int, ...]) -> Any:
    """Return what has the last of these keys in a manifest."""
    holder: Any = manifest
    for key in place[:-1]:
        holder = holder[key]
    return holder


ELSEWHERE = (
    *("../secret.npy", "/etc/passwd", "thesis.tex", "manifest.json", "run.json", "unfinished/state.json", "a/b"),
    "",
)
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
    with amended(made / dataset) as manifest:
        holder = holder_of(manifest, place)
        old = holder[place[-1]] if place[0] != "tokenizer_files" else None
        shape = {"shape": old["shape"]} if old and "shape" in old else {}
        file = {"name": name, "bytes": 9, "xxh3_128": "0" * 32, **shape}
        if place[0] == "tokenizer_files":
            holder.append(file)
        else:
            holder[place[-1]] = file
    with pytest.raises(DataError) as caught:
        manifests.read(made / dataset)
    assert caught.value.code == "bad-manifest"
    if place[0] == "tokenizer_files":
        assert caught.value.what.endswith(f"{name!r} is not a file of a dataset - at `$.tokenizer_files[0]`")


@pytest.mark.parametrize(
    ("dataset", "place", "value", "message"),
    [
        ("packed", ("ledger",), None, "Object missing required field `ledger`"),
        ("packed", ("dtype",), "|O", "Expected `str` matching regex"),
        ("packed", ("pad_id",), 1 << 16, "its ids of padding or EOS are no <u2"),
        ("packed", ("tokenizer", "eos_id"), 1 << 16, "its ids of padding or EOS are no <u2"),
        ("packed", ("documents",), 10, "it does not have 10 documents"),
        ("packed", ("store_documents",), [4, 4], "its documents are not those of its stores"),
        ("packed", ("store_documents",), [4, 5], "it does not count the documents of 1 stores"),
        ("packed", ("tokenizer", "vocab_size"), -1, "Expected `int` >= 1"),
        ("packed", ("ledger", "eos"), 1, "the ledger does not balance"),
        ("packed", ("buckets", 0, "unit"), 5, "its units do not"),
        ("packed", ("buckets", 0, "units"), 1, "its units do not make its rows"),
        ("packed", ("buckets", 0, "rows"), 1 << 63, "Expected `int` <= 9223372036854775807"),
        ("packed", ("buckets", 0, "rows"), 1, "its rows are not those of its shards"),
        ("packed", ("buckets", 0, "atom_units"), 0, "its shards do not list their atoms"),
        ("packed", ("buckets",), [], "Expected `array` of length >= 1"),
        ("packed", (*SHARD, "segments"), None, "it has one half of a segment table"),
        ("packed", (*SHARD, "tokens"), {}, "missing required field"),
        ("packed", (*SHARD, "tokens", "shape"), [4, 15], "its shards have rows of another length"),
        ("packed", (*SHARD, "tokens", "shape"), [5, 16], "its files have different numbers of rows"),
        ("packed", (*SHARD, "tokens", "xxh3_128"), "AB" * 16, "Expected `str` matching regex"),
        ("packed", ("lengths", "shape"), [8], "it does not have 9 documents"),
        ("packed", ("shuffle", "epoch"), -1, "Expected `int` >= 0"),
        ("several", ("buckets", 0, "directory"), "../victim", "Expected `str` matching regex"),
        ("several", ("buckets", 0, "directory"), "bucket-00002/../../victim", "Expected `str` matching regex"),
        ("several", ("buckets", 0, "directory"), "bucket-2", "Expected `str` matching regex"),
        ("several", ("buckets", 1, "directory"), "bucket-00001", "two of its buckets have the same directory"),
        ("store", ("counts", "tokens"), 1, "its counts are not those of its shards"),
        ("store", ("counts", "documents"), None, "its counts are not those of its shards"),
        ("store", ("shards", 1, "first_document"), 6, "its shards do not follow each other"),
        ("store", ("shards", 0, "offsets", "shape"), [1], "its documents and tokens do not fit together"),
        ("store", ("shards", 0, "offsets", "shape"), [], "several dimensions"),
        ("store", ("shards", 0, "offsets", "name"), "offsets-00001.npy", "its files are not named alike"),
    ],
)
def test_parts_that_do_not_fit_together(
    made: Path, shell: Shell, dataset: str, place: tuple[str | int, ...], value: Any, message: str
) -> None:
    with amended(made / dataset) as manifest:
        holder = holder_of(manifest, place)
        holder[place[-1]] = value
        if value is None:
            del holder[place[-1]]
    with pytest.raises(DataError) as caught:
        manifests.read(made / dataset)
    assert message in caught.value.what
    assert f"error[{caught.value.code}]" in shell.refused("verify", made / dataset)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("holdout_bound", 7),
        ("holdout_bound", "-1"),
        ("holdout_hashes", ["ids"]),
        ("where_stores", {"store": -1}),
        ("where_stores", ["store"]),
        ("exclude_xxh3_128", 1),
    ],
)
def test_what_follows_from_a_choice_is_checked(made: Path, name: str, value: Any) -> None:
    packtool.pack(made / "store", made / "held", strategy="bfd", sequence_length=16, min_tokens=1)
    with amended(made / "held") as manifest:
        manifest["choice"]["options"][name] = value
    with pytest.raises(DataError, match=rf"not a valid manifest: .*\$\.{name}|{name}"):
        manifests.read(made / "held")
