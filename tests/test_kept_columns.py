"""Columns kept of documents: whatever is done with a dataset, each piece of a batch has the value of its document."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats.names import MOST_CATEGORIES
from packtool.reading import make_batch
from packtool.reading.stream import Stream
from tests.making import Make
from tests.reading.opening import KINDS
from tests.stores import amended, contents, load, rewrite

FIELDS = ("input_ids", "cu_seqlens", "column.score", "column.lang")
Made = tuple[list[Path], list[dict[str, Any]]]
TEXTS = ["en", "de", "", "ünï", None]


def record(number: int, random: np.random.Generator, *, langs: Sequence[str | None] = TEXTS) -> dict[str, Any]:
    """A document of a corpus; of each column some lack a value."""
    fields: dict[str, Any] = {"text": f"{number} " + "word " * int(random.integers(0, 40))}
    if random.random() < 0.8:
        fields["score"] = round(float(random.normal()), 3)
    lang = langs[int(random.integers(len(langs)))]
    if lang is not None:
        fields["lang"] = lang
    return fields


@pytest.fixture(scope="module")
def made(make: Make) -> Made:
    """Three stores, of which the last keeps no score; and the records of all."""
    random = np.random.default_rng(5)
    web = [record(n, random) for n in range(90)]
    wiki = [record(n, random, langs=["fr", "en"]) for n in range(40)]
    code = [record(n, random) for n in range(20)]
    place = make({"web": web, "wiki": wiki}, {"columns": ["score", "lang"]})
    stores = [place / "web", place / "wiki", make({"code": code}, {"columns": ["lang"]}) / "code"]
    return stores, [*web, *wiki, *({**each, "score": None} for each in code)]


def expected(dataset: Any, row: int, known: Sequence[dict[str, Any]]) -> list[tuple[float | None, str | None]]:
    """Score and lang of each sequence of a row, piece by piece, from the segments and the records."""
    numbers = documents_of(dataset)
    out: list[tuple[float | None, str | None]] = []
    before = None
    for document, *_ in dataset.segments(row).tolist():
        if document == -1 or (document == -2 and before in (None, -1)):
            out.append((None, None))
        elif document >= 0:
            of = known[numbers[document]]
            out.append((of.get("score"), of.get("lang")))
        before = document
    return out


def documents_of(dataset: Any) -> list[int]:
    """The record behind each document of a dataset."""
    place = Path(str(dataset.recipe.place))
    manifest = load(place)
    if manifest["choice"] is None:
        return list(range(manifest["documents"]))
    chosen = np.load(place / "chosen.npy")
    firsts = np.cumsum([0, *[s["documents"] for s in manifest["choice"]["sources"]]])
    begins = np.repeat(firsts[:-1], manifest["store_documents"])
    return (chosen + begins).tolist()


def found(batch: Any, columns: Any) -> list[tuple[float | None, str | None]]:
    """Score and lang of each sequence of a batch."""
    scores = [None if math.isnan(each) else each for each in np.asarray(batch["column.score"]).tolist()]
    langs = [None if each < 0 else columns["lang"][each] for each in np.asarray(batch["column.lang"]).tolist()]
    return list(zip(scores, langs, strict=True))


def check(dataset: Any, known: Sequence[dict[str, Any]], rows: int = 12) -> None:
    """Batches of some rows have the values of their documents, and sequences as before."""
    random = np.random.default_rng(len(dataset))
    chosen = random.permutation(len(dataset))[:rows].tolist()
    wanted = [value for row in chosen for value in expected(dataset, row, known)]
    batch = dataset.batch(chosen, fields=FIELDS)
    assert found(batch, dataset.columns) == wanted
    assert len(batch["cu_seqlens"]) == len(wanted) + 1
    assert batch["column.score"].dtype == np.float64
    assert batch["column.lang"].dtype == np.int32


CHOICES: list[dict[str, Any]] = [
    {},
    {"mix": ["web=2x", "wiki=0.5x", "code=1x"], "seed": 3},
    {"holdout": "30%", "part": "holdout"},
]
CASES = [("rows", 0), ("rows", 1), ("rows", 2), *((kind, number % 3) for number, kind in enumerate(list(KINDS)[1:]))]
"""Every kind of rows, and every choice; not all of both."""


@pytest.mark.parametrize(("kind", "choice"), CASES)
def test_each_piece_has_the_value_of_its_document(made: Made, tmp_path: Path, kind: str, choice: int) -> None:
    """Packed, in another order, and packed anew; tests/writing/test_same_rows.py has the other ways to these rows."""
    stores, known = made
    options = {**KINDS[kind], **CHOICES[choice], "keep": ["score:number", "lang"], "shard_tokens": 1024}
    packtool.pack(stores, tmp_path / "packed", **options)
    packtool.pack(stores, tmp_path / "index", **options, index_only=True)
    packed, index = packtool.open(tmp_path / "packed"), packtool.open(tmp_path / "index", stores=stores)
    assert packed.columns == {"score": None, "lang": ["", "de", "en", "fr", "ünï"]}
    for dataset in (packed, packed.epoch(1), index.epoch(1, repack=True)):
        check(dataset, known)
    without = {**options, "keep": ()}
    packtool.pack(stores, tmp_path / "without", **without)
    kept, rows = contents(tmp_path / "packed"), contents(tmp_path / "without")
    assert {name for name in kept if kept[name] != rows.get(name)} == {
        *("manifest.json", "column-00000.npy", "column-00001.npy", "categories-00001.json")
    }


def test_what_batches_have_today_stays(made: Made, tmp_path: Path) -> None:
    """Trimmed, with an extra token, with room and with multiples, columns go along with the sequences."""
    stores, _ = made
    packtool.pack(stores, tmp_path / "rows", **KINDS["rows"], keep=["score:number", "lang"])
    packtool.pack(stores, tmp_path / "wide", **KINDS["rows"], document_multiple=4, keep=["score:number", "lang"])
    rows, wide = packtool.open(tmp_path / "rows"), packtool.open(tmp_path / "wide")
    columns, every = ("column.score", "column.lang"), slice(None)
    of_rows: list[dict[str, Any]] = [{}, {"trim": True}, {"extra_token": True}, {"pad_cu_seqlens": 9}]
    for dataset, options in (*((rows, each) for each in of_rows), (wide, {}), (wide, {"pad_cu_seqlens": 9})):
        before = dataset.batch(every, **options)
        after = dataset.batch(every, fields=(*dataset.fields, *columns), **options)
        for name, value in before.items():
            assert np.array_equal(after[name], value)
        for name in columns:
            assert len(after[name]) == len(before["cu_seqlens"]) - 1
    assert list(rows.batch(every)) == list(rows.fields)
    padded = rows.batch([0], fields=("cu_seqlens", *columns), pad_cu_seqlens=9)
    empty = np.diff(padded["cu_seqlens"]) == 0
    assert np.isnan(padded["column.score"][empty]).all()
    assert (padded["column.lang"][empty] == -1).all()


def test_a_blend_has_one_list_of_names(made: Made, tmp_path: Path) -> None:
    """A source without a column lacks values; categories of several sources are places in one list."""
    stores, known = made
    options = KINDS["rows"]
    packtool.pack(stores[:1], tmp_path / "a", **options, keep=["lang", "score:number"])
    packtool.pack(stores[1:2], tmp_path / "b", **options, keep=["lang"])
    packtool.pack(stores[1:2], tmp_path / "c", **options, seed=7)
    blend = packtool.Blend({name: {"path": tmp_path / name} for name in "abc"})
    stream = Stream(blend, fields=("source", *FIELDS))
    assert stream.columns == {"lang": ["", "de", "en", "fr", "ünï"], "score": None}
    batch = packtool.open(blend).batch(slice(0, len(stream)), fields=("source", *FIELDS))
    number, item = stream.order.locate(np.arange(len(stream)))
    wanted: list[tuple[float | None, str | None]] = []
    for source, row in zip(number.tolist(), item.tolist(), strict=True):
        dataset = packtool.open(tmp_path / "abc"[source]).epoch(0)
        of = expected(dataset, row, known[90:] if source else known)
        wanted += [(None if source else score, None if source == 2 else lang) for score, lang in of]
    assert found(batch, stream.columns) == wanted
    with pytest.raises(UsageError, match=r"there is no column .scor.; there are lang, score"):
        Stream(blend, fields=("column.scor",))
    packtool.pack(stores[1:2], tmp_path / "d", **options, seed=8, keep=["score"])
    differing = packtool.Blend({name: {"path": tmp_path / name} for name in "ad"})
    assert "score" not in Stream(differing).columns
    with pytest.raises(UsageError, match="column score has numbers in a, and categories in d"):
        Stream(differing, fields=("column.score",))


def test_columns_of_other_rows(made: Made, tmp_path: Path) -> None:
    """Of several row lengths, and of the partial shuffle, which packs by itself."""
    stores, known = made
    packtool.pack(stores, tmp_path / "packed", strategy="buckets", buckets=[64, 128], keep="score:number,lang")
    packtool.shuffle(tmp_path / "packed", tmp_path / "batches", method="bucket", batch_tokens=256)
    batches = packtool.open(tmp_path / "batches")
    for number in range(len(batches)):
        batch = batches.batch(number, fields=FIELDS)
        rows = [table[table["document"] >= 0]["document"].tolist() for table in batches.segments(number)]
        scores = [known[document].get("score") for row in rows for document in row]
        assert [score for score, _ in found(batch, batches.columns)][: len(scores)].count(None) >= scores.count(None)
    options = {"method": "partial", "sequence_length": 32, "batch_size": 2, "keep": "score:number,lang"}
    packtool.shuffle(stores[0], tmp_path / "lanes", **options)
    check(packtool.open(tmp_path / "lanes"), known)
    check(packtool.open(tmp_path / "lanes").epoch(1), known)


def test_wrong_columns_are_refused(made: Made, make: Make, tmp_path: Path) -> None:
    stores, _ = made
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64}

    def refused(keep: str, message: str, error: type[Exception] = UsageError, **more: Any) -> None:
        with pytest.raises(error) as caught:
            packtool.pack(more.pop("stores", stores), tmp_path / "out", **options, keep=keep, overwrite=True, **more)
        assert str(caught.value) == message

    refused("scor", "keep: no store has a column 'scor'; there are score, lang. Did you mean score?")
    refused("lang,lang:number", "keep: lang is named twice. Keep each column once.")
    refused(",", "keep: ',' can't be used. Give a list of fields, such as score:number,lang.")
    refused("lang", "keep: columns are looked up by the segment table. Leave one of the two out.", segments=False)
    records, columns = [{"text": "a", "score": 1}, {"text": "b", "score": "high"}], {"columns": ["score"]}
    bad = make(records, columns) / "store"
    message = (
        ": score is 'high', which is not a number. Leave such documents out with where, or give "
        'keep="score" to keep each different text as a category.'
    )
    refused("score:number", f"store.jsonl:2{message}", DataError, stores=bad)
    assert not (tmp_path / "out").exists(), "a value that is refused leaves nothing"
    packtool.pack(bad, tmp_path / "left-out", **options, keep="score:number", where="score != 'high'")
    there = contents(tmp_path / "left-out")
    with pytest.raises(DataError, match="score is 'high'"):
        packtool.pack(bad, tmp_path / "left-out", **options, keep="score:number", overwrite=True)
    assert contents(tmp_path / "left-out") == there, "nor does it take away what is there"
    bare = make(records, {**columns, "provenance": False}) / "store"
    refused("score:number", f"{bare}, document 1{message}", DataError, stores=bare)
    many = make([{"text": "a", "n": n} for n in range(MOST_CATEGORIES + 1)], {"columns": ["n"]}) / "store"
    message = (
        "keep: column n has more than 65,536 different values, the most that categories may have. Give n:number if "
        "they are numbers, or keep a column of fewer."
    )
    refused("n", message, stores=many)
    packtool.pack(many, tmp_path / "numbers", **options, keep="n:number")
    packtool.pack(stores, tmp_path / "kept", **options, keep="lang")
    dataset = packtool.open(tmp_path / "kept")
    with pytest.raises(UsageError, match="there is no column 'score'; there are lang"):
        dataset.batch([0], fields=("column.score",))
    with pytest.raises(UsageError, match="every row is one sequence, of documents that have a value of 'lang' each"):
        dataset.batch([0], fields=("column.lang",), documents=False)
    with pytest.raises(UsageError, match='Pack again with keep="lang"'):
        make_batch(np.zeros((1, 4), np.int64), None, fields=("column.lang",))


@pytest.mark.parametrize("name", ["column-00000.npy", "column-00001.npy"])
def test_damaged_columns_are_noticed(made: Made, tmp_path: Path, name: str) -> None:
    stores, _ = made
    place = tmp_path / "packed"

    def problem() -> str:
        return packtool.verify(place, store=stores).problems[0].what

    def change(values: np.ndarray) -> None:
        values[np.flatnonzero(values >= 0)[0]] = 5

    packtool.pack(stores, place, strategy="bfd", sequence_length=64, keep="score:number,lang")
    whole = contents(place)
    rewrite(place, name, change)
    if name == "column-00000.npy":
        assert problem().startswith("column score of document ")
    else:
        assert problem() == "column lang has the value 5, but 5 names"
        with pytest.raises(DataError, match="column lang has the value 5"):
            packtool.open(place).batch(slice(0, 99), fields=("column.lang",))
    for each in whole:
        (place / each).write_bytes(whole[each])
    with amended(place) as manifest:
        manifest["columns"][0]["missing"] += 1
    assert problem().endswith(f"values, but the manifest says {manifest['columns'][0]['missing']}")
    (place / name).unlink()
    with pytest.raises(DataError, match="named in the manifest, but not there"):
        packtool.open(place)


def test_they_are_seen(made: Made, tmp_path: Path) -> None:
    """By info and show; an export says that it loses them."""
    stores, known = made
    packtool.pack(stores, tmp_path / "packed", **KINDS["rows"], keep="score:number,lang")
    missing = sum(each.get("score") is None for each in known)
    facts = packtool.info(tmp_path / "packed").facts
    assert facts["columns"].startswith(f"score (numbers, missing in {missing} documents); lang (categories, ")
    for segment in packtool.show(tmp_path / "packed", row=3).segments:
        if segment.document is not None:
            of = known[segment.document]
            assert segment.columns == {"score": of.get("score"), "lang": of.get("lang")}
    exported = packtool.export(tmp_path / "packed", tmp_path / "out", format="parquet")
    assert exported.manifest.lost[-1] == "the columns of documents (score, lang)"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
@pytest.mark.parametrize("seed", range(40))
def test_random_datasets(made: Made, tmp_path: Path, seed: int) -> None:
    """Of any stores, strategy, choice, order and epoch, each piece has the value of its document."""
    stores, known = made
    random = np.random.default_rng(seed)

    def one_of(values: Sequence[Any]) -> Any:
        return values[int(random.integers(len(values)))]

    kind = one_of([*KINDS.values(), {"strategy": "best-fit-in-order", "sequence_length": 64}])
    choices: list[dict[str, Any]] = [*CHOICES, {"where": "lang != 'de'"}, {"min_tokens": 9}, {"shard_of": "1/2"}]
    options = {**kind, **one_of(choices), "seed": int(random.integers(9)), "shuffle": bool(random.integers(2))}
    options |= {"keep": one_of([["score:number", "lang"], ["lang", "score:number"]]), "shard_tokens": 2048}
    orders: list[dict[str, Any]] = [{}, {"order_by": ["lang", "-score:number"]}, {"epoch": 3}]
    used = stores[:2]  # an order needs its fields in every store
    if "mix" in options:
        options["mix"] = options["mix"][:2]
    options |= one_of(orders)
    packtool.pack(used, tmp_path / "packed", **options)
    packed = packtool.open(tmp_path / "packed")
    for dataset in (packed, packed.epoch(2)):
        check(dataset, known, rows=40)
