"""Which labels a batch holds, and what a model that shifts them itself trains on with either kind."""

from pathlib import Path
from typing import Any

import pytest

import packtool

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from packtool.torch import Loader, NextLabels, SameLabels  # noqa: E402
from tests.torch.gradients import llama  # noqa: E402

FIELDS = ("input_ids", "labels", "position_ids")


def test_models_of_transformers_train_on_the_next_token(rows: Path) -> None:
    """With ``labels="same"``, as every example has it; with the others they would train on the token after the next."""
    model, cross_entropy = llama(), torch.nn.functional.cross_entropy
    after, own = (next(iter(Loader(rows, batch_size=8, labels=kind, fields=FIELDS))) for kind in ("next", "same"))
    assert torch.equal(after["input_ids"], own["input_ids"])
    with torch.no_grad():
        logits = model(after["input_ids"], position_ids=after["position_ids"]).logits
        right = cross_entropy(logits.flatten(0, 1), after["labels"].flatten())
        late = cross_entropy(logits[:, :-1].flatten(0, 1), after["labels"][:, 1:].flatten())
        torch.testing.assert_close(model(**own).loss, right)
        torch.testing.assert_close(model(**after, shift_labels=after["labels"]).loss, right)
        torch.testing.assert_close(model(**after).loss, late)
    assert abs(float(right - late)) > 1e-4


def test_labels_of_lanes_reach_a_model_of_transformers_as_shifted_ones(rows: Path) -> None:
    """As docs/shuffling.md says: each row of a lane has a target for its last token, which no other kind has."""
    model = llama()
    batch = next(iter(Loader(rows.parent / "lanes", batch_size=4, fields=FIELDS[:2], shuffle=False)))
    assert (batch["labels"][:, -1] == packtool.open(rows.parent / "lanes", dtype="int64")[4:8][:, 0]).all()
    with torch.no_grad():
        logits = model(batch["input_ids"]).logits
        expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
        torch.testing.assert_close(model(**batch, shift_labels=batch["labels"]).loss, expected)


def test_batches_of_a_blend_are_arguments_of_models_of_transformers(rows: Path) -> None:
    """All fields that a batch has by default: the losses of Transformers have another use for the name `source`."""
    model, blend = llama(), packtool.Blend({"one": rows})
    batch = next(iter(Loader(blend, batch_size=8, labels="same")))
    alone = next(iter(Loader(rows, batch_size=8, labels="same")))
    assert list(batch) == list(alone)
    with torch.no_grad():
        assert torch.equal(model(**batch, use_cache=False).loss, model(**alone, use_cache=False).loss)
        named = next(iter(Loader(blend, batch_size=8, labels="same", fields=(*FIELDS, "source"))))
        assert named.pop("source").tolist() == [[0] * 64] * 8
        assert torch.equal(model(**named, use_cache=False).loss, model(**alone, use_cache=False).loss)
    assert "source" in next(iter(Loader(blend, batch_size=8)))


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"pin_memory": True}])
def test_a_batch_says_which_labels_it_holds(rows: Path, options: dict[str, Any]) -> None:
    accelerate = pytest.importorskip("accelerate")
    for kind, expected in (("next", NextLabels), ("same", SameLabels)):
        loader = Loader(rows, batch_size=16, labels=kind, **options)
        assert loader.labels == kind
        assert f"labels {kind!r}" in repr(loader)
        batch = next(iter(loader))
        assert type(batch) is expected
        assert type(accelerate.utils.send_to_device(batch, "cpu")) is expected
