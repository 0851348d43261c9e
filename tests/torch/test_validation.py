"""Every validation reads the same rows, in every trainer, whatever the one before it left."""

import re
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtool
from packtool.errors import UsageError
from tests.making import Make
from tests.stores import TOKENIZER, document_loss, write_store

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader, ValidationLoader  # noqa: E402
from tests.torch.test_frameworks import lightning_model, lightning_trainer  # noqa: E402


def ids(batches: Any) -> list[list[int]]:
    return [row for batch in batches for row in batch["input_ids"].tolist()]


def test_a_whole_pass_each_time(rows: Path) -> None:
    valid = ValidationLoader(rows, batch_size=16)
    stored = packtool.open(rows)[:].tolist()
    sizes = [len(batch["input_ids"]) for batch in valid]
    assert sizes == sorted(sizes, reverse=True)
    assert (len(sizes), sum(sizes), max(sizes) - min(sizes)) == (-(-len(stored) // 16), len(stored), 1)
    assert ids(islice(valid, 3)) == stored[: sum(sizes[:3])]
    for _ in range(2):
        assert ids(valid) == stored
    assert len(valid) == len(sizes)
    full = ValidationLoader(rows, batch_size=16, drop_last=True)
    assert ids(full) == stored[: len(stored) // 16 * 16]
    assert {len(batch["input_ids"]) for batch in full} == {16}


@pytest.mark.parametrize(("held", "trained_on"), [("5%", True), ("1%", True), ("0.5%", False)])
def test_a_validation_that_is_trained_on(make: Make, tmp_path: Path, held: str, trained_on: bool) -> None:
    """The manifests say so, of one dataset and of several; the rows are as without a word."""
    records = [{"text": f"{number} " * (1 + number % 7)} for number in range(1500)]
    store, bfd = make(records) / "store", {"strategy": "bfd", "sequence_length": 32}
    packtool.pack(store, tmp_path / "train", holdout="0.7%", **bfd)
    packtool.pack(store, tmp_path / "valid", holdout=held, part="holdout", **bfd)
    train, options = Loader(tmp_path / "train", batch_size=4), {"batch_size": 1}
    said = rf"valid: some of its documents are in {tmp_path}/train, too, which is trained on\. Pack both with one"
    for source in (tmp_path / "valid", [tmp_path / "valid"]):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            valid = ValidationLoader(source, train=train, **options)
        assert ids(valid) == ids(ValidationLoader(source, **options))
        assert len(caught) == trained_on
        assert all(re.search(said, str(warned.message)) for warned in caught)


def test_the_first_batches_each_time(rows: Path) -> None:
    """Of rows of one length, and of several."""
    valid = ValidationLoader(rows, batch_size=16, batches=3)
    stored = packtool.open(rows)[:48].tolist()
    for taken in (3, 1, 3):
        assert ids(islice(valid, taken)) == stored[: 16 * taken]
    assert ids(valid) == stored
    assert len(valid) == 3
    assert repr(valid).startswith("<packtool validation: 3 of 7 batches, <packtool loader: rank 0 of 1, ")
    several = ValidationLoader(rows.with_name("batches"), batches=5)
    wanted = [batch.tolist() for batch in packtool.open(rows.with_name("batches"))[:5]]
    for _ in range(2):
        assert [batch["input_ids"].tolist() for batch in several] == wanted


@pytest.fixture(scope="module")
def sets(make: Make) -> dict[int, Path]:
    """Datasets of so many rows, each of which says by its tokens which it is; in half of them not all tokens train."""
    options = {"strategy": "concat", "sequence_length": 8, "shuffle": False}
    return {
        count: make([8] * count, {"loss": document_loss if count % 2 else None}, rows=options) / "rows"
        for count in (1, 2, 3, 7, 16, 29)
    }


FIELDS = ("input_ids", "labels", "loss_mask", "position_ids", "cu_seqlens")


@settings(max_examples=100)
@given(data=st.data())
def test_every_row_once_in_batches_as_equal_as_can_be(sets: dict[int, Path], data: st.DataObject) -> None:
    """No rank is without rows: else the loader is refused, or what fills its batches trains nothing."""
    count = data.draw(st.sampled_from(sorted(sets)), label="rows")
    world = data.draw(st.sampled_from([1, 2, 3, 4]), label="ranks")
    size = world * data.draw(st.integers(1, 6), label="rows for each rank")
    options: dict[str, Any] = {"batch_size": size, "world_size": world, "fields": FIELDS}
    options["micro_batch_size"] = data.draw(st.sampled_from([None, 1, 2]), label="micro-batch")
    options["fill"] = data.draw(st.booleans(), label="fill")
    batches = -(-count // size)
    sizes = [len(part) for part in np.array_split(np.arange(count), batches)]
    shares = [[rows // world + (rank < rows % world) for rank in range(world)] for rows in sizes]
    turn = options["micro_batch_size"] or size
    some_empty = any(-(-max(share) // turn) != -(-min(share) // turn) for share in shares)
    if some_empty and not options["fill"]:
        with pytest.raises(UsageError, match=rf"batch_size: (batch \d+ shares )?\d+ rows? among {world} ranks"):
            ValidationLoader(sets[count], rank=0, **options)
        return
    stored = packtool.open(sets[count]).batch(slice(None), fields=FIELDS)  # type: ignore[arg-type]
    ranks = [list(ValidationLoader(sets[count], rank=rank, **options)) for rank in range(world)]
    found: list[tuple[list[int], list[int]]] = []
    for turns in zip(*ranks, strict=True):
        rows = [len(batch["input_ids"]) for batch in turns]
        assert min(rows) > 0
        assert max(rows) - min(rows) <= (0 if options["fill"] else 1)
        for batch in turns:
            assert torch.equal(batch["loss_mask"] == 1, batch["labels"] != -100)
            found += zip(batch["input_ids"].tolist(), batch["labels"].tolist(), strict=True)
    wanted = list(zip(stored["input_ids"].tolist(), stored["labels"].tolist(), strict=True))
    trains = [row for row in wanted if set(row[1]) != {-100}]
    assert sorted(row for row in found if set(row[1]) != {-100}) == sorted(trains)
    if not options["fill"]:
        assert sorted(found) == sorted(wanted)
    if options["micro_batch_size"] is None:
        whole = [sum(len(batch["input_ids"]) for batch in turns) for turns in zip(*ranks, strict=True)]
        assert whole == (sizes if not options["fill"] else [world * max(share) for share in shares])


def test_a_turn_without_rows_is_said_to_be_one(sets: dict[int, Path]) -> None:
    """Of seven rows one rank has four, in two turns, and the other three, in one."""
    with pytest.raises(
        UsageError, match=r"7 rows among 2 ranks are more turns for some than for others\. Give fill=True"
    ):
        ValidationLoader(sets[7], batch_size=8, micro_batch_size=3, rank=1, world_size=2)


def test_batches_of_several_lengths_are_filled(rows: Path) -> None:
    """The last batch of a length may have fewer rows than there are ranks."""
    path, ranks = rows.parent / "batches", 4
    with pytest.raises(UsageError, match=r"among 4 ranks, so one has none\. Give fill=True for rows without targets"):
        ValidationLoader(path, rank=0, world_size=ranks)
    loaders = [ValidationLoader(path, rank=rank, world_size=ranks, fill=True) for rank in range(ranks)]
    stored = packtool.open(path)
    for number, turns in enumerate(zip(*loaders, strict=True)):
        assert len({batch["input_ids"].shape for batch in turns}) == 1
        own = [row for batch in turns for row in batch["labels"].tolist() if set(row) != {-100}]
        wanted = stored.batch(number, fields=("labels",))["labels"].tolist()  # type: ignore[arg-type]
        assert sorted(own) == sorted(row for row in wanted if set(row) != {-100})


def test_a_loader_fills_its_last_batch(sets: dict[int, Path]) -> None:
    """With workers, too; and without labels there is nothing to leave out."""
    for workers in (0, 1):
        options: dict[str, Any] = {"batch_size": 4, "world_size": 4, "drop_last": False, "num_workers": workers}
        ranks = [list(Loader(sets[7], rank=rank, **options, fill=True)) for rank in range(4)]
        assert [len(each) for each in ranks] == [2] * 4
        assert {batch["input_ids"].shape for each in ranks for batch in each} == {(1, 8)}
        assert [set(each[1]["labels"][0].tolist()) == {-100} for each in ranks] == [False, False, False, True]
        assert len(next(iter(Loader(sets[7], rank=3, **options, fields=("input_ids",), fill=True)))) == 1
    with pytest.raises(UsageError, match="fill: has no effect with drop_last: ranks have equally many rows"):
        Loader(sets[7], fill=True)


def test_several_datasets_come_one_after_the_other(sets: dict[int, Path], tmp_path: Path) -> None:
    """Of a list or a blend, each by its name, on any number of ranks."""
    names = {"seven": sets[7], "one": sets[1], "many": sets[29]}
    lines = ["[sources]", *(f'{name} = "{path}"' for name, path in names.items())]
    (tmp_path / "blend.toml").write_text("\n".join(lines))
    every = [row for path in names.values() for row in packtool.open(path)[:].tolist()]
    for source, known in [
        (list(names.values()), [str(path) for path in names.values()]),
        (tmp_path / "blend.toml", list(names)),
        (packtool.Blend(names), list(names)),  # type: ignore[arg-type]
    ]:
        valid = ValidationLoader(source, batch_size=4)
        assert valid.sources == known
        assert len(valid) == 2 + 1 + 8
        for _ in range(2):
            assert ids(valid) == every
            counted = torch.cat([batch["source"][:, 0] for batch in valid]).bincount().tolist()
            assert counted == [7, 1, 29]
        options: dict[str, Any]
        for options in ({"labels": "same"}, {"fields": ("labels",)}):
            assert "source" not in next(iter(ValidationLoader(source, batch_size=4, **options)))
        short = next(iter(ValidationLoader(source, batches=1, extra_token=True, fields=("labels", "source"))))
        assert short["source"].shape == short["labels"].shape == (1, 7)
    ranks = [ValidationLoader(list(names.values()), batch_size=4, rank=r, world_size=2, fill=True) for r in range(2)]
    shares = [[batch["source"][:, 0].tolist() for batch in rank] for rank in ranks]
    assert shares[0] == shares[1]


def test_a_dataset_is_once_in_a_list(sets: dict[int, Path]) -> None:
    for other in (str(sets[7]), f"{sets[7].parent}/./{sets[7].name}"):
        with pytest.raises(UsageError, match=r"source: .* and .* are one dataset\. Name it once\."):
            ValidationLoader([sets[7], sets[3], other])


def test_each_dataset_of_a_blend_has_stores_of_its_own(tmp_path: Path) -> None:
    """Stores that the blend names for one dataset are not those of the next."""
    for name, place, lengths in (("a", "elsewhere", [8, 9]), ("b", ".", [5, 8, 9])):
        store = write_store(tmp_path / place / f"store-{name}", lengths)
        packtool.pack(store, tmp_path / name, strategy="concat", sequence_length=8, index_only=True)
    sources = {"a": {"path": tmp_path / "a", "stores": [tmp_path / "elsewhere" / "store-a"]}, "b": tmp_path / "b"}
    assert len(list(ValidationLoader(packtool.Blend(sources)))) == 3 + 3  # type: ignore[arg-type]


def test_what_does_not_validate_together(sets: dict[int, Path], make: Make) -> None:
    by_another = {"tokenizer": msgspec.structs.replace(TOKENIZER, sha256="1" * 64)}
    other = make([8], by_another, other={"strategy": "concat", "sequence_length": 8}) / "other"
    with pytest.raises(UsageError, match=r"other has other tokens than .*rows, by another tokenizer\. Tokenize all"):
        ValidationLoader([sets[7], other])
    with pytest.raises(UsageError, match=r"sources.b: b has no path, so it can't be read\. Give it one, or leave it"):
        ValidationLoader(packtool.Blend({"a": sets[7], "b": {}}))
    with pytest.raises(
        UsageError, match=r"fields: source has a number for each token, and no other field has one. Name"
    ):
        ValidationLoader([sets[7]], fields=("cu_seqlens", "source"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batches": 0}, "batches: 0 is not a number of batches"),
        ({"batches": True}, "batches: True is not a number of batches"),
        ({"batches": 8}, "batches: 8 batches, but all rows make 7"),
        ({"epochs": 2}, "epochs: a validation reads stored rows once, in stored order"),
        ({"shuffle": True}, "shuffle: a validation reads stored rows once, in stored order"),
        ({"batchsize": 1}, "batchsize: no such option"),
    ],
)
def test_options_that_make_no_validation(rows: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        ValidationLoader(rows, **{"batch_size": 16, **options})
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("batches", [None, 3])
def test_lightning_validates_on_the_same_rows(rows: Path, tmp_path: Path, batches: int | None) -> None:
    seen: dict[tuple[str, int], list[list[int]]] = {}
    valid = ValidationLoader(rows, batch_size=16, batches=batches)
    trainer = lightning_trainer(tmp_path, max_epochs=3, limit_train_batches=2, num_sanity_val_steps=2)
    trainer.fit(lightning_model(seen), Loader(rows, batch_size=16), valid)
    stored = packtool.open(rows)[: 48 if batches else None].tolist()
    assert seen["validate", 0] == ids(islice(valid, 2)) + stored
    assert seen["validate", 1] == seen["validate", 2] == stored
