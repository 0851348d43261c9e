"""Options that choose documents and make no sense: one line, before any work."""

import os
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

import packtool
from packtool.errors import PacktoolError, UsageError
from packtool.formats.token_store import Corpus
from tests.choosing.web_and_wiki import pack
from tests.making import write_records


def mixed(*weights: str, **more: Any) -> dict[str, Any]:
    return {"mix": list(weights), **more}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (mixed("web=-1", "wiki=1x"), "what is asked of web is '-1'. Write web=2x for epochs, web=5000 documents, or"),
        (mixed("web=1x"), "nothing is asked of wiki. Name every store, with 0 to leave it out"),
        (mixed("web=1x", "code=1x"), "there is no store 'code' among the inputs"),
        (mixed("web=1x", "web=1x", "wiki=1x"), "web is named twice"),
        (mixed("web"), "'web' asks nothing of a store"),
        (mixed("web=0", "wiki=0"), "mix: leaves out 300 of 300 documents, so none is left"),
        (
            mixed("web=0", "wiki=1x", where="store == 'web'"),
            "mix: leaves out 200 of 300 documents, where 100, so none is left",
        ),
        ({"holdout": "0.001%", "part": "holdout"}, "holdout: 0.001% holds out none of the 300 documents"),
        ({"min_tokens": 500}, "min_tokens: leaves out 300 of 300 documents, so none is left"),
        (
            {"min_tokens": 500, "holdout": "50%", "part": "holdout"},
            "min_tokens: leaves out 300 of 300 documents, so none is left",
        ),
        ({"sample": "0%"}, "sample: leaves out 300 of 300 documents, so none is left"),
        ({"sample": "120%"}, "'120%' can't be used. Give a share of at most 1, such as 1%"),
        ({"sample_interval": 64}, "sample_interval: has no effect without sample"),
        ({"temperature": 2}, "temperature: has no effect without tokens"),
        ({"temperature": "hot", "tokens": "1k"}, "'hot' can't be used. Give a number from 0.01 to 1000, such as 3.3"),
        ({"temperature": 2, "tokens": "1k", "mix": {"web": 1, "wiki": 0}}, "mix gives the shares already"),
        ({"mix": {"web": "50%", "wiki": "50%"}}, "web=50% is a share, but there is no total. Give tokens"),
        ({"drop_duplicates": "no"}, "drop_duplicates: 'no' can't be used. Give true or false"),
        (mixed("web=50%", "wiki=40%", tokens="1k"), "the shares sum to 90%. Let them sum to 100%, or give weights"),
        (mixed("web=0.5", "wiki=0.5", tokens="-3"), "'-3' can't be used. Give a number, such as 300B"),
        (mixed("web=60", "wiki=40"), "web=60 is a weight, but there is no total. Write web=60x for epochs, or give"),
        (mixed("web=2x", "wiki=1", tokens="1k"), "web=2x is no part of tokens. Give weights, such as web=3"),
        (mixed("web=5 documents", "wiki=1", tokens="1k"), "web=5 documents is no part of tokens"),
        (mixed("web=50%", "wiki=1", tokens="1k"), "some stores have a weight, and others a percentage"),
        (mixed("web=0", "wiki=0%", tokens="1k"), "all weights are zero"),
        (mixed("web=1e3x", "wiki=1x"), "what is asked of web is '1e3x'"),
        (mixed("web=0.5 documents", "wiki=1x"), "what is asked of web is '0.5 documents'"),
        (mixed("web=201 documents", "wiki=1x"), "201 documents of web, which has 200. Give 200 or fewer, or max"),
        (mixed("web=1M tokens", "wiki=1x"), "1,000,000 tokens of web, which has "),
        (mixed("web=2.5x", "wiki=1x", max_epochs=2), "2.5 epochs of web are more than max_epochs=2"),
        ({"stop": True}, "stop: has no effect without tokens. Say how many tokens are divided"),
        ({"holdout": "100%"}, "100% holds out all documents"),
        ({"holdout": "much"}, "'much' can't be used. Give a part, such as 0.5%, 1000 documents or 2M tokens"),
        ({"holdout": 5}, "holdout: 5 has no unit. Write 5%, 5 documents or 5 tokens"),
        ({"holdout": 1.0}, "holdout: 1.0 has no unit. Write 1.0%, 1.0 documents or 1.0 tokens"),
        ({"holdout": "5k"}, "holdout: 5k has no unit. Write 5k documents or 5k tokens"),
        ({"shard_of": "0/4"}, "'0/4' can't be used. Give a part by its number, from 1/8 to 8/8"),
        ({"exclude": "/nowhere"}, "can't be read (no such file or directory)"),
    ],
)
def test_bad_choices_are_one_line_before_any_work(
    stores: list[Path], tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PacktoolError) as caught:
        pack(stores, tmp_path / "p", **options)
    assert message in str(caught.value)
    assert not (tmp_path / "p").exists()


def test_lists_and_stores_that_do_not_fit(stores: list[Path], tmp_path: Path) -> None:
    (tmp_path / "list").write_text("web.jsonl:2\nweb.jsonl:2000\n")
    with pytest.raises(PacktoolError, match=r"list:2: no store has a document web\.jsonl:2000"):
        pack(stores, tmp_path / "p", exclude=tmp_path / "list")
    (tmp_path / "list").write_text("web.jsonl\n")
    with pytest.raises(PacktoolError, match=r"list:1: 'web\.jsonl' is not a document"):
        pack(stores, tmp_path / "p", exclude=tmp_path / "list")
    packtool.tokenize(stores[0].with_suffix(".jsonl"), tmp_path / "plain", provenance=False, workers=1)
    with pytest.raises(UsageError, match="made with provenance=False"):
        pack([tmp_path / "plain"], tmp_path / "p", holdout="1%")
    assert len(Corpus([tmp_path / "plain"]).lengths()) == 200


def test_a_store_named_twice_would_double_its_documents(stores: list[Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(stores[0])
    message = 'link: named twice among the inputs. Name it once; mix="web=2x" packs its documents twice.'
    for call in (pack, lambda inputs, _: packtool.stats(inputs)):
        with pytest.raises(UsageError, match=message):
            call([stores[0], tmp_path / "link"], tmp_path / "p")


def test_shares_by_temperature_are_those_of_a_mixture(stores: list[Path], tmp_path: Path) -> None:
    """T = 1 leaves the proportions; a high one gives each store half."""
    sizes = [Corpus([store]).tokens for store in stores]
    for temperature, wanted in ((1, sizes[0] / sum(sizes)), (1000, 0.5)):
        dataset = pack(stores, tmp_path / str(temperature), tokens=500, temperature=temperature)
        shares = [Fraction(source.asked) for source in dataset.manifest.choice.sources]
        assert sum(shares) == 1
        assert float(shares[0]) == pytest.approx(wanted, abs=1e-3)


OPTIONS: dict[str, dict[str, Any]] = {
    "held out": {"holdout": "20%"},
    "the hold-out": {"holdout": "20%", "part": "holdout"},
    "lengths": {"min_tokens": 6, "max_tokens": 20},
    "sample": {"sample": "30%", "sample_interval": 8},
    "twice and a half": {"mix": {"web": "2.5x"}},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_stats_and_export_take_the_documents_that_pack_takes(stores: list[Path], tmp_path: Path, options: Any) -> None:
    web = stores[0]
    packed = pack([web], tmp_path / "packed", shuffle=False, **options)
    documents = packed.chosen()
    report = packtool.stats(web, compare="bfd", sequence_length=32, **options)
    assert report.kind == "store"
    assert report.lengths.documents == len(documents[0])
    assert report.lengths.total == int(packed.lengths().sum())
    (entry,) = report.comparison.entries
    assert entry.ledger.rows == packed.manifest.ledger.rows
    exported = packtool.export(web, tmp_path / "exported", format="parquet", **options)
    store = Corpus([web]).stores[0]
    rows = [row for file in sorted((tmp_path / "exported").glob("data/*.parquet")) for row in pq.read_table(file)[0]]
    assert [row.as_py() for row in rows] == [store.document(number).tolist() for number in documents[0].tolist()]
    assert exported.manifest.choice == msgspec.structs.replace(packed.manifest.choice, documents=None)


def test_documents_of_rows_are_not_chosen(stores: list[Path], tmp_path: Path) -> None:
    pack(stores[:1], tmp_path / "packed")
    with pytest.raises(UsageError, match=r"^holdout: has no effect on packed datasets\. Leave it out: this "):
        packtool.stats(tmp_path / "packed", holdout="1%")
    with pytest.raises(UsageError, match=r"^holdout: has no effect on packed datasets\. Choose them when they "):
        packtool.export(tmp_path / "packed", tmp_path / "e", format="mds", holdout="1%")


@pytest.mark.parametrize(
    "choice",
    [
        {"drop_duplicates": True, "holdout": "20%"},
        {"shard_of": "2/3", "min_tokens": 3, "max_tokens": 12},
        {"mix": {"tokens": "2.5x"}, "sample": "50%", "seed": 4},
    ],
)
def test_documents_of_texts_are_chosen_as_those_of_their_store(here: Path, choice: dict[str, Any]) -> None:
    records = [{"body": f"text {n % 70} " + "and more " * (n % 9)} for n in range(200)]
    packtool.tokenize(write_records(Path("web.jsonl"), records), "tokens", text_field="body")
    options: dict[str, Any] = {"compare": ["bfd", "concat"], "sequence_length": 32, **choice}
    of_texts = packtool.stats("web.jsonl", text_field="body", **options)
    of_tokens = packtool.stats("tokens", **options)
    assert of_texts.path == "web.jsonl"
    assert of_texts.lengths == of_tokens.lengths
    assert of_texts.counts == of_tokens.counts
    entries, expected = ([each.metrics for each in of.comparison.entries] for of in (of_texts, of_tokens))
    assert entries == expected
    before = "packtool tokenize web.jsonl -o tokens --text-field body && packtool pack tokens "
    assert of_texts.comparison.entries[0].command.startswith(before)
    assert [path.name for path in sorted(here.iterdir())] == ["tokens", "web.jsonl"]


@pytest.mark.parametrize("command", ["pack", "export", "stats"])
def test_a_list_may_come_from_a_pipe(stores: list[Path], tmp_path: Path, command: str) -> None:
    pipe = tmp_path / "list"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=("web.jsonl:1\n\nwiki.jsonl:2\n",), daemon=True).start()
    if command == "stats":
        left_out = 300 - packtool.stats(stores, exclude=pipe).counts["documents"]
    elif command == "export":
        made = packtool.export(stores, tmp_path / "e", format="jsonl", exclude=pipe)
        left_out = sum(source.left_out["excluded"].documents for source in made.manifest.choice.sources)
    else:
        web, wiki = pack(stores, tmp_path / "p", exclude=pipe).chosen()
        assert (0 in web, 1 in wiki) == (False, False)
        left_out = 300 - len(web) - len(wiki)
    assert left_out == 2
