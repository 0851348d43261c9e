"""Ranks of one model read the same rows, all others their own: by the names of a device mesh, or not at all."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from packtool.errors import UsageError

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402

from packtool.torch import Loader, ValidationLoader  # noqa: E402
from packtool.torch.mesh import data_rank  # noqa: E402
from tests.torch.processes import launched_by, run_together  # noqa: E402

RANKS = 8
MESHES: list[tuple[dict[str, int], tuple[str, ...] | str]] = [
    ({"dp": 8}, ("dp",)),
    ({"dp": 4, "tp": 2}, ("dp",)),
    ({"tp": 2, "dp": 4}, ("dp",)),
    ({"dp_replicate": 2, "dp_shard": 2, "cp": 2, "tp": 1}, ("dp_replicate", "dp_shard")),
    ({"dp_replicate": 2, "dp_shard": 2, "cp": 1, "sp": 2, "tp": 1}, ("dp_replicate", "dp_shard")),
    ({"pp": 2, "dp_replicate": 1, "dp_shard": 2, "cp": 1, "tp": 2}, ("dp_replicate", "dp_shard")),
    ({"pp": 2, "batch": 2, "cp": 1, "tp": 2}, ("batch",)),
    ({"dp_outer": 2, "dp_shard": 2, "cp": 1, "tp": 2}, ("dp_outer", "dp_shard")),
    ({"data_parallel": 2, "tensor_parallel": 4}, ("data_parallel",)),
    ({"replicate": 2, "shard": 4}, ("replicate", "shard")),
    ({"pp": 1, "dp_replicate": 2, "fsdp": 2, "tp": 2}, ("dp_replicate", "fsdp")),
    ({"fsdp": 4, "tp": 2}, ("fsdp",)),
    ({"tp": 8}, ()),
    ({"pp": 4, "tp": 2}, ()),
    ({"fsdp": 8}, ("fsdp",)),
    ({"mine": 8}, "whether ranks of mine read rows of their own is not known"),
    ({"model": 8}, "whether ranks of model read rows of their own is not known"),
    ({"TP": 8}, "whether ranks of TP read rows of their own is not known"),
    ({"a": 2, "b": 4}, "whether ranks of a read rows of their own is not known"),
    ({"dp": 2, "model": 4}, "whether ranks of model read rows of their own is not known"),
    ({"dp_replicate": 2, "fsdp": 2, "cp": 2}, "fsdp beside cp may hold ranks of one model"),
    ({"dp": 2, "fsdp": 4}, "dp and fsdp lie in one mesh, where one may be part of the other"),
    ({"batch": 2, "dp": 4}, "batch and dp lie in one mesh, where one may be part of the other"),
    ({"dp": 4, "ep": 2}, "ep may hold ranks of one model"),
    ({"pp": 2, "dp_replicate": 1, "efsdp": 2, "ep": 2}, "efsdp may hold ranks of one model"),
    ({"dp_cp": 8}, "dp_cp may hold ranks of one model"),
    ({"dp_shard_cp": 4, "tp": 2}, "dp_shard_cp may hold ranks of one model"),
    ({"world": 8}, "world may hold ranks of one model"),
]
"""Sizes of dimensions by their names, with those whose ranks read rows of their own, or the message of the refusal."""


@contextmanager
def process(rank: int) -> Iterator[None]:
    """Be one of eight processes, without the others: PyTorch's own group for that."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=rank, world_size=RANKS, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("rank", range(RANKS))
def test_every_mesh_gives_its_rank_or_is_refused(rank: int) -> None:
    with process(rank):
        for sizes, expected in MESHES:
            mesh = init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))
            if isinstance(expected, str):
                with pytest.raises(UsageError) as error:
                    data_rank(mesh)
                assert str(error.value).startswith(f"mesh: {expected}")
                assert "mesh['dp'], or rank and world_size" in str(error.value)
                continue
            place = dict(zip(sizes, np.unravel_index(rank, list(sizes.values())), strict=True))
            own = [sizes[name] for name in expected]
            wanted = int(np.ravel_multi_index([place[name] for name in expected], own)) if own else 0
            assert data_rank(mesh) == (wanted, int(np.prod(own)))
            if len(expected) < len(sizes):  # the same as a part of the mesh, as trainers hand it on
                assert not expected or data_rank(mesh[expected]) == data_rank(mesh)


def test_what_is_no_mesh_of_this_process() -> None:
    with process(5):
        assert data_rank(init_device_mesh("cpu", (8,))) == (5, 8)
        with pytest.raises(UsageError, match="mesh: its 2 dimensions have no names"):
            data_rank(init_device_mesh("cpu", (2, 4)))
        flat = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp_replicate", "dp_shard", "tp"))
        assert data_rank(flat["dp_replicate", "dp_shard"]._flatten("dp")) == data_rank(flat) == (2, 4)
        elsewhere = torch.distributed.device_mesh.DeviceMesh("cpu", [0, 1, 2, 3], mesh_dim_names=("dp",))
        with pytest.raises(UsageError, match="mesh: this process is in no place of the mesh"):
            data_rank(elsewhere)
    with pytest.raises(UsageError, match="mesh: 'dp' is not a device mesh"):
        data_rank("dp")


PROGRAM = """
import json, sys
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from packtool.torch import Loader, ValidationLoader

rows, place = sys.argv[1:]
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp_shard", "tp"))
loader = Loader(rows, batch_size=8, mesh=mesh)
found = [batch["input_ids"].tolist() for batch in loader]
valid = [batch["input_ids"].tolist() for batch in ValidationLoader(rows, batch_size=8, mesh=mesh["dp_shard"])]
json.dump([found, valid, loader.state_dict()], open(f"{place}/rank-{dist.get_rank()}.json", "w"))
dist.barrier()
dist.destroy_process_group()
"""


def test_two_processes_of_one_model_get_equal_rows(rows: Path, tmp_path: Path) -> None:
    """Four real processes, two models of two: in order 0 0 1 1 of the shares."""
    (tmp_path / "program.py").write_text(PROGRAM)
    run_together(tmp_path / "program.py", [(rows, tmp_path)] * 4, launched_by("torchrun", 4))
    found = [json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in range(4)]
    for rank, (train, valid, state) in enumerate(found):
        alone: dict[str, Any] = {"batch_size": 8, "rank": rank // 2, "world_size": 2}
        assert train == [batch["input_ids"].tolist() for batch in Loader(rows, **alone)]
        assert valid == [batch["input_ids"].tolist() for batch in ValidationLoader(rows, **alone)]
        assert state == found[0][2]
    assert found[0][:2] == found[1][:2] != found[2][:2] == found[3][:2]


def test_a_mesh_says_the_rank_alone(rows: Path) -> None:
    with process(5):
        mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("dp", "tp"))
        loader = Loader(rows, batch_size=8, mesh=mesh)
        assert (loader.sampler.sharing.rank, loader.sampler.sharing.world_size) == (2, 4)
        for given in ({"rank": 2}, {"world_size": 4}, {"rank": 0, "world_size": 1}):
            with pytest.raises(UsageError, match=r"mesh: a mesh says rank and world_size\. Leave out"):
                Loader(rows, batch_size=8, mesh=mesh, **given)
