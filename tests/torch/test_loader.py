"""The loader in PyTorch: every way to start workers, any number of ranks, stopping and going on."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.reading.batch import FIELDS
from packtool.reading.stream import Stream

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from packtool.torch import GlobalBatches, Loader, Samples, collate  # noqa: E402

STARTS = ["fork", "spawn", "forkserver"]
WAYS = [(None, False), (None, True), ("fork", False), ("spawn", True), ("forkserver", False)]
"""How workers start, and whether memory is pinned."""


def ids(batches: Any) -> list[list[int]]:
    return [row for batch in batches for row in batch["input_ids"].tolist()]


@pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning", "ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(("start", "pin"), WAYS)
def test_batches_are_those_that_numpy_reads(rows: Path, start: str | None, pin: bool) -> None:
    workers = {"num_workers": 2, "multiprocessing_context": start} if start else {}
    fields = (*FIELDS, "loss_mask")
    loader = Loader(rows, batch_size=8, epochs=2, drop_last=False, pin_memory=pin, fields=fields, **workers)
    stream = Stream(rows, epochs=2, fields=fields)
    batches = list(loader)
    assert len(batches) == len(loader) == -(-len(stream) // 8)
    for number, batch in enumerate(batches):
        expected = stream.batch(stream.addresses(number * 8, min(number * 8 + 8, len(stream))))
        assert set(batch) == set(expected) == set(fields)
        for name, value in expected.items():
            found = batch[name]
            if isinstance(value, np.ndarray):
                assert found.dtype == getattr(torch, str(value.dtype))
                found = found.numpy()
            np.testing.assert_array_equal(found, value)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("start", STARTS)
def test_the_dataset_alone_in_a_plain_dataloader(rows: Path, start: str) -> None:
    dataset = packtool.open(rows, dtype="int64")
    embed = torch.nn.Embedding(1 << 16, 2)
    batches = list(DataLoader(dataset, batch_size=8, num_workers=1, multiprocessing_context=start))
    assert embed(batches[0]).shape == (8, 64, 2)
    np.testing.assert_array_equal(torch.cat(batches).numpy(), dataset[:])


def doubled(batch: Any) -> Any:
    """A collate function of a user, who expects tensors of the usual types."""
    assert {name for name, _ in batch.items()} == {"input_ids", "labels", "max_seqlen"}
    return {"twice": 2 * batch["input_ids"], **batch}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 1])
def test_a_collate_function_of_ones_own_gets_tensors(rows: Path, workers: int) -> None:
    samples = Samples(rows, fields=("input_ids", "labels", "max_seqlen"))
    batches = GlobalBatches(samples, 8)
    for batch in DataLoader(samples, batch_sampler=batches, collate_fn=doubled, num_workers=workers):
        assert batch["input_ids"].dtype == batch["labels"].dtype == torch.int64
        assert torch.equal(batch["twice"], batch["input_ids"] + batch["input_ids"])


def stopped(rows: Path, stops: list[tuple[int, int]], make: Any) -> Iterator[list[int]]:
    """Rows in global order, from runs of so many ranks that stop after so many global batches."""
    state = None
    for world, steps in stops:
        loaders = [make(rank, world) for rank in range(world)]
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
        shares = [[batch["input_ids"].tolist() for batch in islice(loader, steps)] for loader in loaders]
        for step in range(max(map(len, shares))):
            for i in range(len(shares[0][step])):
                yield from (share[step][i] for share in shares)
        state = loaders[0].state_dict()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_one_order_for_any_world_and_after_an_elastic_resume(rows: Path, workers: int) -> None:
    def make(rank: int, world: int) -> Loader:
        return Loader(rows, batch_size=8, epochs=3, rank=rank, world_size=world, num_workers=workers)

    whole = ids(make(0, 1))
    for stops in ([(2, 999)], [(4, 999)], [(1, 3), (4, 2), (2, 5), (1, 999)]):
        assert list(stopped(rows, stops, make)) == whole
    expected = np.concatenate([packtool.open(rows).epoch(n)[:] for n in range(3)])
    np.testing.assert_array_equal(whole, expected[: len(whole)])
    assert len(expected) - len(whole) == make(0, 1).left_out < 8


def test_leaving_a_loop_keeps_the_place(rows: Path) -> None:
    loader = Loader(rows, batch_size=4)
    first = ids(islice(loader, 3))
    assert loader.consumed == 12
    assert f"rank 0 of 1, 12 of {len(loader._samples)} samples consumed" in repr(loader)
    assert loader.remaining == len(loader) - 3
    rest = ids(loader)
    assert first + rest == ids(Loader(rows, batch_size=4))
    assert loader.remaining == 0
    assert len(ids(loader)) == len(first + rest)  # after the end the next epoch begins
    loader.reset()
    assert ids(islice(loader, 3)) == first


def test_what_is_no_option(rows: Path) -> None:
    with pytest.raises(UsageError, match=r"batchsize: no such option\. Did you mean batch_size\?"):
        Loader(rows, batchsize=8)
    with pytest.raises(UsageError, match="steps: a loader has epochs, not steps"):
        Loader(rows, steps=8)


def test_before_the_process_group_rank_and_world_size_are_those_of_torchrun(
    rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert ids(Loader(rows, batch_size=8)) == ids(Loader(rows, batch_size=8, rank=1, world_size=2))
    assert ids(Loader(rows, batch_size=8, rank=0, world_size=1)) != ids(Loader(rows, batch_size=8))
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(UsageError, match="RANK, WORLD_SIZE: 1 of two is not a rank"):
        Loader(rows, batch_size=8)


@pytest.mark.parametrize(
    ("size", "rank"),
    [
        ("SLURM_NTASKS", "SLURM_PROCID"),
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
        ("PMI_SIZE", "PMI_RANK"),
    ],
)
def test_a_launcher_that_does_not_say_the_rank_is_refused_until_somebody_does(
    size: str, rank: str, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        monkeypatch.delenv(name, raising=False)
    one = ids(Loader(rows, batch_size=8))
    monkeypatch.setenv(size, "1")
    assert ids(Loader(rows, batch_size=8)) == one
    monkeypatch.setenv(size, "2")
    monkeypatch.setenv(rank, "1")
    said = rf"{size} is 2, and nothing says .*Set RANK=\${rank} WORLD_SIZE=\${size} for each"
    loader = Loader(rows, batch_size=8)  # it may be made before anything is known
    for use in (list, len, lambda each: each.remaining):
        with pytest.raises(UsageError, match=said) as caught:
            use(loader)
        assert caught.value.code == "rank-unknown"
    second = ids(Loader(rows, batch_size=8, rank=1, world_size=2))
    with pytest.raises(UsageError, match=said):
        len(Loader(rows, batch_size=8, rank=0))
    for name, value in {"RANK": rank, "WORLD_SIZE": size}.items():
        monkeypatch.setenv(name, os.environ[value])
    assert ids(loader) == ids(Loader(rows, batch_size=8)) == second


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_state_of_a_plain_dataloader_with_workers(rows: Path) -> None:
    samples = Samples(rows)
    batches = GlobalBatches(samples, 8)
    reader = iter(DataLoader(samples, batch_sampler=batches, collate_fn=collate, num_workers=2))
    came = [next(reader) for _ in range(3)]
    assert batches.consumed > 24  # workers read ahead
    rest = Loader(rows, batch_size=8)
    rest.load_state_dict(batches.state_dict(taken=3))
    assert ids(came) + ids(rest) == ids(Loader(rows, batch_size=8))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_passes_of_one_that_takes_as_many_batches_as_there_are(rows: Path, workers: int) -> None:
    loader = Loader(rows, batch_size=8, num_workers=workers)
    dataset = packtool.open(rows)
    for number in range(3):
        expected = dataset.epoch(number)[: 8 * len(loader)]
        np.testing.assert_array_equal(ids(islice(loader, len(loader))), expected)
    loader.set_epoch(1)
    np.testing.assert_array_equal(ids(loader), dataset.epoch(1)[: 8 * len(loader)])


def test_a_loader_made_before_its_rank_is_known_reads_as_that_rank(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it is made before `init_process_group`: settled when a loop begins, and not changed after that."""
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    early = Loader(rows, batch_size=8)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert ids(early) == ids(Loader(rows, batch_size=8, rank=1, world_size=2))
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(UsageError, match="rank: read as rank 1 of 2, but this process is rank 0 of 2 now"):
        ids(early)
    given = Loader(rows, batch_size=8, rank=1, world_size=2)
    assert ids(given) == ids(Loader(rows, batch_size=8, rank=1, world_size=2))
