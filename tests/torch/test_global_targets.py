"""`global_targets` in every turn is what all ranks together count in their labels, turn by turn."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packtool
from tests.making import Make, drawn_lengths
from tests.stores import document_loss

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader, ValidationLoader  # noqa: E402

FIELDS = ("input_ids", "labels", "global_targets")


@pytest.fixture(scope="module")
def sources(make: Make, rows: Path) -> dict[str, Any]:
    options = {"strategy": "concat", "sequence_length": 64}
    chats = make(drawn_lengths(60, 59, 3, 1), {"first": 1000, "loss": document_loss}, chats=options) / "chats"
    both = {"web": rows, "chats": chats}
    return {**both, "batches": rows.with_name("batches"), "blend": packtool.Blend(both, rows=60)}  # type: ignore[arg-type]


@settings(max_examples=50)
@given(data=st.data())
def test_all_ranks_count_the_same(sources: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(sources)), label="source")
    world = data.draw(st.sampled_from([1, 2, 4]), label="ranks")
    options: dict[str, Any] = {"world_size": world, "drop_last": data.draw(st.booleans(), label="drop last")}
    options["fill"] = not options["drop_last"] and data.draw(st.booleans(), label="fill")
    options["micro_batch_size"] = data.draw(st.sampled_from([None, 1, 3]), label="micro-batch")
    options["labels"] = data.draw(st.sampled_from(["next", "same"]), label="labels")
    options["num_workers"] = data.draw(st.sampled_from([0] * 9 + [1]), label="workers")
    if name != "batches":
        options["batch_size"] = 8
    if name in ("web", "blend"):
        options["balance"] = data.draw(st.sampled_from([None, "step"]), label="balance")
    skipped = data.draw(st.sampled_from([0, 5]), label="skipped")
    ranks = []
    for rank in range(world):
        loader = Loader(sources[name], rank=rank, fields=FIELDS, **options)
        loader.skip(skipped)
        consumed, turns = [loader.consumed], []
        for batch in loader:
            turns.append((consumed[-1], int((batch["labels"] != -100).sum()), batch["global_targets"]))
            consumed.append(loader.consumed)
        ranks.append(turns)
    counted: dict[int, int] = {}
    for turns in zip(*ranks, strict=True):
        assert len({(begin, targets) for begin, _, targets in turns}) == 1
        counted[turns[0][0]] = counted.get(turns[0][0], 0) + sum(own for _, own, _ in turns)
    assert [targets for begin, _, targets in ranks[0]] == [counted[begin] for begin, _, _ in ranks[0]]
    assert ranks[0]


def test_a_validation_counts_them_too(sources: dict[str, Any]) -> None:
    valid = ValidationLoader(sources["web"], batch_size=8, fields=FIELDS)
    for _ in range(2):
        batches = list(valid)
        assert [batch["global_targets"] for batch in batches] == [(b["labels"] != -100).sum() for b in batches]


def test_they_are_counted_whatever_else_is_asked_for(sources: dict[str, Any]) -> None:
    alone = next(iter(Loader(sources["chats"], batch_size=4, fields=("global_targets",))))
    both = next(iter(Loader(sources["chats"], batch_size=4, fields=("loss_mask", "global_targets"))))
    assert alone == {"global_targets": int(both["loss_mask"].sum())}
    assert "global_targets" not in next(iter(Loader(sources["chats"], batch_size=4)))
