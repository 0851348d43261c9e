"""`pack` end to end: several stores, what they are called, and rows without segments."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import packtool
from packtool.commands.verify import verify
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.packed import PackedDataset
from packtool.planning.packing import STRATEGIES
from packtool.warnings import PacktoolWarning
from tests.making import Make
from tests.stores import EOS, TOKENIZER, write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12, 64, 7, 21, 2, 30, 11, 16]


@pytest.fixture
def store(tmp_path: Path, make: Make) -> Path:
    return make(LENGTHS, at=tmp_path) / "store"


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
        ({"sha256": "1" * 64}, f"code: its tokenizer is sha256 {'1' * 12}, but sha256 {'0' * 12} in"),
        ({"eos_id": 3, "added_tokens": {}}, "code: tokenizer eos_id is 3, but 0 in"),
        ({"vocab_size": 1 << 17}, "code: tokenizer vocab_size is 131072, but 65536 in"),
    ],
)
def test_stores_that_differ_are_refused(tmp_path: Path, store: Path, change: dict[str, Any], message: str) -> None:
    other = write_store(tmp_path / "code", [3], tokenizer=msgspec.structs.replace(TOKENIZER, **change))
    with pytest.raises(UsageError, match=message):
        packtool.pack([store, other], tmp_path / "p", strategy="concat", sequence_length=16)
    assert not (tmp_path / "p").exists()


def test_a_large_vocabulary_gives_uint32(tmp_path: Path) -> None:
    large = msgspec.structs.replace(TOKENIZER, vocab_size=65537)
    store = write_store(tmp_path / "store", LENGTHS, tokenizer=large)
    packtool.pack(store, tmp_path / "p", strategy="padding", sequence_length=16)
    assert np.load(tmp_path / "p" / "tokens-00000.npy").dtype == np.dtype("<u4")
    assert verify(tmp_path / "p").problems == []


def test_without_segments_only_tokens_are_written(tmp_path: Path, store: Path) -> None:
    packtool.pack(store, tmp_path / "p", strategy="concat", sequence_length=16, segments=False)
    names = {file.name for file in (tmp_path / "p").iterdir()}
    assert names == {"tokens-00000.npy", "manifest.json", "report.json", "run.json"}
    assert verify(tmp_path / "p").problems == []
    with pytest.raises(UsageError, match=r"written with segments=False.* Pack again without segments=False\."):
        packtool.open(tmp_path / "p").segments(0)
    report = packtool.stats(tmp_path / "p")
    assert (report.metrics, report.ledger.rows) == (None, len(packtool.open(tmp_path / "p")))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_empty_store_packs_to_no_rows(tmp_path: Path, strategy: str) -> None:
    store = write_store(tmp_path / "store", [])
    rows = {"buckets": [8, 16]} if strategy.endswith("buckets") else {"sequence_length": 16}
    with pytest.warns(PacktoolWarning, match="store: the store holds no document"):
        packtool.pack(store, tmp_path / "packed", strategy=strategy, **rows)
    with (
        pytest.warns(PacktoolWarning, match="the store holds no document"),
        pytest.raises(UsageError, match=r"^the stores hold no document\. Check"),
    ):
        packtool.pack(store, tmp_path / "chosen", strategy=strategy, min_tokens=3, **rows)
    packtool.shuffle(tmp_path / "packed", tmp_path / "shuffled", epoch=1)
    for name in ("packed", "shuffled"):
        assert verify(tmp_path / name).problems == []
        assert PackedDataset(tmp_path / name).manifest.ledger.rows == 0


def test_padding_token_by_id_and_by_text(tmp_path: Path, store: Path) -> None:
    packtool.pack(store, tmp_path / "id", strategy="padding", sequence_length=16, pad_token="77")
    packtool.pack(store, tmp_path / "text", strategy="padding", sequence_length=16, pad_token="<eos>")
    assert PackedDataset(tmp_path / "id").manifest.pad_id == 77
    assert PackedDataset(tmp_path / "text").manifest.pad_id == EOS
    assert verify(tmp_path / "id").problems == []
    with pytest.raises(UsageError, match=r"'<pad>' is not an added token of the tokenizer \(it has: <eos>\)"):
        packtool.pack(store, tmp_path / "x", strategy="padding", sequence_length=16, pad_token="<pad>")
