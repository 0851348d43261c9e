"""A blend through the loader: with workers, on several ranks, stopped, changed and resumed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.reading import BlendedRows
from tests.making import Make
from tests.reading.opening import sources_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from packtool.torch import Loader  # noqa: E402 - it needs torch

ROWS = 9000
STAGES = [
    {"weights": {"web": 0.7, "code": 0.3}},
    {"from": "6000 rows", "ramp": True, "weights": {"web": 0.2, "code": 0.8}},
]


@pytest.fixture(scope="module")
def sources(make: Make) -> dict[str, Path]:
    return sources_of(make, {"web": 500, "code": 200}, code={"index_only": True})


def blend(sources: dict[str, Path], stages: Any = STAGES) -> packtool.Blend:
    return packtool.Blend(sources, stages, rows=ROWS)  # type: ignore[arg-type]


def tokens(loader: Loader, steps: int | None = None) -> list[list[int]]:
    """The rows of so many global batches, with the source of each."""
    out: list[list[int]] = []
    for number, batch in enumerate(loader, 1):
        assert batch["source"].dtype == torch.int32
        rows = torch.cat([batch["source"][:, :1], batch["input_ids"]], 1)
        out += rows.tolist()
        if number == steps:
            break
    return out


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_are_those_of_the_sequence(sources: dict[str, Path], workers: int) -> None:
    rows = packtool.open(blend(sources))
    assert isinstance(rows, BlendedRows)
    loader = Loader(blend(sources), batch_size=500, num_workers=workers, fields=("input_ids", "source"))
    assert loader.sources == ["code", "web"]
    assert len(loader) == ROWS // 500
    source, _ = rows.origins(slice(None))
    assert tokens(loader) == np.concatenate([source[:, None], rows[:]], 1).tolist()
    assert "packtool blend: 9,000 rows of 16 tokens, of code, web" in repr(loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_stopped_changed_and_resumed(sources: dict[str, Path], workers: int) -> None:
    """With workers that read ahead: what came out is what counts, and every source goes on where it was."""
    first = Loader(blend(sources), batch_size=100, num_workers=workers, micro_batch_size=50)
    before = tokens(first, 2 * 37)
    state = json.loads(json.dumps(first.state_dict()))
    assert first.consumed == sum(first.rows.values()) == 3700
    changed = [STAGES[0], {"from": "3700 rows", "weights": {"code": 1}}]
    parts = []
    for rank in range(2):
        loader = Loader(blend(sources, changed), batch_size=100, rank=rank, world_size=2, num_workers=workers)
        loader.load_state_dict(state)
        parts.append(tokens(loader))
    after = [row for two in zip(*parts, strict=True) for row in two]
    assert len(before) + len(after) == ROWS
    for number, name in enumerate(loader.sources):
        mine = [row[1:] for row in [*before, *after] if row[0] == number]
        stream = Loader(sources[name], batch_size=100, epochs=ROWS, fields=("input_ids",))
        alone: list[Any] = []
        for batch in stream:
            alone += batch["input_ids"].tolist()
            if len(alone) >= len(mine):
                break
        assert mine == alone[: len(mine)]


def test_other_weights_while_workers_read_ahead(sources: dict[str, Path]) -> None:
    """On two ranks, from the next block that no worker has read of."""
    parts, begun = [], set()
    for rank in range(2):
        loader = Loader(blend(sources), batch_size=100, rank=rank, world_size=2, num_workers=2)
        rows = []
        for number, batch in enumerate(loader, 1):
            rows += torch.cat([batch["source"][:, :1], batch["input_ids"]], 1).tolist()
            if number == 30:
                begun.add(loader.reweight({"code": 1}))
        parts.append(rows)
    (first,) = begun
    assert first == 4096
    whole = [row for two in zip(*parts, strict=True) for row in two]
    assert {row[0] for row in whole[first:6000]} == {0}
    for number, name in enumerate(loader.sources):
        mine = [row[1:] for row in whole if row[0] == number]
        dataset = packtool.open(sources[name])
        assert len(mine) > len(dataset)
        assert sorted(mine[: len(dataset)]) == sorted(dataset[:].tolist())
