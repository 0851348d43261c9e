"""What files say of themselves is compared, not believed: a table of files that are not what they seem."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import packtool
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.formats.token_store import TokenStore
from packtool.warnings import PacktoolWarning
from tests.exchange.streams import stream, words
from tests.exchange.tables import as_arrow
from tests.stores import write_store

IDS = [5, 6, 7, 0, 8, 9, 0]


def imported(path: Path, name: str, tokenizer: Path, **options: Any) -> list[list[int]]:
    store = path.parent / "store"
    packtool.import_(path, store, format=name, tokenizer=tokenizer, overwrite=store.exists(), **options)
    assert packtool.verify(store).problems == []
    opened = TokenStore(store)
    return [opened.document(number).tolist() for number in range(opened.documents)]


def write_lists(path: Path, column: str, offsets: tuple[int, ...]) -> None:
    """Write ids and labels of two records, and give the lists of one column these offsets, as no sound program does."""
    rows = pa.array([[1, 2, 3], [4, 5]], pa.list_(pa.int32()))
    as_arrow(path, {"input_ids": rows, "labels": rows})
    data, sound = path.read_bytes(), struct.pack("<3i", 0, 3, 5)
    at = data.index(sound) if column == "input_ids" else data.rindex(sound)
    path.write_bytes(data[:at] + struct.pack("<3i", *offsets) + data[at + 12 :])


POINTING = [(-2, 3, 5), (-(1 << 31), 3, 5), (7, 7, 7), (0, 3, 6), (0, 5, 3), (0, 1 << 30, 5)]
IMPORTING = """
import sys
from packtool.cli import run
for name in sys.argv[1:]:
    run(["import", name, "-o", "store", "-f", "arrow", "--tokenizer", "tokenizer.json"])
"""


def test_lists_that_point_elsewhere_are_damaged(tmp_path: Path, tokenizer: Path) -> None:
    """They would make other memory of the process into token ids, or end it; so it is tried in another one."""
    expected = {}
    for number, offsets in enumerate(POINTING):
        for column in ("input_ids", "labels"):
            write_lists(tmp_path / f"{column}-{number}.arrow", column, offsets)
            expected[f"{column}-{number}.arrow"] = f"{column}-{number}.arrow: column {column} is damaged: "
    command = [sys.executable, "-c", IMPORTING, *expected]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for said, wanted in zip(done.stderr.splitlines(), expected.values(), strict=True):
        assert wanted in said
    assert not (tmp_path / "store").exists()


def _megatron(path: Path, code: int, data: bytes, *, more: bytes = b"", bounds: tuple[int, ...] = (0, 1, 2)) -> Path:
    index = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, code, 2, len(bounds))
    index += struct.pack("<2i2q", 4, 3, 0, 8 if code == 8 else 16) + struct.pack(f"<{len(bounds)}q", *bounds)
    (path / "a.idx").write_bytes(index + more)
    (path / "a.bin").write_bytes(data)
    return path / "a.idx"


U2, U4 = np.array(IDS, "<u2").tobytes(), np.array(IDS, "<u4").tobytes()
SEVERAL = [(U2 + b"\0\0", 8), (U4, 8), (U2, 4), (U2[:-2], 8)]


@pytest.mark.parametrize(("data", "code"), SEVERAL)
def test_a_megatron_dataset_whose_index_is_of_other_ids_is_damaged(
    tmp_path: Path, tokenizer: Path, data: bytes, code: int
) -> None:
    with pytest.raises(DataError, match=r"a\.bin: its \d+ bytes are not those of the 2 sequences of \d+ bytes of its"):
        imported(_megatron(tmp_path, code, data), "megatron", tokenizer)
    assert imported(_megatron(tmp_path, 8, U2), "megatron", tokenizer) == [[5, 6, 7, 0], [8, 9, 0]]
    joined = imported(_megatron(tmp_path, 4, U4, bounds=(0, 2)), "megatron", tokenizer)
    assert joined == [IDS]


@pytest.mark.parametrize(
    ("more", "bounds", "message"),
    [
        (b"\0\1", (0, 1, 2), "says of each sequence whether it is text: a dataset of several modalities"),
        (b"\0", (0, 1, 2), "1 bytes longer than its header says"),
        (b"", (0, 1), "its documents are not contiguous"),
        (b"", (), "its documents are not contiguous"),
        (b"", (0, 2, 1, 2), "its documents are not contiguous"),
    ],
)
def test_a_megatron_index_that_says_more_or_less_is_refused(
    tmp_path: Path, tokenizer: Path, more: bytes, bounds: tuple[int, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        imported(_megatron(tmp_path, 8, U2, more=more, bounds=bounds), "megatron", tokenizer)


@pytest.mark.parametrize(("name", "file"), [("nanogpt", "train.bin"), ("olmo", "a.npy")])
def test_numpy_files_are_read_as_what_they_say(tmp_path: Path, tokenizer: Path, name: str, file: str) -> None:
    path, documents = tmp_path / file, [[5, 6, 7, 0], [8, 9, 0]]
    for dtype in ("<u2", "<i4", ">i4", "<u8"):
        with path.open("wb") as out:
            np.save(out, np.array(IDS, dtype))
        assert imported(path, name, tokenizer) == documents
    with pytest.raises(DataError, match=r"a NumPy file of uint64, but --dtype uint16 is given\. Leave --dtype out"):
        imported(path, name, tokenizer, dtype="uint16")
    whole = path.read_bytes()
    for damaged, message in (
        (whole[:-1], "a NumPy file of 183 bytes, whose header says 7 values of uint64"),
        (whole + b"\0", "a NumPy file of 185 bytes, whose header says 7 values of uint64"),
        (whole.replace(b"(7,)", b"(7,("), "a NumPy file with a damaged header"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=message):
            imported(path, name, tokenizer)
    for array, what in ((np.array([IDS]), "int64 in 2 dimensions"), (np.array([0.5]), "float64 in 1 dimensions")):
        with path.open("wb") as out:
            np.save(out, array)
        with pytest.raises(DataError, match=f"a NumPy file of {what}, not ids one after the other"):
            imported(path, name, tokenizer)


def test_the_type_of_bare_ids_is_obeyed_and_doubted(tmp_path: Path, tokenizer: Path) -> None:
    path = tmp_path / "train.bin"
    path.write_bytes(U4 * 3)
    assert imported(path, "nanogpt", tokenizer, dtype="uint32") == [[5, 6, 7, 0], [8, 9, 0]] * 3
    with pytest.raises(DataError, match=r"every second id of 16 bits is 0, as if ids were larger\. Give --dtype"):
        imported(path, "nanogpt", tokenizer)
    assert len(imported(path, "nanogpt", tokenizer, dtype="uint16")) > 20
    np.array(IDS * 3, "<i8").tofile(path)
    assert imported(path, "nanogpt", tokenizer, dtype="int64") == [[5, 6, 7, 0], [8, 9, 0]] * 3


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("llmc", {"dtype": "uint32"}, "--dtype: files of llmc say it themselves. Leave it out"),
        ("megatron", {"dtype": "uint32"}, "--dtype: files of megatron say it themselves"),
        ("olmo", {"field": "ids"}, "--field: olmo has no columns. Leave it out"),
    ],
)
def test_options_that_a_format_does_not_take_are_refused(
    tmp_path: Path, tokenizer: Path, name: str, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "a.bin").write_bytes(U2)
    with pytest.raises(UsageError, match=message):
        imported(tmp_path / "a.bin", name, tokenizer, **options)


@pytest.mark.parametrize("name", ["nanogpt", "llmc", "olmo"])
def test_eos_that_begins_documents_ends_them(tmp_path: Path, tokenizer: Path, name: str) -> None:
    """As llm.c and nanochat write: the first document is not empty, and the last has one EOS."""
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, 7
    ids = np.array([0, 5, 6, 7, 0, 8, 9], "<u2").tobytes()
    path = tmp_path / "train.bin"
    path.write_bytes((header.tobytes() if name == "llmc" else b"") + ids)
    assert imported(path, name, tokenizer) == [[5, 6, 7, 0], [8, 9, 0]]
    counts = TokenStore(tmp_path / "store").manifest.counts
    assert (counts["eos_first"], counts["eos_added"], counts["tokens"]) == (1, 1, 7)


def test_a_file_without_eos_is_one_document_and_it_is_said(tmp_path: Path, tokenizer: Path) -> None:
    path = tmp_path / "train.bin"
    np.array([5, 6, 7], "<u2").tofile(path)
    with pytest.warns(PacktoolWarning, match=r"train\.bin: EOS \(0\) is nowhere in it so all its tokens are one"):
        assert imported(path, "nanogpt", tokenizer) == [[5, 6, 7, 0]]
    np.array([5, 6, 0, 7], "<u2").tofile(path)
    assert imported(path, "nanogpt", tokenizer) == [[5, 6, 0], [7, 0]]


def _saved(path: Path, files: dict[str, list[list[int]]], named: list[str]) -> Path:
    path.mkdir()
    for file, rows in files.items():
        as_arrow(path / file, {"input_ids": pa.array(rows, pa.list_(pa.int32()))})
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in named]}))
    return path


def test_a_saved_dataset_is_the_files_that_it_names(tmp_path: Path, tokenizer: Path) -> None:
    """Not what `map` left beside them, nor the files of an earlier save."""
    files = {"data-00000.arrow": [[5, 0]], "cache-1.arrow": [[5, 0]], "data-00001.arrow": [[9, 0]]}
    path = _saved(tmp_path / "saved", files, ["data-00000.arrow"])
    assert imported(path, "arrow", tokenizer) == [[5, 0]]
    state = path / "state.json"
    for text, message in (
        ('{"_data_files": [{"filename": "data-00007.arrow"}]}', r"data-00007\.arrow: no such file, but another one"),
        (
            '{"_data_files": [{"filename": "../other.arrow"}]}',
            r"saved: a file of it is said to lie outside: \.\./other",
        ),
        ('{"_data_files": 3}', r"state\.json: not as its format has it: Expected `array`, got `int`"),
        ('{"_data_files": [], "_indices_data_files": [{"filename": "i"}]}', "chooses rows by a file of indices"),
    ):
        state.write_text(text)
        with pytest.raises(DataError, match=message):
            imported(path, "arrow", tokenizer)
    state.unlink()
    with pytest.raises(DataError, match=r"holds cache-1\.arrow, which datasets made of other files, and no"):
        imported(path, "arrow", tokenizer)
    (path / "cache-1.arrow").unlink()
    (path / "dataset_dict.json").write_text("{}")
    with pytest.raises(DataError, match="holds several splits, each in a directory of its own"):
        imported(path, "arrow", tokenizer)


def test_eos_that_does_not_fit_the_ids_is_an_error(tmp_path: Path) -> None:
    """The wrong tokenizer: its EOS is above all ids that the file's type holds."""
    tokenizer = tmp_path / "tokenizer.json"
    made = words(70_000, eos=70_000, text="<|endoftext|>")
    made.add_special_tokens(["<|endoftext|>"])
    made.save(str(tokenizer))
    (tmp_path / "train.bin").write_bytes(U2)
    as_arrow(tmp_path / "a.arrow", {"input_ids": pa.array([[5, 6]], pa.list_(pa.uint16()))})
    given: list[tuple[str, Path, dict[str, Any]]] = [
        ("nanogpt", tmp_path / "train.bin", {"dtype": "uint16"}),
        ("megatron", _megatron(tmp_path, 8, U2), {}),
        ("arrow", tmp_path / "a.arrow", {}),
    ]
    for name, path, options in given:
        with pytest.raises(DataError, match="its ids are of type uint16, which can't hold EOS, 70000 in this"):
            imported(path, name, tokenizer, **options)
        assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("at", [20, -20, -4])
def test_a_damaged_gzip_file_is_an_error(tmp_path: Path, tokenizer: Path, at: int) -> None:
    rng = np.random.default_rng(0)
    lines = "".join(json.dumps({"input_ids": rng.integers(1, 200, 40).tolist()}) + "\n" for _ in range(50))
    data = bytearray(gzip.compress(lines.encode()))
    data[at] ^= 0xFF
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(data)
    with pytest.raises(PacktoolError, match=r"a\.jsonl\.gz(:\d+)?: "):
        imported(path, "jsonl", tokenizer)
    assert not (tmp_path / "store").exists()


MDS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda shard: shard.update(samples=4), "has 3 samples, but its index says 4"),
    (lambda shard: shard["raw_data"].update(bytes=1), r"has \d+ bytes, but its index says 1"),
    (lambda shard: shard["raw_data"].update(hashes={"sha1": "00"}), "its sha1 is not the one that its index says"),
    (lambda shard: shard["raw_data"].update(hashes={"crc7": "00"}), "its index has a hash crc7, which is not known"),
    (lambda shard: shard.update(version=1), "version 1 of mds can't be read"),
    (lambda shard: shard.update(column_names=["ids"]), "has other columns than its index says"),
]


@pytest.mark.parametrize(("change", "message"), MDS)
def test_a_shard_of_mds_is_what_its_index_says(tmp_path: Path, tokenizer: Path, change: Any, message: str) -> None:
    packtool.export(write_store(tmp_path / "given", [4, 3, 9]), tmp_path / "mds", format="mds")
    (tmp_path / "mds" / "manifest.json").unlink()
    index = json.loads((tmp_path / "mds" / "index.json").read_bytes())
    change(index["shards"][0])
    (tmp_path / "mds" / "index.json").write_text(json.dumps(index))
    with pytest.raises(DataError, match=message):
        imported(tmp_path / "mds", "mds", tokenizer)


def test_an_index_of_several_shards_is_one_input(tmp_path: Path) -> None:
    packtool.export(write_store(tmp_path / "given", [4, 3, 9], per_shard=1), tmp_path / "mds", format="mds")
    packtool.import_(tmp_path / "mds", tmp_path / "store", format="mds")
    names = [entry.name for entry in TokenStore(tmp_path / "store").manifest.inputs]
    assert sorted(names) == ["index.json", *(f"shard-{number:05d}-00000.mds" for number in range(3))]


def test_a_shard_of_mds_is_read_without_its_index(tmp_path: Path, tokenizer: Path) -> None:
    given = write_store(tmp_path / "given", [4, 3, 9])
    packtool.export(given, tmp_path / "mds", format="mds")
    (shard,) = (tmp_path / "mds").glob("*.mds")
    shutil.copy(shard, tmp_path / "alone.mds")
    words(1 << 16).save(str(tmp_path / "wide.json"))
    packtool.import_(tmp_path / "alone.mds", tmp_path / "store", format="mds", tokenizer=tmp_path / "wide.json")
    assert stream(tmp_path / "store").tolist() == stream(given).tolist()


def test_tables_with_columns_of_one_name_are_refused(tmp_path: Path, tokenizer: Path) -> None:
    rows = pa.array([[5, 6]])
    parquet.write_table(pa.Table.from_arrays([rows, rows], ["input_ids", "input_ids"]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"2 columns are called input_ids\. Rename all but one"):
        imported(tmp_path / "a.parquet", "parquet", tokenizer)


def test_a_file_that_changes_while_it_is_read_is_an_error(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest would have the hash of what was not read."""
    from packtool.commands import import_ as command

    path = tmp_path / "train.bin"
    path.write_bytes(U2)
    read_all = command._read_all

    def changing(*given: Any, **options: Any) -> Any:
        done = read_all(*given, **options)
        path.write_bytes(U2 + U2)
        return done

    monkeypatch.setattr(command, "_read_all", changing)
    with pytest.raises(DataError, match=r"train\.bin: changed while it was read") as caught:
        imported(path, "nanogpt", tokenizer)
    assert caught.value.code == "input-changed"
    assert not (tmp_path / "store" / "manifest.json").exists()
