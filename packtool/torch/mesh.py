"""The share of the rows that a process reads if several processes hold one model.

Tensor, context, sequence and pipeline parallelism split a model among ranks, which then train on the same rows. The
names of the dimensions of a device mesh tell which ranks share a model, and which ranks read rows of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from packtool.errors import UsageError

WHOLE = ("batch", "dp")
"""Dimensions of all ranks with rows of their own: in torchtitan; in Accelerate, NeMo and PyTorch's examples."""
DATA = (
    *("dp_replicate", "dp_shard"),  # Accelerate, torchtitan, NeMo
    *("replicate", "shard", "fsdp", "ddp"),  # FSDP2 and PyTorch's examples
    *("dp_outer", "dp_inner"),  # Megatron-FSDP
    *("data", "data_parallel"),  # Lightning
)
"""Dimensions whose product is all ranks with rows of their own."""
MODEL = (
    *("tp", "cp", "sp", "pp"),
    *("tensor_parallel", "context_parallel", "sequence_parallel", "pipeline_parallel"),
)
"""Dimensions of one model: its ranks read the same rows."""
MIXED = ("ep", "world", "loss", "loss_mesh", "hsdp", "efsdp")
"""Dimensions that may hold both kinds of ranks. So may joined names with a dimension of a model in them: ``dp_cp``.

Ranks of expert parallelism hold other experts of one model, and in most trainers read rows of their own all the same.
The others are the whole world, and what torchtitan and Megatron-FSDP flatten.
"""


class DataRank(NamedTuple):
    """The share of the rows that a process reads.

    Attributes:
        rank: number of the share, from 0.
        world_size: number of shares.
    """

    rank: int
    world_size: int


def data_rank(mesh: Any) -> DataRank:
    """Return the rank of this process among the ranks that read rows of their own.

    ==========================================  ==============================================================
    dimensions of the mesh                      ranks with rows of their own
    ==========================================  ==============================================================
    one without a name                          all of it
    ``batch`` or ``dp``, and those of a model   that dimension
    some of `DATA`, and those of a model        the product of these, in the order of the mesh
    those of a model alone                      all ranks read the same
    ==========================================  ==============================================================

    A mesh of dp_shard = 2 and tp = 2 has ranks 0 and 1 of one model, 2 and 3 of another: all four processes get a
    `world_size` of 2, the first two as rank 0. torchtitan's ``fsdp`` holds context parallel ranks as well, which no
    name says: give the loader torchtitan's ``batch``.

    Args:
        mesh: `torch.distributed.device_mesh.DeviceMesh`.

    Raises:
        UsageError: not a mesh that this process is in; its names don't say which ranks have rows of their own.
    """
    try:
        names, here = mesh.mesh_dim_names, mesh.get_coordinate()
    except AttributeError:
        raise _bad_mesh(f"{mesh!r:.100} is not a device mesh", "give what init_device_mesh returned") from None
    if here is None:
        raise _bad_mesh("this process is in no place of the mesh", "give the mesh that its model lies on")
    chosen = _dimensions(names or (), mesh.ndim)
    place = DataRank(0, 1)
    for dimension in chosen:
        size = mesh.size(dimension)
        # The first dimension changes slowest, as ranks are numbered in the mesh.
        place = DataRank(place.rank * size + here[dimension], place.world_size * size)
    return place


def _dimensions(names: tuple[str, ...], count: int) -> list[int]:
    """Return the numbers of the dimensions whose ranks have rows of their own."""
    if not names:
        if count > 1:
            raise _bad_mesh(f"its {count} dimensions have no names", "name them, or give one of them")
        return [0]
    for name in names:
        part_of_model = not {*name.split("_")}.isdisjoint({*MODEL, "ep"})  # dp_cp, dp_shard_mod_ep
        if name in MIXED or (part_of_model and name not in MODEL):
            raise _bad_mesh(f"{name} may hold ranks of one model, which read the same rows", _REMEDY)
    for name in names:
        if name not in (*WHOLE, *DATA, *MODEL):
            raise _bad_mesh(f"whether ranks of {name} read rows of their own is not known", _REMEDY)
    if "fsdp" in names and "cp" in names:
        # torchtitan's fsdp is dp_shard * cp, elsewhere the two lie side by side.
        raise _bad_mesh("fsdp beside cp may hold ranks of one model, which read the same rows", _REMEDY)
    whole = [number for number, name in enumerate(names) if name in WHOLE]
    parts_of_whole = [number for number, name in enumerate(names) if name in DATA]
    if len(whole) + bool(parts_of_whole) > 1:
        listed = " and ".join(names[number] for number in sorted([*whole, *parts_of_whole]))
        raise _bad_mesh(f"{listed} lie in one mesh, where one may be part of the other", _REMEDY)
    return whole or parts_of_whole


_REMEDY = "give the dimensions whose ranks read rows of their own, as mesh['dp'], or rank and world_size"


def _bad_mesh(what: str, remedy: str) -> UsageError:
    return UsageError("bad-option", what, remedy=remedy, where="mesh")
