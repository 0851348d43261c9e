"""`pack` end to end: bytes, segments, order, shards, manifest, refusals."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import packtool
from packtool.commands.verify import verify
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import TokenizerInfo
from packtool.planning.packing import STRATEGIES
from packtool.planning.plan import INSERTED_EOS, PADDING
from tests.examples import examples
from tests.making import Make
from tests.shell import Shell
from tests.stores import EOS, TOKENIZER, document_tokens, write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12, 64, 7, 21, 2, 30, 11, 16]


@pytest.fixture
def store(tmp_path: Path, make: Make) -> Path:
    return make(LENGTHS, at=tmp_path) / "store"


def options_for(name: str, length: int = 16) -> dict[str, Any]:
    accepts = STRATEGIES[name].accepts
    if "sequence_length" in accepts:
        return {"sequence_length": length}
    return {"buckets": [length // 2, length, 2 * length]}


def atoms_of(path: Path, size: int) -> list[tuple[int, ...]]:
    rows = np.concatenate([np.load(f) for f in sorted(path.glob("tokens-*.npy"))])
    return [tuple(atom) for atom in rows.reshape(-1, size).tolist()]


@pytest.mark.parametrize("atom", [4, 16, 32])
def test_another_seed_orders_the_same_atoms_differently(tmp_path: Path, store: Path, atom: int) -> None:
    for seed in (42, 43):
        packtool.pack(
            store,
            tmp_path / str(seed),
            strategy="concat",
            sequence_length=16,
            atom_size=atom,
            seed=seed,
            remainder="drop",
        )
    size = min(atom, 16)
    a, b = atoms_of(tmp_path / "42", size), atoms_of(tmp_path / "43", size)
    assert a != b
    assert sorted(a) == sorted(b)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_numpy_alone_maps_every_shard(tmp_path: Path, store: Path, name: str) -> None:
    packtool.pack(store, tmp_path / "p", strategy=name, shard_tokens=64, **options_for(name))
    shards = sorted((tmp_path / "p").rglob("tokens-*.npy"))
    assert len(shards) > 1
    for shard in shards:
        rows = np.load(shard, mmap_mode="r")
        assert rows.ndim == 2
        assert rows.size <= 64
        assert shard.read_bytes()[4096:] == rows.tobytes()


def rebuilt(path: Path) -> dict[int, dict[int, int]]:
    """Document → position → token, from the segment tables; a contradiction fails."""
    found: dict[int, dict[int, int]] = {}
    for bucket in PackedDataset(path).buckets:
        rows = bucket.segments(0, bucket.rows)
        tokens = bucket.tokens(0, bucket.rows).reshape(-1).tolist()
        at = 0
        for document, start, length in zip(rows.document, rows.start, rows.length, strict=True):
            piece = tokens[at : at + length]
            at += length
            if document in (PADDING, INSERTED_EOS):
                assert set(piece) == {EOS}
                continue
            for position, token in enumerate(piece, start):
                assert found.setdefault(int(document), {}).setdefault(int(position), token) == token
    return found


@examples(25)
@given(
    lengths=st.lists(st.one_of(st.integers(2, 20), st.sampled_from([15, 16, 17, 32, 33, 200])), max_size=25),
    name=st.sampled_from(sorted(STRATEGIES)),
    atom=st.sampled_from([4, 16, 48]),
    remainder=st.sampled_from(["pad", "drop"]),
    shuffle=st.booleans(),
)
def test_segments_rebuild_the_documents(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], name: str, atom: int, remainder: str, shuffle: bool
) -> None:
    directory = tmp_path_factory.mktemp("rebuild")
    extra: dict[str, Any] = {}
    if "atom_size" in STRATEGIES[name].accepts:
        extra = {"atom_size": atom}
    if "remainder" in STRATEGIES[name].accepts:
        extra["remainder"] = remainder
    store = write_store(directory / "store", lengths)
    packtool.pack(store, directory / "p", strategy=name, shuffle=shuffle, shard_tokens=96, **options_for(name), **extra)
    assert verify(directory / "p").problems == []
    manifest = PackedDataset(directory / "p").manifest
    found = rebuilt(directory / "p")
    missing = 0
    for document, length in enumerate(lengths):
        tokens = document_tokens(document, length)
        have = found.pop(document, {})
        assert all(tokens[position] == token for position, token in have.items())
        missing += sum(position not in have for position in range(length - 1))
    assert found == {}
    assert missing == manifest.ledger.dropped
    drops = {"bfd-extra", "seamless", "decompose"}
    if remainder == "pad" and name not in drops:
        assert missing == 0


def test_several_stores_are_one_corpus(tmp_path: Path, store: Path) -> None:
    web = write_store(tmp_path / "web", LENGTHS[:6])
    code = write_store(tmp_path / "code", LENGTHS[6:], first=6)
    one = packtool.pack(store, tmp_path / "one", strategy="concat", sequence_length=16)
    two = packtool.pack([web, code], tmp_path / "two", strategy="concat", sequence_length=16)
    assert [source.documents for source in two.report.sources] == [6, len(LENGTHS) - 6]
    beside = {"sources": two.report.sources, "source_mix": two.report.source_mix}
    assert msgspec.structs.replace(one.report, **beside) == two.report
    names = ["tokens-00000.npy", "segments-00000.npy", "segment_offsets-00000.npy", "lengths.npy"]
    assert all((tmp_path / "one" / n).read_bytes() == (tmp_path / "two" / n).read_bytes() for n in names)
    manifest = PackedDataset(tmp_path / "two").manifest
    assert manifest.store_documents == [6, 10]
    assert manifests.input_names(tmp_path / "two", manifest.inputs) == ["web", "code"]


def test_what_stores_are_called_changes_no_bytes(tmp_path: Path) -> None:
    made = []
    for first, second in (("web", "code"), ("crawl", "git")):
        here = tmp_path / first
        stores = [write_store(here / first, LENGTHS[:6]), write_store(here / second, LENGTHS[6:], first=6)]
        packed, shuffled, export = (here / name for name in ("packed", "shuffled", "export"))
        mix = [f"{first}=2x", f"{second}=1.50x"]
        packtool.pack(stores, packed, strategy="concat", sequence_length=16, mix=mix)
        packtool.shuffle(packed, shuffled, epoch=1)
        packed.rename(here / f"packed-{first}")
        packtool.export(here / f"packed-{first}", export, format="nanogpt")
        (here / f"packed-{first}").rename(packed)
        files = [file for path in (packed, shuffled, export) for file in sorted(path.rglob("*"))]
        made.append({str(f.relative_to(here)): f.read_bytes() for f in files if f.is_file() and f.name != "run.json"})
        for dataset in (packed, shuffled):
            assert manifests.input_names(dataset, PackedDataset(dataset).manifest.inputs) == [first, second]
    assert made[0] == made[1]


@pytest.mark.parametrize("run", [None, b"{}", b"[", b'{"inputs": ["a"]}', b'{"inputs": [1, 2]}'])
def test_inputs_whose_names_are_lost_go_by_their_digests(tmp_path: Path, run: bytes | None) -> None:
    stores = [write_store(tmp_path / name, LENGTHS) for name in ("web", "code")]
    packtool.pack(stores, tmp_path / "packed", strategy="concat", sequence_length=16)
    (tmp_path / "packed" / "run.json").unlink()
    if run is not None:
        (tmp_path / "packed" / "run.json").write_bytes(run)
    manifest = PackedDataset(tmp_path / "packed").manifest
    found = manifests.input_names(tmp_path / "packed", manifest.inputs)
    assert found == [entry.xxh3_128[:12] for entry in manifest.inputs]
    with pytest.raises(UsageError, match=rf"packed from other stores \({found[0]}, {found[1]}\)"):
        verify(tmp_path / "packed", store=stores[:1], quiet=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "1" * 64}, f"code: tokenizer sha256 is {'1' * 64}, but {'0' * 64} in"),
        ({"eos_id": 3, "added_tokens": {}}, "code: tokenizer eos_id is 3, but 0 in"),
        ({"vocab_size": 1 << 17}, "code: tokenizer vocab_size is 131072, but 65536 in"),
    ],
)
def test_stores_that_differ_are_refused(tmp_path: Path, store: Path, change: dict[str, Any], message: str) -> None:
    given = {name: getattr(TOKENIZER, name) for name in TokenizerInfo.__struct_fields__}
    other = write_store(tmp_path / "code", [3], tokenizer=TokenizerInfo(**{**given, **change}))
    with pytest.raises(UsageError, match=message):
        packtool.pack([store, other], tmp_path / "p", strategy="concat", sequence_length=16)
    assert not (tmp_path / "p").exists()


def test_a_large_vocabulary_gives_uint32(tmp_path: Path) -> None:
    given = {name: getattr(TOKENIZER, name) for name in TokenizerInfo.__struct_fields__}
    store = write_store(tmp_path / "store", LENGTHS, tokenizer=TokenizerInfo(**{**given, "vocab_size": 65537}))
    packtool.pack(store, tmp_path / "p", strategy="padding", sequence_length=16)
    assert np.load(tmp_path / "p" / "tokens-00000.npy").dtype == np.dtype("<u4")
    assert verify(tmp_path / "p").problems == []


def test_without_segments_only_tokens_are_written(tmp_path: Path, store: Path) -> None:
    packtool.pack(store, tmp_path / "p", strategy="concat", sequence_length=16, segments=False)
    names = {file.name for file in (tmp_path / "p").iterdir()}
    assert names == {"tokens-00000.npy", "manifest.json", "report.json", "run.json"}
    assert verify(tmp_path / "p").problems == []
    with pytest.raises(UsageError, match="written with segments=False"):
        packtool.open(tmp_path / "p").segments(0)


def test_an_empty_store_packs_to_no_rows(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [])
    for name in STRATEGIES:
        packtool.pack(store, tmp_path / name, strategy=name, **options_for(name))
        assert verify(tmp_path / name).problems == []
        assert PackedDataset(tmp_path / name).manifest.ledger.rows == 0


def test_the_reader_gives_rows_and_segments(tmp_path: Path, store: Path) -> None:
    packtool.pack(store, tmp_path / "p", strategy="concat", sequence_length=16, shuffle=False, shard_tokens=64)
    dataset = packtool.open(tmp_path / "p")
    stream = [token for i, n in enumerate(LENGTHS) for token in document_tokens(i, n)]
    flat = list(itertools.chain.from_iterable(row.tolist() for row in dataset))
    assert flat[: len(stream)] == stream
    assert dataset[-1].tolist() == flat[-16:]
    assert dataset.segments(0).tolist() == [(0, 0, 5, 0), (1, 0, 11, 0)]
    assert len(dataset) == -(-len(stream) // 16)
    with pytest.raises(IndexError, match="row 18 of 18"):
        dataset[18]


def test_a_row_table_and_report_on_the_command_line(tmp_path: Path, store: Path, shell: Shell) -> None:
    arguments = ["pack", str(store), "-o", str(tmp_path / "p"), "--strategy", "concat", "-L", "16"]
    assert "padding" in shell(*arguments)
    result = json.loads(shell(*arguments, "--overwrite", "--json"))
    assert result["schema_version"] == 1
    assert result["report"] == json.loads((tmp_path / "p" / "report.json").read_text())


def test_an_output_that_holds_something_is_refused(tmp_path: Path, store: Path) -> None:
    packtool.pack(store, tmp_path / "p", strategy="concat", sequence_length=16)
    with pytest.raises(UsageError, match="overwrite=True"):
        packtool.pack(store, tmp_path / "p", strategy="concat", sequence_length=16)
    with pytest.raises(UsageError, match="output lies inside the input"):
        packtool.pack(store, store / "p", strategy="concat", sequence_length=16)
    packtool.pack(store, tmp_path / "p", strategy="concat", sequence_length=32, overwrite=True)
    assert PackedDataset(tmp_path / "p").buckets[0].sequence_length == 32


def test_padding_token_by_id_and_by_text(tmp_path: Path, store: Path) -> None:
    packtool.pack(store, tmp_path / "id", strategy="padding", sequence_length=16, pad_token="77")
    packtool.pack(store, tmp_path / "text", strategy="padding", sequence_length=16, pad_token="<eos>")
    assert PackedDataset(tmp_path / "id").manifest.pad_id == 77
    assert PackedDataset(tmp_path / "text").manifest.pad_id == EOS
    assert verify(tmp_path / "id").problems == []
    with pytest.raises(UsageError, match=r"'<pad>' is not an added token of the tokenizer \(it has: <eos>\)"):
        packtool.pack(store, tmp_path / "x", strategy="padding", sequence_length=16, pad_token="<pad>")


@pytest.mark.parametrize(
    ("typed", "code", "message"),
    [
        ("missing --strategy concat -L 16", 1, "missing: no such directory. Check the path."),
        (". --strategy concat -L 16", 1, "no manifest.json, so this is not a finished token store"),
        ("store --strategy tetris -L 16", 2, "--strategy: there is no strategy 'tetris'. Choose one of concat"),
        ("store --strategy concat", 2, "--sequence-length: --strategy concat needs this option"),
        ("store --strategy concat -L 16 -A 10", 2, "--atom-size: 10 does not fit the sequence length 16"),
        ("store --strategy concat -L 16 --seed 18446744073709551616", 2, "--seed"),
        ("store --strategy concat -L 16 --shard-tokens 0", 2, "--shard-tokens: 0 is out of range"),
    ],
)
def test_refusals(here: Path, store: Path, shell: Shell, typed: str, code: int, message: str) -> None:
    error = shell.refused("pack", *typed.split(), "-o", "out", status=code)
    assert message in error
    assert "Traceback" not in error
    assert not Path("out").exists()
