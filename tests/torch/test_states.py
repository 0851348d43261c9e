"""The place of every kind of loader in a new one, through everything that keeps checkpoints."""

import io
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import packtool
from tests.making import Make, drawn_lengths
from tests.reading.opening import sources_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from packtool.torch import GlobalBatches, Loader, Samples, collate  # noqa: E402 - they need torch

STAGES = [{"weights": {"web": 0.6, "code": 0.4}}, {"from": "30%", "ramp": "70%", "weights": {"web": 0.2, "code": 0.8}}]
Read = list[list[int]]


@pytest.fixture(scope="module")
def place(make: Make) -> dict[str, Path]:
    """Datasets by name."""
    several = make(drawn_lengths(300, 29), several={"strategy": "buckets", "buckets": (8, 16, 32)}) / "several"
    return {**sources_of(make, {"web": 300, "code": 200}, code={"index_only": True}), "several": several}


KINDS: dict[str, Callable[[dict[str, Path]], tuple[Any, dict[str, Any]]]] = {
    "dataset": lambda place: (place["web"], {"batch_size": 8, "epochs": 2}),
    "repacked": lambda place: (place["code"], {"batch_size": 8, "repack": True}),
    "several": lambda place: (place["several"], {"batch_tokens": 128}),
    "blend": lambda place: (blend(place), {"batch_size": 80}),
}


def blend(place: dict[str, Path]) -> packtool.Blend:
    return packtool.Blend({name: place[name] for name in ("web", "code")}, STAGES, rows=9000)


def through_dcp(state: dict[str, Any], new: Loader, tmp_path: Path) -> None:
    """As torchtitan keeps a loader: only keys that the new loader's state has are filled."""
    from torch.distributed import checkpoint

    class Saved:
        def state_dict(self) -> dict[str, Any]:
            return state

        def load_state_dict(self, _: Any) -> None: ...

    checkpoint.save({"loader": Saved()}, checkpoint_id=tmp_path, no_dist=True)
    checkpoint.load({"loader": new}, checkpoint_id=tmp_path, no_dist=True)


def through_torch(state: dict[str, Any], new: Loader, _: Path) -> None:
    kept = io.BytesIO()
    torch.save(state, kept)
    new.load_state_dict(torch.load(io.BytesIO(kept.getvalue()), weights_only=True))


def through_json(state: dict[str, Any], new: Loader, _: Path) -> None:
    new.load_state_dict(json.loads(json.dumps(state)))


def rows(batches: Any) -> list[Any]:
    """The rows of some batches, with their sources in a blend."""
    return [[batch["input_ids"].tolist(), batch["source"].tolist() if "source" in batch else None] for batch in batches]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["inside", "skipped", "reweighted", "out"])
@pytest.mark.filterwarnings("ignore")  # what distributed checkpoints get warnings for; and that a run has ended
def test_a_new_loader_goes_on(place: dict[str, Path], tmp_path: Path, kind: str, when: str) -> None:
    source, options = KINDS[kind](place)
    loader = Loader(source, **options)
    list(islice(loader, {"out": 10**6}.get(when, 7)))
    if when == "skipped":
        loader.skip(2 * (options.get("batch_size") or 1))
    if when == "reweighted" and kind == "blend":
        loader.reweight({"web": 2, "code": 1}, ramp_rows=700)
    state = loader.state_dict()
    rest = rows(islice(loader, 40))
    assert rest or (kind, when) == ("blend", "out")
    for number, way in enumerate((through_dcp, through_torch, through_json)):
        new = Loader(source, **options)
        way(state, new, tmp_path / f"{number}")
        assert new.state_dict() == state
        assert rows(islice(new, 40)) == rest
    if kind != "several":
        ranks = [Loader(source, **options, rank=rank, world_size=2) for rank in range(2)]
        for rank in ranks:
            through_json(state, rank, tmp_path)
        shares = [rows(islice(rank, 40)) for rank in ranks]
        for (one, _), (other, _), (whole, _) in zip(*shares, rest, strict=True):
            assert [row for two in zip(one, other, strict=True) for row in two] == whole


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore")  # what torchdata itself gets warnings for
def test_in_a_stateful_dataloader(place: dict[str, Path], kind: str, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    source, options = KINDS[kind](place)
    size = options.pop("batch_size", None)

    def made() -> Any:
        samples = Samples(source, **options)
        batches = GlobalBatches(samples, size)
        return stateful.StatefulDataLoader(samples, batch_sampler=batches, collate_fn=collate, num_workers=workers)

    whole = rows(islice(made(), 12))
    first = made()
    before = rows(islice(first, 5))
    again = made()
    again.load_state_dict(first.state_dict())
    assert [*before, *rows(islice(again, 7))] == whole
