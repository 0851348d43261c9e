"""The class that examples/train has for torchtitan's main branch; test_recount.py trains with it on two processes."""

import importlib
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from tests.test_docs import ROOT

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")


@pytest.fixture
def loader(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class."""
    for place in (ROOT / "examples" / "train", Path(__file__).parent / "titan"):
        monkeypatch.syspath_prepend(str(place))
    return importlib.import_module("torchtitan_main").PackedDataLoader


@pytest.fixture
def longer(rows: Path) -> Path:
    """Rows of 65 tokens, which are padded."""
    return rows.with_name("longer")


def made(config: Any, rank: int = 0, world: int = 1, context: int = 64) -> Any:
    given = {"max_context_length": context, "num_tokens_per_microbatch": 8 // world * context}
    return config.build(dp_rank=rank, dp_world_size=world, tokenizer=None, **given)


def test_microbatches_are_flat_and_say_what_trains(loader: Any, longer: Path) -> None:
    dataset = packtool.open(longer)
    microbatch = next(iter(made(loader.Config(path=str(longer)))))
    expected = dataset.epoch(0).batch(range(8), extra_token=True)  # type: ignore[union-attr]
    names = {"input": "input_ids", "labels": "labels", "positions": "position_ids"}
    for name, field in names.items():
        assert torch.equal(getattr(microbatch, name), torch.from_numpy(expected[field].reshape(-1)))
    padding = torch.from_numpy(expected["document_ids"].reshape(-1) < 0)
    assert padding.any()
    assert torch.equal(microbatch.padding_mask, padding)
    assert microbatch.num_valid_tokens == int((microbatch.labels != -100).sum()) > 0


def test_a_validation_is_the_same_each_time(loader: Any, longer: Path) -> None:
    """Some batches, for which torchtitan repeats the data, or all rows once, for which it does not."""
    config = loader.Config(path=str(longer))
    stored, first = packtool.open(longer)[:], packtool.open(longer).epoch(0)[:16]  # type: ignore[union-attr]
    for _ in range(2):
        for repeat, batches, rows in ((True, 2, first), (False, None, stored)):
            built = made(replace(config, repeat=repeat))
            found = torch.cat([each.input for each in islice(built, batches)]).reshape(-1, 64)
            built.close()
            np.testing.assert_array_equal(found.numpy(), rows[:, :64])


def test_rows_of_another_length_are_refused(loader: Any, longer: Path) -> None:
    with pytest.raises(AssertionError, match="rows have 65 tokens: pack them with -L 33"):
        made(loader.Config(path=str(longer)), context=32)
    empty = made(loader.Config(path=str(longer)))
    empty.load_state_dict({})  # what torchtitan gives where a checkpoint has no state
    assert empty.loader.consumed == 0
