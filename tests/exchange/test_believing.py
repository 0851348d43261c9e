"""What files say of themselves is compared, not believed: a table of files that are not what they seem."""

import gzip
import io
import json
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import packtool
from packtool.errors import DataError, PacktoolError
from packtool.formats.token_store import TokenStore
from packtool.warnings import PacktoolWarning
from tests.exchange.streams import stream, words
from tests.exchange.tables import WRITE, as_arrow
from tests.stores import write_store

IDS = [5, 6, 7, 0, 8, 9, 0]
U2, U4 = np.array(IDS, "<u2").tobytes(), np.array(IDS, "<u4").tobytes()


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


Write = Callable[[Path], object]
"""Writes files to a directory."""


def file(name: str, data: bytes) -> Write:
    return lambda path: (path / name).write_bytes(data)


def megatron(data: bytes = U2, code: int = 8, more: bytes = b"", bounds: tuple[int, ...] = (0, 1, 2)) -> Write:
    index = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, code, 2, len(bounds))
    index += struct.pack("<2i2q", 4, 3, 0, 8 if code == 8 else 16) + struct.pack(f"<{len(bounds)}q", *bounds)
    return lambda path: [file("a.idx", index + more)(path), file("a.bin", data)(path)]


def loss(tokens: int = 5, values: int = 5, *, index: bool = True) -> Write:
    """What the tokenizer of datatrove writes: a byte for each token of the .ds file."""
    ids, ends = np.arange(1, tokens + 1, dtype="<u2"), np.array([tokens], "<u8")
    given = {"": ids.tobytes(), ".loss": bytes(values), **({".index": ends.tobytes()} if index else {})}
    return lambda path: [file(f"a.ds{suffix}", data)(path) for suffix, data in given.items()]


def saved(array: Any, change: Callable[[bytes], bytes] = lambda data: data) -> Write:
    """A file of NumPy."""
    out = io.BytesIO()
    np.save(out, array)
    return file("train.bin", change(out.getvalue()))


def table(name: str, labels: Any, **columns: Any) -> Write:
    given = {"input_ids": [[5, 6, 7], [8], [], [9, 0]], **({"labels": labels} if labels else {}), **columns}
    return lambda path: WRITE[name](path / f"a.{name}", given)


def same_names(path: Path) -> None:
    rows = pa.array([[5, 6]])
    pq.write_table(pa.Table.from_arrays([rows, rows], ["input_ids", "input_ids"]), path / "a.parquet")


def dataset(state: str, *files: str) -> Write:
    """What `datasets` saves, with the state as text; without one, if it is empty."""

    def write(path: Path) -> None:
        for name in files or ("data-00000.arrow", "cache-1.arrow", "data-00001.arrow"):
            as_arrow(path / name, {"input_ids": pa.array([[5, 0]], pa.list_(pa.int32()))})
        if state:
            (path / "state.json").write_text(state)

    return write


def indexed(name: str, change: Callable[[dict[str, Any]], object]) -> Write:
    """What export writes, and an index that says something else of it."""

    def write(path: Path) -> None:
        packtool.export(write_store(path.parent / "given", [4, 3, 9]), path, format=name, overwrite=True)
        (path / "manifest.json").unlink()
        index = json.loads((path / "index.json").read_bytes())
        change(index)
        (path / "index.json").write_text(json.dumps(index))

    return write


def mds(change: Callable[[dict[str, Any]], object]) -> Write:
    """A shard that its index says something else of."""
    return indexed("mds", lambda index: change(index["shards"][0]))


def litdata(**config: Any) -> Write:
    """Chunks that are not written as their index says."""
    return indexed("litdata", lambda index: index["config"].update(config))


def gzipped(at: int) -> Write:
    """A file of lines, one of whose bytes is another."""
    rng = np.random.default_rng(0)
    lines = "".join(json.dumps({"input_ids": rng.integers(1, 200, 40).tolist()}) + "\n" for _ in range(50))
    data = bytearray(gzip.compress(lines.encode()))
    data[at] ^= 0xFF
    return file("a.jsonl.gz", bytes(data))


def lines(data: bytes) -> Write:
    return file("a.jsonl", data)


IDS_FIRST = b'{"input_ids": [1]}\n'
SHIFTED = r"labels has the label 6, another token than the id, as if labels were shifted \(token 0, whose id is 5\)"
NEXT = [[6, 7, 0], [8], [], [9, 0]]
SHORT = [[0, 1, 1], [0, 1], [], [1, 0]]
OTHER_IDS = r"damaged-input: .*a\.bin: its \d+ bytes are not those of the 2 sequences of \d+ bytes of its"
LEAVES = ", ".join(['{"type": null, "context": null, "children_spec": []}'] * 2)
LIST = f'{{"type": "builtins.list", "context": "null", "children_spec": [{LEAVES}]}}'
ONE_LIST = {"data_format": ["int", "int"], "item_loader": "PyTreeLoader", "data_spec": f"[1, {LIST}]"}
IN_A_DICT = r'{"type": "builtins.dict", "context": "[\"input_ids\"]", "children_spec": '
LISTS = {**ONE_LIST, "data_spec": f"[1, {IN_A_DICT}[{LIST}]}}]"}
NOT_CONTIGUOUS = "its documents are not contiguous"
REFUSED: list[tuple[str, Write, str]] = [
    ("jsonl", lines(IDS_FIRST + b'{"input_ids": [1, -1]}\n'), r"bad-ids: .*a\.jsonl:2: not a list of token"),
    ("jsonl", lines(IDS_FIRST + b'{"input_ids"'), r"bad-ids: .*a\.jsonl:2: not a JSON object"),
    ("jsonl", lines(b'{"text": "x"}\n'), r"missing-ids: .*l:1: no column called input_ids.*there are text"),
    ("jsonl", file("a.jsonl.gz", b"nothing"), r"damaged-input: .*a\.jsonl\.gz: not compressed, as \.gz says"),
    ("jsonl", lines(b'{"input_ids": [5, 999999]}\n'), r"id-out-of-range: .*a\.jsonl: token 1 is 999999, but the"),
    ("jsonl", lines(b'{"input_ids": [1], "seq_lengths": [1, 1]}\n'), "import-loses: .*1: column seq_lengths says"),
    ("jsonl", lines(IDS_FIRST + b'{"input_ids": [1], "labels": [1]}\n'), "bad-mask: .*:2: labels says more"),
    ("jsonl", lines(b'{"input_ids": [1], "labels": [1]}\n' + IDS_FIRST), "bad-mask: .*:2: no column says"),
    ("jsonl", table("jsonl", NEXT), rf"a\.jsonl:1: {SHIFTED}"),
    ("parquet", table("parquet", NEXT), rf"a\.parquet, row 0: {SHIFTED}"),
    ("jsonl", table("jsonl", None, loss_mask=[[0] * 3, [0.5], [], [1, 0]]), r":2: loss_mask has the value 0\.5, neith"),
    ("jsonl", table("jsonl", None, loss_mask=SHORT), r"l:2: column loss_mask has 2 values for 1 id\. Give every"),
    ("parquet", table("parquet", None, loss_mask=SHORT), r"t, row 1: column loss_mask has 2 values for 1 id\."),
    ("jsonl", table("jsonl", None, loss_mask=[[0] * 3, ["x"], [], [1]]), r"l:2: loss_mask is not a list of numbers"),
    *(("jsonl", gzipped(at), r"a\.jsonl\.gz(:\d+)?: ") for at in (20, -20, -4)),
    ("megatron", file("a.idx", b"nothing"), "damaged-input: .*not an index of Megatron-Core"),
    *(("megatron", megatron(*each), OTHER_IDS) for each in ((U2 + b"\0\0",), (U4,), (U2, 4), (U2[:-2],))),
    ("megatron", megatron(more=b"\0\1"), "says of each sequence whether it is text: a dataset of several modalities"),
    ("megatron", megatron(more=b"\0"), "1 bytes longer than its header says"),
    *(("megatron", megatron(bounds=bounds), NOT_CONTIGUOUS) for bounds in ((0, 1), (), (0, 2, 1, 2))),
    ("llmc", file("a.bin", b"nothing"), r"damaged-input: .*not an llm\.c file"),
    ("datatrove", loss(index=False), r"a\.ds\.loss says which tokens train, but a\.ds\.index is not there"),
    ("datatrove", loss(5, 4), r"a\.ds\.loss has 4 values, but there are 5 tokens"),
    ("nanogpt", file("train.bin", b"odd"), "damaged-input: .*3 bytes of ids are not a multiple of 2"),
    ("nanogpt", file("train.bin", U4 * 3), r"every second id of 16 bits is 0, as if ids were larger\. Give dtype"),
    ("nanogpt", saved(IDS, lambda data: data[:-1]), "a NumPy file of 183 bytes, whose header says 7 values of int64"),
    (
        "nanogpt",
        saved(IDS, lambda data: data + b"\0"),
        "a NumPy file of 185 bytes, whose header says 7 values of int64",
    ),
    ("nanogpt", saved(IDS, lambda data: data.replace(b"(7,)", b"(7,(")), "a NumPy file with a damaged header"),
    ("nanogpt", saved([IDS]), "a NumPy file of int64 in 2 dimensions, not ids one after the other"),
    ("nanogpt", saved([0.5]), "a NumPy file of float64 in 1 dimensions, not ids one after the other"),
    ("parquet", file("a.parquet", b"nothing"), "damaged-input: .*not a readable Parquet file"),
    ("parquet", same_names, r"2 columns are called input_ids\. Rename all but one"),
    ("arrow", file("a.arrow", b"nothing"), "damaged-input: .*not a whole Arrow file"),
    ("arrow", dataset('{"_data_files": [{"filename": "data-00007.arrow"}]}'), r"7\.arrow: no such file, but another"),
    ("arrow", dataset('{"_data_files": [{"filename": "../b"}]}'), r"in: a file of it is said to lie outside: \.\./b"),
    ("arrow", dataset('{"_data_files": 3}'), r"state\.json: not as its format has it: Expected `array`, got `int`"),
    ("arrow", dataset('{"_data_files": [], "_indices_data_files": [{"filename": "i"}]}'), "chooses rows by a file"),
    ("arrow", dataset(""), r"holds cache-1\.arrow, which datasets made of other files, and no"),
    ("arrow", file("dataset_dict.json", b"{}"), "holds several splits, each in a directory of its own"),
    ("mds", mds(lambda shard: shard.update(samples=4)), "has 3 samples, but its index says 4"),
    ("mds", mds(lambda shard: shard["raw_data"].update(bytes=1)), r"has \d+ bytes, but its index says 1"),
    ("mds", mds(lambda shard: shard["raw_data"].update(hashes={"sha1": "0"})), "its sha1 is not the one that its"),
    ("mds", mds(lambda shard: shard["raw_data"].update(hashes={"crc7": "0"})), "its index has a hash crc7, which is n"),
    ("mds", mds(lambda shard: shard.update(version=1)), "version 1 of mds can't be read"),
    ("mds", mds(lambda shard: shard.update(column_names=["ids"])), "has other columns than its index says"),
    ("mds", indexed("mds", lambda index: index["shards"].extend(index["shards"])), "its index names a file twice"),
    ("litdata", litdata(compression_level="sample"), "compressed one by one. Write it without, or compressed by batch"),
    ("litdata", litdata(compression_level="batch"), "not a chunk of version 1 that is compressed by batch"),
    ("litdata", litdata(**LISTS), r"column input_ids is of type builtins\.list, of which litdata writes each number"),
    ("litdata", litdata(**ONE_LIST), r"no column called input_ids, .*; there are 0, 1\. Name the column of ids"),
]
TAKEN: list[tuple[str, Write, str]] = [
    ("nanogpt --dtype uint16", saved(IDS), r'a NumPy file of int64, but dtype="uint16" is given\. Leave dtype out'),
    ("llmc --dtype uint32", file("a.bin", U2), "dtype: files of llmc say it themselves. Leave it out"),
    ("megatron --dtype uint32", megatron(), "dtype: files of megatron say it themselves"),
    ("olmo --field ids", file("a.npy", U2), "field: olmo has no columns. Leave it out"),
]
"""Refused for an option."""


@pytest.mark.parametrize(("given", "write", "message"), [*REFUSED, *TAKEN])
def test_what_is_not_what_it_seems_is_refused(
    tmp_path: Path, tokenizer: Path, given: str, write: Write, message: str
) -> None:
    name, *option = given.split()
    options = {option[0].removeprefix("--"): option[1]} if option else {}
    (tmp_path / "in").mkdir()
    write(tmp_path / "in")
    with pytest.raises(PacktoolError) as caught:
        packtool.import_(tmp_path / "in", tmp_path / "store", format=name, tokenizer=tokenizer, **options)
    assert re.search(message, f"{caught.value.code}: {caught.value}")
    assert not (tmp_path / "store").exists()


def imported(path: Path, tokenizer: Path, **options: Any) -> list[list[int]]:
    packtool.import_(path, path.parent / "store", format="nanogpt", tokenizer=tokenizer, overwrite=True, **options)
    store = TokenStore(path.parent / "store")
    return [store.document(number).tolist() for number in range(store.documents)]


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "int64"])
def test_the_type_of_bare_ids_is_obeyed(tmp_path: Path, tokenizer: Path, dtype: str) -> None:
    np.array([7, 0, *IDS], dtype).tofile(tmp_path / "train.bin")
    assert imported(tmp_path / "train.bin", tokenizer, dtype=dtype) == [[7, 0], [5, 6, 7, 0], [8, 9, 0]]
    if dtype == "uint16":  # every second id is 0: doubted, unless the type is given
        (tmp_path / "train.bin").write_bytes(U4 * 3)
        assert len(imported(tmp_path / "train.bin", tokenizer, dtype=dtype)) > 20


def test_a_file_without_eos_is_one_document_and_it_is_said(tmp_path: Path, tokenizer: Path) -> None:
    np.array([5, 6, 7], "<u2").tofile(tmp_path / "train.bin")
    with pytest.warns(PacktoolWarning, match=r"train\.bin: EOS \(0\) is nowhere in it so all its tokens are one"):
        assert imported(tmp_path / "train.bin", tokenizer) == [[5, 6, 7, 0]]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("nanogpt", saved(np.array(IDS, "<u2"))),
        ("megatron", megatron()),
        ("arrow", lambda path: as_arrow(path / "a.arrow", {"input_ids": pa.array([[5]], pa.list_(pa.uint16()))})),
    ],
)
def test_eos_that_does_not_fit_the_ids_is_an_error(tmp_path: Path, name: str, write: Write) -> None:
    """The wrong tokenizer: its EOS is above all ids that the file's type holds."""
    made = words(70_000, eos=70_000, text="<|endoftext|>")
    made.add_special_tokens(["<|endoftext|>"])
    made.save(str(tmp_path / "wide.json"))
    (tmp_path / "in").mkdir()
    write(tmp_path / "in")
    with pytest.raises(DataError, match="its ids are of type uint16, which can't hold EOS, 70000 in this"):
        packtool.import_(tmp_path / "in", tmp_path / "store", format=name, tokenizer=tmp_path / "wide.json")
    assert not (tmp_path / "store").exists()


def test_a_shard_of_mds_is_read_without_its_index(tmp_path: Path, tokenizer: Path) -> None:
    given = write_store(tmp_path / "given", [4, 3, 9])
    packtool.export(given, tmp_path / "mds", format="mds")
    (shard,) = (tmp_path / "mds").glob("*.mds")
    shutil.copy(shard, tmp_path / "alone.mds")
    words(1 << 16).save(str(tmp_path / "wide.json"))
    packtool.import_(tmp_path / "alone.mds", tmp_path / "store", format="mds", tokenizer=tmp_path / "wide.json")
    assert stream(tmp_path / "store").tolist() == stream(given).tolist()


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
        imported(path, tokenizer)
    assert caught.value.code == "input-changed"
    assert not (tmp_path / "store" / "manifest.json").exists()
