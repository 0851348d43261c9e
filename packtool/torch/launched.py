"""Tell which rank this process is: of `torch.distributed`, or of what torchrun, Slurm or MPI launched.

Only torchrun's variables are used. Others say that there are several processes, but not that each is a rank of one
training: a job step of Slurm may start others for other ends. Where they are all that is known, a loader refuses to
guess, since as rank 0 of 1 each of the processes would read all rows.
"""

from __future__ import annotations

import os

import torch.distributed

from packtool.errors import UsageError

_LAUNCHERS = {
    "OMPI_COMM_WORLD_SIZE": "OMPI_COMM_WORLD_RANK",
    "PMI_SIZE": "PMI_RANK",
    "SLURM_NTASKS": "SLURM_PROCID",
}
"""Variables of launchers: how many processes there are, and which this is. mpirun runs inside a job of Slurm."""


def rank_and_world_size() -> tuple[int, int]:
    """Return the rank of this process and how many ranks there are, as far as that is known by now.

    Raises:
        UsageError: RANK or WORLD_SIZE is no number.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    given = [os.environ.get(name, default) for name, default in (("RANK", "0"), ("WORLD_SIZE", "1"))]
    if not all(value.isdecimal() for value in given):
        what, remedy = f"{' of '.join(given)} is not a rank", "set both to numbers, or give rank and world_size"
        raise UsageError("bad-option", what, remedy=remedy, where="RANK, WORLD_SIZE")
    return int(given[0]), int(given[1])


def require_known() -> None:
    """Refuse a process that a launcher started as one of several, and of which nothing says which rank it is.

    Raises:
        UsageError: naming the launcher's variables.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return
    if "RANK" in os.environ or "WORLD_SIZE" in os.environ:
        return
    for size, rank in _LAUNCHERS.items():
        processes = os.environ.get(size, "")
        if not processes.isdecimal():
            continue
        if int(processes) == 1:
            return
        what = f"{size} is {processes}, and nothing says which of these processes this is: all would read the same rows"
        remedy = f"set RANK=${rank} WORLD_SIZE=${size} for each, or give rank and world_size"
        raise UsageError("rank-unknown", what, remedy=remedy, where="RANK, WORLD_SIZE")
