"""Several processes of a program, as a launcher starts them."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.test_docs import ROOT

OF_ANOTHER = ("RANK", "WORLD_SIZE")
"""What says the rank of the process that runs the tests, and not of these."""


def launched_by(launcher: str, size: int = 2) -> list[dict[str, str]]:
    """The environments that a launcher gives to its processes."""
    if launcher == "lightning":  # starts the other process itself
        return [{}]
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(one.getsockname()[1])}
    ranks = [str(rank) for rank in range(size)]
    if launcher == "srun":  # whose names packtool does not know: a loader that is made now is rank 0 of 1
        return [{**group, "SLURM_NTASKS": str(size), "SLURM_PROCID": rank} for rank in ranks]
    group |= {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size)}
    return [{**group, "RANK": rank, "LOCAL_RANK": rank} for rank in ranks]


def run_together(program: Path, words: Sequence[Sequence[object]], environments: list[dict[str, str]]) -> None:
    """Run a program in several processes, each with words and an environment of its own, until all have ended well."""
    surrounding = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER}
    places = (ROOT, ROOT / "tests" / "torch" / "titan", ROOT / "examples" / "train")
    surrounding |= {"PYTHONPATH": os.pathsep.join(map(str, places)), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(program), *map(str, each)],
            env={**surrounding, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for each, environment in zip(words, environments, strict=True)
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), b"".join(errors)[-3000:].decode()
