"""What is written is what was understood: names of stores, numbers and hashes mean one thing, or are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import PacktoolError
from tests.choosing.web_and_wiki import pack, store_of
from tests.stores import contents


def in_directories(root: Path) -> list[Path]:
    """Three stores, two of which lie in directories of one name."""
    return [store_of(root / name, [f"{name} {n}" for n in range(20)]) for name in ("a/web", "b/web", "b/wiki")]


@pytest.mark.parametrize("typed", [["a/web", "b/web", "b/wiki"], ["./a/web/", "b/../b/web", "{}/b/wiki"]])
def test_a_store_is_named_by_the_end_of_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Any) -> None:
    in_directories(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = [name.format(tmp_path) for name in typed]
    for where in ("store == 'a/web' or store in ('wiki',)", f"store != '{tmp_path}/b/web'", "store != './b/web/'"):
        dataset = pack(given, tmp_path / "p", where=where, overwrite=True)  # type: ignore[arg-type]
        assert [source.chosen_documents for source in dataset.manifest.choice.sources] == [20, 0, 20]
    assert dataset.manifest.choice.options["where_stores"] == {"./b/web/": 1}
    assert json.loads((tmp_path / "p" / "run.json").read_text())["inputs"] == ["a/web", "b/web", "wiki"]
    monkeypatch.chdir("/")
    pack([tmp_path / name for name in ("a/web", "b/web", "b/wiki")], tmp_path / "q", where="store != 'b/web'")
    assert contents(tmp_path / "q")["tokens-00000.npy"] == contents(tmp_path / "p")["tokens-00000.npy"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mix": {"web": "1x", "wiki": "1x"}}, "mix: 'web' is the name of 2 stores. Name it a/web or b/web."),
        ({"where": "store == 'web'"}, "where: 'web' is the name of 2 stores. Name it a/web or b/web."),
        (
            {"where": "tokens > 0 or store != 'wikis'"},
            "where: there is no store 'wikis' among the inputs. Name it as its path ends: a/web, b/web or wiki.",
        ),
    ],
)
def test_a_name_that_fits_none_or_several_is_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    stores = in_directories(tmp_path)
    with pytest.raises(PacktoolError) as raised:
        pack(stores, tmp_path / "p", **options)
    assert str(raised.value) == said
    with pytest.raises(PacktoolError) as raised:
        packtool.stats(stores, **options)
    assert str(raised.value) == said


def numbered(directory: Path, values: list[Any]) -> Path:
    return store_of(
        directory / "in", [{"text": f"text {n}", "n": value} for n, value in enumerate(values)], columns="n"
    )


@pytest.mark.parametrize(
    ("value", "options"),
    [
        (9007199254740993, {"keep": "n:number"}),
        ("1700000000.123456789", {"keep": "n:number"}),
        ("1700000000.123456789", {"where": "n > 3"}),
        ("1700000000.123456789", {"order_by": "n:number", "strategy": "concat"}),
        ("1e400", {"where": "n > 3"}),
    ],
)
def test_a_number_that_no_float_holds_is_refused(tmp_path: Path, value: Any, options: dict[str, Any]) -> None:
    fine = ["9007199254740992", "-9007199254740994", "0.1", "1e300", "2.999999999999999889e-01", "nan", 0.1 + 0.2]
    pack([numbered(tmp_path, fine)], tmp_path / "p", **options)
    store = numbered(tmp_path / "bad", [1, value])
    with pytest.raises(PacktoolError, match=f"in.jsonl:2: .*n'? is '{value}', which is a number that no float of 64"):
        pack([store], tmp_path / "q", **options)


def test_hashes_of_texts_and_of_ids_are_not_compared(stores: list[Path], tmp_path: Path) -> None:
    tokenizer = str(stores[0] / "tokenizer.json")
    ids = store_of(tmp_path / "ids", [{"ids": [5, 6, 7]}, {"ids": [5, 6, 7]}], ids_field="ids", tokenizer=tokenizer)
    pack(stores, tmp_path / "held", holdout="10%")
    both: tuple[tuple[list[Path], dict[str, Any]], ...] = (
        (stores[:1], {"exclude": ids}),
        ([ids], {"exclude": stores[0]}),
        ([stores[0], ids], {"drop_duplicates": True}),
        ([stores[0], ids], {"holdout": "10%"}),
        ([stores[0], ids], {"holdout": "10 documents"}),
        ([stores[0], ids], {"shard_of": "1/2"}),
        ([ids], {"holdout_of": tmp_path / "held"}),
    )
    for inputs, options in both:
        with pytest.raises(
            PacktoolError, match=r"it has hashes of .*, so no document of one is in the other"
        ) as raised:
            pack(inputs, tmp_path / "p", **options)
        assert raised.value.code == "hashes-differ"
    with pytest.raises(PacktoolError, match=r"it has hashes of ids"):
        packtool.stats([stores[0], ids], most_repeated=3)
    assert pack([ids], tmp_path / "p", drop_duplicates=True).manifest.documents == 1
    few = store_of(tmp_path / "few", [{"ids": [n, 6, 7]} for n in range(5, 25)], ids_field="ids", tokenizer=tokenizer)
    pack([few], tmp_path / "of_ids", holdout="50%")
    pack([few], tmp_path / "again", holdout_of=tmp_path / "of_ids")
    with pytest.raises(PacktoolError, match=r"it has hashes of texts, and the hold-out of .*of_ids of ids"):
        pack(stores, tmp_path / "q", holdout_of=tmp_path / "of_ids")


def test_an_import_never_had_texts(stores: list[Path], tmp_path: Path) -> None:
    packtool.export(stores[0], tmp_path / "exported", format="megatron")
    packtool.import_(tmp_path / "exported", tmp_path / "imported", format="megatron")
    for options in ({"drop_duplicates": True}, {"exclude": stores[1]}, {"holdout": "10%"}, {"where": "line > 3"}):
        with pytest.raises(PacktoolError, match=r"imported(:| is) imported, so it records neither") as raised:
            pack([tmp_path / "imported"], tmp_path / "p", **options)  # type: ignore[arg-type]
        assert "no-provenance" not in str(raised.value)


def test_a_store_may_lie_on_one_side(stores: list[Path], tmp_path: Path) -> None:
    held = pack(stores[1:], tmp_path / "held", holdout="50 documents", part="holdout")
    texts = [json.loads(line)["text"] for line in stores[1].with_suffix(".jsonl").read_text().splitlines()]
    few = store_of(tmp_path / "few", [texts[n] for n in held.chosen()[0][:3]])
    train = pack([*stores, few], tmp_path / "train", holdout_of=tmp_path / "held")
    assert train.manifest.choice.sources[2].left_out["other_side"].documents == 3
    assert pack([few], tmp_path / "p", holdout_of=tmp_path / "held", part="holdout").manifest.documents == 3
    assert pack([few], tmp_path / "all", holdout="100%", part="holdout").manifest.documents == 3
    with pytest.raises(PacktoolError, match="holdout: leaves out 3 of 3 documents, so none is left"):
        pack([few], tmp_path / "q", holdout_of=tmp_path / "held")
