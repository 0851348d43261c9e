"""`stats` of stores and packed datasets, against what was packed, and a count on the written shards."""

import itertools
import json
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import packtool
from packtool.errors import PacktoolError
from packtool.formats.token_store import TokenStore
from packtool.planning.packing import STRATEGIES
from packtool.report.compare import candidates
from packtool.report.page import page
from packtool.report.types import MeasuredReport
from tests.examples import examples
from tests.making import Make
from tests.stores import contents, write_store

WITHOUT_TARGET = pytest.mark.filterwarnings("ignore:.* have no target, so the mean loss of such a row is no number")
LENGTHS = np.random.default_rng(5).integers(2, 90, 300)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return write_store(tmp_path / "store", LENGTHS.tolist())


def count_by_hand(path: Path, stores: list[Path], report: MeasuredReport) -> None:
    """Compare a report with a count over the shards as plain arrays, row by row, and every piece with its document."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    documents = [store.document(n) for store in map(TokenStore, stores) for n in range(store.documents)]
    lengths = np.array(list(map(len, documents)))
    rows = output = padding = rounding = text = inserted = without_target = 0
    multiple = manifest["options"].get("document_multiple", 1)
    intact: set[int] = set()
    seen: Counter[tuple[int, int]] = Counter()
    per_row = []
    for bucket in manifest["buckets"]:
        for shard in bucket["shards"]:
            base = path / bucket["directory"]
            tokens = np.load(base / shard["tokens"]["name"], mmap_mode="r")
            table = np.load(base / shard["segments"]["name"])
            offsets = np.load(base / shard["segment_offsets"]["name"])
            rows += len(tokens)
            output += tokens.size
            for row, (first, last) in enumerate(itertools.pairwise(offsets)):
                at = 0
                filler = 0
                here = set()
                for document, start, length, _ in table[first:last]:
                    piece = tokens[row, at : at + length]
                    begin, at = at, at + len(piece)
                    if document == -1:
                        padding += len(piece)
                        filler += len(piece)
                        rounding += min(len(piece), -begin % multiple)
                    elif document == -2:
                        inserted += len(piece)
                        assert (piece == 0).all()
                    else:
                        np.testing.assert_array_equal(piece, documents[document][start : start + length])
                        here.add(int(document))
                        end = int(lengths[document]) - 1
                        for i in range(start, start + length):
                            seen[int(document), int(i)] += i < end
                        text += int((piece != 0).sum())
                        if start == 0 and start + length >= end:
                            intact.add(int(document))
                assert at == tokens.shape[1]
                per_row.append(len(here))
                without_target += at - filler < 2  # the first token of a row is no target
    placed = sum(1 for times in seen.values() if times)
    ledger, metrics = report.ledger, report.metrics
    assert (ledger.rows, ledger.output, ledger.padding) == (rows, output, padding)
    assert (ledger.rounding or 0) == rounding
    assert report.rows_without_target == without_target
    assert (ledger.placed, ledger.repeated) == (placed, text - placed)
    assert ledger.eos_inserted == inserted
    assert ledger.dropped == int((lengths - 1).sum()) - placed
    assert metrics.cut_documents == len(lengths) - len(intact)
    assert metrics.documents_per_row.max == max(per_row, default=0)
    assert metrics.documents_per_row.mean == pytest.approx(sum(per_row) / max(1, len(per_row)))
    overlapping = {document for (document, _), times in seen.items() if times > 1}
    assert metrics.overlapping_documents == len(overlapping)


@pytest.fixture
def place(make: Make, here: Path) -> Path:
    """A store, what was packed from it, datasets that lost their manifests, and a store that is unfinished."""
    rows, short = ({"strategy": name, "sequence_length": 8} for name in ("concat", "decompose"))
    make([3, 4, 90], rows=rows, lost=rows, short=short, at=here)
    packtool.shuffle("short", "lost buckets", method="bucket", batch_tokens=16)
    for name in ("lost", "lost buckets"):
        Path(name, "manifest.json").unlink()
    Path("half/unfinished").mkdir(parents=True)
    return here


LOST = r"run.json without manifest.json: a dataset that lost it"


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        (["rows", "store"], {}, r"rows: only token stores can be measured together"),
        ("rows", {"compare": "all", "sequence_length": 8}, "packed dataset, but strategies are compared on documents"),
        ("rows", {"mix": {"store": 1}}, r"^mix: has no effect on packed datasets\. Leave it out: this dataset is"),
        ("store", {"text_field": "b"}, r"^text_field: has no effect on token stores\. Leave it out: this directory"),
        ("store", {"compare": "tetris"}, r"compare: there is no strategy 'tetris'\. Choose one of concat, .*, all"),
        ("store", {"compare": "concat"}, r"sequence_length: the strategy concat needs the length of a row\. Give seq"),
        ("store", {"html": "no/page.html"}, r"html: no/page\.html can't be written: .*\. Give a file in an existing"),
        ("store", {"html": "store/tokens-00000.npy"}, r"html: '.*tokens-00000.npy' is not the name of a page, and"),
        ("lost", {}, LOST),
        ("lost buckets", {}, LOST),
        ("half", {}, r"was interrupted\. Finish it first"),
        ("nothing", {}, r"no such file or directory\. Check the path\."),
    ],
)
def test_what_makes_no_sense(place: Path, path: Any, options: dict[str, Any], message: str) -> None:
    before = contents(place)
    with pytest.raises(PacktoolError, match=message):
        packtool.stats(path, **options)
    assert contents(place) == before


def unnamed(report: Any) -> dict[str, Any]:
    """A report without the names of its sources, as `report.json` has it."""
    found = json.loads(msgspec.json.encode(report))
    return {**found, "sources": [{**source, "name": None} for source in found["sources"]]}


def test_counts_batches(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32)
    report = packtool.stats(tmp_path / "packed", batch_size=7)
    assert report.metrics.steps_per_epoch == -(-report.metrics.rows // 7)
    assert report.mixing[0].batch_size == 7


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "concat", "sequence_length": 16, "atom_size": 4},
        {"strategy": "concat", "sequence_length": 16, "atom_size": 64},
        {"strategy": "concat", "sequence_length": 16, "atom_size": 2, "remainder": "drop"},
        {"strategy": "padding", "sequence_length": 16, "atom_size": 4},
        {"strategy": "padding", "sequence_length": 16, "atom_size": 32},
        {"strategy": "seamless", "sequence_length": 16, "extra_capacity": 3, "remainder": "drop"},
        {"strategy": "decompose", "sequence_length": 16, "min_bucket": 4},
        {"strategy": "decompose", "sequence_length": 64, "document_multiple": 8},
        {"strategy": "length-buckets", "buckets": [64, 128], "document_multiple": 8},
        {"strategy": "concat", "sequence_length": 64, "atom_size": 32, "document_multiple": 8},
        {"strategy": "seamless", "sequence_length": 64, "document_multiple": 8},
        {"strategy": "bfd-extra", "sequence_length": 16, "extra_capacity": 5, "window_tokens": 500},
    ],
)
@WITHOUT_TARGET
def test_figures_are_those_of_the_shards(store: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    """And of the report beside them."""
    packtool.pack(store, tmp_path / "packed", **options, shard_tokens=1024)
    report = packtool.stats(tmp_path / "packed")
    count_by_hand(tmp_path / "packed", [store], report)
    written = json.loads((tmp_path / "packed" / "report.json").read_bytes())
    assert unnamed(report).items() >= written.items()
    assert [source.name for source in report.sources] == [store.name]
    assert max(np.load(shard, mmap_mode="r").size for shard in (tmp_path / "packed").rglob("tokens-*")) <= 1024


def test_rows_of_each_step_are_those_of_the_plan(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="seamless", sequence_length=16)
    packtool.shuffle(tmp_path / "packed", tmp_path / "shuffled", seed=3)
    for name in ("packed", "shuffled"):
        report = packtool.stats(tmp_path / name)
        assert list(report.stages) == ["overlapping", "whole", "bins", "joined"]
        assert sum(report.stages.values()) == report.ledger.rows
        assert all(report.stages.values())
        assert f"<td>{report.stages['overlapping']:,}</td>" in re.sub(r"<td [^>]*>", "<td>", page(report))
        assert "of bins below a row, joined and cut" in page(report)
    packtool.pack(store, tmp_path / "plain", strategy="concat", sequence_length=16)
    assert packtool.stats(tmp_path / "plain").stages is None


def test_of_a_partial_shuffle(store: Path, tmp_path: Path) -> None:
    packtool.shuffle(store, tmp_path / "rows", method="partial", batch_size=4, sequence_length=16)
    report = packtool.stats(tmp_path / "rows")
    count_by_hand(tmp_path / "rows", [store], report)
    assert report.mixing[0].batch_size == 4


def test_of_a_bucket_shuffle(store: Path, tmp_path: Path) -> None:
    twin = shutil.copytree(store, tmp_path / "twin")
    packtool.pack([store, twin], tmp_path / "packed", strategy="buckets", buckets=[32, 128])
    packtool.shuffle(tmp_path / "packed", tmp_path / "rows", method="bucket", batch_tokens=512)
    report = packtool.stats(tmp_path / "rows")
    assert [m.batch_size for m in report.mixing] == [512 // 32, 512 // 128]
    assert report.mixing[0].sources.mean > 1
    assert sum(b.row_share for b in report.buckets) == pytest.approx(1)
    count_by_hand(tmp_path / "rows", [store, twin], report)


@WITHOUT_TARGET
@examples(8, HealthCheck.function_scoped_fixture)
@given(data=st.data())
def test_compare_equals_packing_then_measuring(data: st.DataObject, tmp_path: Path) -> None:
    size = data.draw(st.sampled_from([4, 8, 16]))
    lengths = [5, *data.draw(st.lists(st.integers(2, 4 * size), min_size=1, max_size=40))]
    chosen: dict[str, Any] = data.draw(
        st.sampled_from([{}, {"min_tokens": 5}, {"mix": {"store": "1.5x"}}, {"max_tokens": 2 * size}])
    )
    chosen = chosen | data.draw(st.sampled_from([{}, {"too_long": "first"}]))
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    store = write_store(place / "store", lengths)
    rows: dict[str, Any] = {"sequence_length": size, "buckets": [size, 2 * size]}
    foreseen = packtool.stats(store, compare="all", batch_size=3, **rows, **chosen)
    tried = candidates(["all"], [size], {"buckets": (size, 2 * size)})
    assert len(tried) == len(foreseen.comparison.entries) == len(STRATEGIES)
    for candidate, entry in zip(tried, foreseen.comparison.entries, strict=True):
        options = {f.name: getattr(candidate.options, f.name) for f in fields(candidate.options)}
        packtool.pack(store, place / entry.strategy, strategy=entry.strategy, **options, **chosen)
        measured = packtool.stats(place / entry.strategy, batch_size=3)
        if entry.strategy == "seamless" and "too_long" not in chosen:
            assert measured.sliding.texts == entry.metrics.overlapping_documents
        for name in ("ledger", "beyond", "metrics", "buckets", "documents_per_row"):
            assert getattr(entry, name) == getattr(measured, name), (entry.strategy, name)
        if chosen.keys() <= {"too_long"}:
            count_by_hand(place / entry.strategy, [store], measured)
