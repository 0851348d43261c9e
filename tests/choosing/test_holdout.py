"""`--holdout-of`: one side for a text whatever stores are packed; `--exclude` of token stores."""

from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import PacktoolError, UsageError
from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import TokenStore
from tests.choosing.web_and_wiki import pack, store_of
from tests.shell import Shell
from tests.stores import amended, contents


def texts(dataset: PackedDataset, stores: list[Path]) -> set[tuple[int, ...]]:
    """The texts of the documents that were packed."""
    chosen = dataset.chosen()
    found: set[tuple[int, ...]] = set()
    for number, path in enumerate(stores):
        store = TokenStore(path)
        documents = range(store.documents) if chosen is None else chosen[number].tolist()
        found |= {tuple(store.document(document).tolist()) for document in documents}
    return found


@pytest.mark.parametrize("amount", ["50 documents", "500 tokens", "10%"])
def test_what_one_store_holds_out_two_do_not_train_on(stores: list[Path], tmp_path: Path, amount: str) -> None:
    """Validate on one store, train on two: a number drawn again from both would leak."""
    held = texts(pack(stores[1:], tmp_path / "held", holdout=amount, part="holdout", holdout_seed=3), stores[1:])
    train = pack(stores, tmp_path / "train", holdout_of=tmp_path / "held")
    assert held
    assert not held & texts(train, stores)
    drawn_again = texts(pack(stores, tmp_path / "again", holdout=amount, holdout_seed=3), stores)
    assert bool(held & drawn_again) == (amount != "10%")
    rest = texts(pack(stores, tmp_path / "rest", holdout_of=tmp_path / "train", part="holdout"), stores)
    assert held <= rest
    assert not rest & texts(train, stores)
    choices = [PackedDataset(tmp_path / name).manifest.choice for name in ("held", "train")]
    one, two = (choice.options for choice in choices if choice is not None)
    names = ["holdout", "holdout_seed", *(["holdout_bound"] if amount != "10%" else [])]
    assert [one[name] for name in names] == [two[name] for name in names]


def test_what_holds_nothing_out_is_refused_by_name(stores: list[Path], tmp_path: Path) -> None:
    pack(stores, tmp_path / "all")
    pack(stores, tmp_path / "old", holdout="40 documents")
    with amended(tmp_path / "old") as manifest:
        del manifest["choice"]["options"]["holdout_bound"]
    cases: dict[str, dict[str, Any]] = {
        "all: nothing was held out of it. Name a dataset that was packed with holdout": {"holdout_of": "all"},
        "old: it held out 40 documents, and does not say of which hash on. Pack it again": {"holdout_of": "old"},
        "a token store, where a packed dataset is needed": {"holdout_of": stores[0]},
        "holdout_of: has no effect with holdout. Leave it out": {"holdout_of": "old", "holdout": "5%"},
        "holdout_of: has no effect with holdout_seed": {"holdout_of": "old", "holdout_seed": 2},
        "part: has no effect without holdout or holdout_of": {"part": "holdout"},
    }
    for said, options in cases.items():
        if "holdout_of" in options:
            options["holdout_of"] = tmp_path / options["holdout_of"]
        with pytest.raises(PacktoolError) as raised:
            pack(stores, tmp_path / "p", **options)
        assert said in str(raised.value)


def test_texts_of_other_stores_are_left_out(stores: list[Path], tmp_path: Path) -> None:
    (tmp_path / "list").write_text("web.jsonl:100\n")
    other = store_of(tmp_path / "eval", ["article 3 " * 4, "nowhere else"])
    excluded = [tmp_path / "list", stores[1], other]
    dataset = pack(stores[:1], tmp_path / "p", exclude=excluded)
    kept = texts(dataset, stores[:1])
    second = tuple(TokenStore(stores[0]).document(99).tolist())
    web = texts(pack(stores[:1], tmp_path / "w"), stores[:1])
    assert kept == web - texts(pack(stores[1:], tmp_path / "o"), stores[1:]) - {second}
    assert dataset.manifest.choice.sources[0].left_out["excluded"].documents == 41
    assert len(dataset.manifest.choice.options["exclude_xxh3_128"]) == 3
    asked = {"strategy": "bfd", "sequence_length": 64, "exclude": excluded}
    assert packtool.pack(stores[:1], tmp_path / "r", **asked, dry_run=True).preview.left_out == "41 excluded"
    pack(stores[:1], tmp_path / "q", exclude=excluded[::-1])
    assert contents(tmp_path / "p") == contents(tmp_path / "q")


def test_what_can_exclude_nothing_is_refused(stores: list[Path], tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    packtool.tokenize(stores[0].with_suffix(".jsonl"), tmp_path / "bare", provenance=False, workers=1)
    pack(stores, tmp_path / "packed")
    for name, code in (("directory", "bad-exclude"), ("bare", "no-provenance"), ("packed", "not-a-store")):
        with pytest.raises(PacktoolError) as raised:
            pack(stores, tmp_path / "p", exclude=[tmp_path / name])
        assert (raised.value.code, name in str(raised.value)) == (code, True)


def test_a_run_takes_the_hold_out_and_texts_of_its_own_stages(stores: list[Path], tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(f"""
[tokenize]
input = "{stores[1].with_suffix(".jsonl")}"
output = "eval"

[[pack]]
input = "eval"
output = "held"
strategy = "bfd"
sequence-length = 32
holdout = "9 documents"
part = "holdout"

[[pack]]
input = "{stores[0]}"
output = "train"
strategy = "bfd"
sequence-length = 32
holdout-of = "held"
exclude = "eval"
""")
    packtool.run(tmp_path / "run.toml", output=tmp_path / "out")
    train = PackedDataset(tmp_path / "out" / "train")
    assert not texts(train, stores[:1]) & texts(pack(stores[1:], tmp_path / "wiki"), stores[1:])


def test_the_summary_says_how_others_take_it(stores: list[Path], tmp_path: Path, shell: Shell) -> None:
    said = shell("pack", stores[0], "-o", tmp_path / "p", "-L", 32, "--strategy", "bfd", "--holdout", "5 documents")
    assert f"To hold these 5 documents out of other stores, too: --holdout-of {tmp_path / 'p'}" in said
    with amended(tmp_path / "p") as manifest:
        manifest["choice"]["options"]["holdout"] = "5"  # as it was recorded once
    assert "all but a hold-out of 5 documents" in shell("info", tmp_path / "p")
    of_it = {"holdout_of": tmp_path / "p", "part": "holdout"}
    assert pack(stores[:1], tmp_path / "of it", **of_it).manifest.documents == 5
    with pytest.raises(UsageError, match="holdout: leaves out 2 of 2 documents"):
        pack([store_of(tmp_path / "few", ["a", "b"])], tmp_path / "q", holdout="5 documents")
