"""Slips in calls of the functions: each is one clear error, of packtool or, for names and indices, as Python has it."""

import html
import pydoc
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool import Blend, export, import_, info, materialize, run, shuffle, stats, tokenize, verify
from packtool import open as opened
from packtool.errors import PacktoolError
from packtool.options.commands import ARGUMENTS
from packtool.report.page import page
from tests.making import write_records
from tests.stores import contents


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("slips")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        records = [{"text": f"a river {n}", "lang": "en", "score": n} for n in range(20)]
        tokenize(write_records(Path("a.jsonl"), records), "s", columns=["lang", "score"])
        packtool.pack("s", "p", strategy="bfd", sequence_length=16)
        packtool.pack("s", "b", strategy="buckets", buckets=[8, 16])
        export("p", "e", format="parquet")
        export("s", "t", format="parquet")
    return place


def pack(stores: Any = "s", **options: Any) -> object:
    return packtool.pack(stores, "o", **{"strategy": "bfd", "sequence_length": 16, **options})


def rows() -> Any:
    return opened("p")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: opened("a.jsonl"), "a.jsonl: a file, not a token store or packed dataset. If it holds text"),
        (lambda: opened("p/manifest.json"), "p/manifest.json: the manifest of a dataset. Give its directory: p."),
        (lambda: opened(["p"]), "path: ['p'] is neither a path, a URL nor a packtool.Blend. Give one packed data"),
        (lambda: opened({"path": "p"}), "path: {'path': 'p'} is neither a path, a URL nor a packtool.Blend."),
        (lambda: opened(rows()), "path: <packtool dataset: 7 rows of 16 tokens, "),
        (lambda: opened(None), "path: None is neither a path, a URL nor a packtool.Blend."),
        (lambda: opened("nowhere"), "nowhere: no such directory. Check the path."),
        (lambda: opened("s"), "s: a token store, where a packed dataset is needed."),
        (lambda: opened("e"), "e: an export, where a packed dataset is needed."),
        (lambda: opened("p", dtype="int8"), "dtype: int8 does not hold token ids up to"),
        (lambda: opened("p", dtype="foo"), "dtype: 'foo' is no type of NumPy. Give int64"),
        (lambda: opened("p", fetch="row"), 'fetch: \'row\' is not a known value. Give "shards" or "rows".'),
        (lambda: opened("p", cache_bytes="x"), "'x' is not a size. Write it like 512MiB or 4GiB."),
        (lambda: opened("p", stores=3), "stores: 3 can't be used. Give a path or URL"),
        (lambda: opened("b")[0], "b: the dataset has no batches."),
        (
            lambda: rows()["a"],
            "a row is chosen by an integer, several by a slice or by integers in one dimension, not 'a",
        ),
        (lambda: rows()[100], "row 100 of 7"),
        (lambda: rows().batch(0, label="same"), "label: no such option. Did you mean labels?"),
        (lambda: rows().batch(0, labels="x"), "labels: 'x' is not a kind of labels."),
        (lambda: rows().batch(0, fields=["input_id"]), "fields: 'input_id' is not a field."),
        (lambda: rows().epoch(-1), "epoch: -1 is out of range. Give a whole number from 0 to 4294967295."),
        (lambda: rows().epoch(1.5), "epoch: 1.5 is out of range."),
        (lambda: rows().epoch(1, seed="x"), "seed: 'x' is out of range."),
        (lambda: tokenize("a.jsonl", "o", txt_field="a"), "unexpected keyword argument 'txt_field': did you mean"),
        (lambda: tokenize("a.jsonl", "o", text_field=["a"]), "text_field: ['a'] can't be used. Give a string."),
        (lambda: tokenize("a.jsonl", "o", columns=[1]), "columns: [1] can't be used. Give a list of strings."),
        (lambda: tokenize("a.jsonl", "o", workers=1.5), "workers: 1.5 can't be used. Give a whole number."),
        (lambda: tokenize("a.jsonl", "o", format="josn"), "format: 'josn' is not a known value. Did you mean"),
        (lambda: tokenize("a.jsonl", "o", tokenizer="nowhere.json"), "nowhere.json"),
        (lambda: tokenize("a.jsonl", "o", tokenizer=3), "tokenizer: 3 can't be used. Give a string."),
        (lambda: tokenize("a.jsonl", 3), "output: 3 can't be used. Give a path or URL, as a string."),
        (lambda: tokenize(3, "o"), "inputs: 3 can't be used."),
        (lambda: tokenize(None, "o"), "inputs: None can't be used."),
        (lambda: tokenize([1, 2], "o"), "inputs: "),
        (lambda: tokenize([], "o"), "no input is given. Name files, directories, globs or URLs"),
        (lambda: packtool.pack("s", "o"), "pack() missing a required argument: 'strategy'"),
        (lambda: pack(strategy="bdf"), "strategy: there is no strategy 'bdf'. Did you mean bfd ("),
        (lambda: pack(strategy=3), "strategy: 3 can't be used. Give a string."),
        (lambda: pack(sequence_length=16.5), "sequence_length: 16.5 can't be used. Give a whole number, such as 2048"),
        (lambda: pack(sequence_length=None), 'sequence_length: strategy="bfd" needs this option.'),
        (lambda: pack(keep=3), "keep: "),
        (lambda: pack(keep="scor:number"), "keep: no store has a column 'scor'; there are lang, score. Did you mean"),
        (lambda: pack(mix=3), "mix: "),
        (lambda: pack(where=3), "where: 3 can't be used. Give an expression, such as score >= 3."),
        (
            lambda: pack(where="token > 3"),
            "where: 'token' was not kept with the documents of s (kept: lang, score). Did ",
        ),
        (lambda: pack(shuffle="no"), "shuffle: 'no' can't be used. Give true or false."),
        (lambda: pack(seed="x"), "seed: 'x' can't be used. Give a whole number."),
        (lambda: pack(strategy="padding", atom_size=1), "atom_size: an atom of padding holds text and an EOS"),
        (lambda: pack(rows()), "stores: <packtool dataset: 7 rows of 16 tokens, "),
        (lambda: pack([]), "stores: nothing is named. Give a path or URL"),
        (lambda: pack("p"), "p: a packed dataset, where a token store"),
        (lambda: shuffle("s", "o"), 's: a token store, where method="atom" needs a packed dataset.'),
        (lambda: shuffle(["p"], "o"), "source: ['p'] can't be used. Give a path or URL, as a string."),
        (lambda: shuffle("p", "o", method="atm"), "method: there is no shuffle 'atm'. Choose one of atom"),
        (lambda: materialize("s", "o"), "s: a token store, where a packed dataset is needed."),
        (lambda: export("p", "o", format="nanogp"), "format: there is no format 'nanogp' for this. Did you mean"),
        (lambda: export("p", "o", format="mds", min_tokens=3), "min_tokens: has no effect on packed datasets."),
        (lambda: import_("e", "o", format="parqet"), "format: there is no format 'parqet' for this. Did you"),
        (lambda: import_("t", "o", format="parquet", field="nope", dry_run=True), "no column nope; there are"),
        (lambda: stats(rows()), "path: <packtool dataset: 7 rows of 16 tokens, "),
        (lambda: stats("p", html="x.txt"), "html: 'x.txt' is not the name of a page"),
        (lambda: info(3), "path: 3 can't be used. Give a path"),
        (lambda: run({"pack": {}}), "configuration: {'pack': {}} can't be used. Give a path, as a string."),
        (lambda: verify("nowhere"), "nowhere: no such directory. Check the path."),
        (lambda: Blend({"a": 3}), "sources.a"),
        (lambda: Blend({"a": "p"}, [{"weight": {"a": 1}}]), "did you mean weights"),
        (lambda: opened(Blend({"a": "nowhere"})), "nowhere: no such directory. Check the path."),
    ],
)
def test_a_slip_is_one_clear_error(place: Path, monkeypatch: pytest.MonkeyPatch, call: Any, message: str) -> None:
    monkeypatch.chdir(place)
    before = contents(place)
    with pytest.raises((PacktoolError, TypeError, IndexError)) as caught:
        call()
    assert message.lower() in str(caught.value).lower()
    assert contents(place) == before


def test_help_and_completion_name_what_is_public() -> None:
    assert set(dir(packtool)) == set(packtool.__all__)
    said = pydoc.render_doc(packtool)
    assert [name for name in ARGUMENTS if f"packtool.{name}" not in said] == []


def test_a_notebook_shows_the_page_of_a_report(place: Path) -> None:
    for path in ("s", "p"):
        report = stats(place / path)
        assert html.unescape(report._repr_html_()).count(page(report)) == 1
