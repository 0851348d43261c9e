"""Run the jobs of docs/cluster.md under a Slurm of this machine, and compare what they make with a run without it.

python scripts/slurm.py [PYTHON]

Needs root and Debian's slurm-wlm and munge. It starts a controller and two daemons, which claim 64 processors each, in
a temporary directory, and ends them. With a PYTHON that has PyTorch it also tries ranks that srun starts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```sh (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONFIGURATION = """
ClusterName=trial
SlurmctldHost={host}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool-%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd-%n.pid
SlurmctldPort=16817
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=one NodeHostname={host} Port=17001 CPUs=64 RealMemory=262144
NodeName=two NodeHostname={host} Port=17002 CPUs=64 RealMemory=262144
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
RANK = """
import sys
from packtool.torch import Loader
loader = Loader("rows", batch_size=2)
print("ids", [int(i) for batch in loader for i in batch["input_ids"][:, 0]])
"""


def main(python: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix="slurm-") as directory, slurm(Path(directory)):
        place = Path(directory) / "jobs"
        prepare(place)
        array_and_pack(place)
        divisions_that_do_not_fit(place)
        requeued(place)
        dask(place)
        if python is not None:
            ranks(place, python)


@contextmanager
def slurm(place: Path) -> Iterator[None]:
    """Run a controller and two daemons as long as the block."""
    configuration = place / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(host=os.uname().nodename, place=place))
    os.environ["SLURM_CONF"] = str(configuration)
    for name in ("state", "spool-one", "spool-two"):
        (place / name).mkdir()
    if subprocess.run(["munge", "-n"], capture_output=True, check=False).returncode:
        Path("/run/munge").mkdir(exist_ok=True)
        shutil.chown("/run/munge", "munge")
        subprocess.run(["su", "-s", "/bin/sh", "munge", "-c", "munged"], check=True)
    daemons = []
    try:
        for command in (["slurmctld", "-D"], ["slurmd", "-D", "-N", "one"], ["slurmd", "-D", "-N", "two"]):
            with (place / f"{command[-1]}.log").open("wb") as log:
                daemons.append(subprocess.Popen(command, stdout=log, stderr=log))
        until(lambda: said("sinfo", "-h", "-o", "%T %D") == "idle 2", "the daemons")
        yield
    finally:
        subprocess.run(["scancel", "--full", "--user=root"], check=False)
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait()


def prepare(place: Path) -> None:
    """Write a corpus, the page's files, and `packtool` and `dask` of this environment; make what is expected."""
    (place / "bin").mkdir(parents=True)
    (place / "corpus").mkdir()
    for name in ("packtool", "dask"):
        script = place / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n')
        script.chmod(0o755)
    os.environ["PATH"] = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.environ["PYTHONPATH"] = str(ROOT)
    os.chdir(place)
    for file in range(3):
        lines = [f'{{"text": "document {line} of file {file}"}}\n' for line in range(200)]
        (place / "corpus" / f"{file}.jsonl").write_text("".join(lines))
    for name, code in BLOCK.findall((ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")):
        (place / name).write_text(code)
    said("packtool", "tokenize", "corpus", "-o", "one-store")
    said("packtool", "pack", "one-store", "-o", "expected", "--strategy", "bfd", "-L", "2048")


def array_and_pack(place: Path) -> None:
    """Run the array and, after it, pack, as the page says; the rows are those of one store."""
    array = said("sbatch", "--parsable", "array.sbatch")
    finished(said("sbatch", "--parsable", f"--dependency=afterok:{array}", "pack.sbatch"), "COMPLETED")
    same(place / "rows", place / "expected", "array.sbatch and pack.sbatch")


def divisions_that_do_not_fit(place: Path) -> None:
    """Begin at 0, or leave a job out: no document is lost in silence."""
    shutil.rmtree(place / "stores")
    job = said("sbatch", "--parsable", "--array=0-4", "array.sbatch")
    finished(f"{job}_0", "FAILED")
    finished(f"{job}_4", "COMPLETED")
    log = (place / f"slurm-{job}_0.out").read_text()
    assert "'0/5' can't be used. Give a part by its number, from 1/8 to 8/8." in log, log
    packed = subprocess.run(
        ["bash", "-c", "packtool pack stores/* -o lost --strategy bfd -L 2048"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert packed.returncode == 2, packed
    assert "of which part 5/5 is missing" in packed.stderr, packed.stderr
    tried("an array from 0, and a part that is missing")


def requeued(place: Path) -> None:
    """Requeue jobs while they run: the second time they resume, and their log is kept."""
    shutil.rmtree(place / "stores")
    shutil.rmtree(place / "rows")
    job = said("sbatch", "--parsable", "array.sbatch")
    until(lambda: said("squeue", "-h", "-j", job, "-t", "R", "-o", "%i") != "", "a running job")
    # Jobs that wait, or have ended, are refused; requeued ones would begin after two minutes.
    subprocess.run(["scontrol", "requeue", job], capture_output=True, check=False)
    subprocess.run(["scontrol", "update", f"JobId={job}", "StartTime=now"], capture_output=True, check=False)
    finished(said("sbatch", "--parsable", f"--dependency=afterok:{job}", "pack.sbatch"), "COMPLETED", seconds=400)
    same(place / "rows", place / "expected", "jobs that were requeued")


def dask(place: Path) -> None:
    """Run the job with a scheduler, workers and TLS."""
    job = said("sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=2", "job.sbatch")
    finished(job, "COMPLETED")
    same(place / "packed", place / "expected", "job.sbatch")


def ranks(place: Path, python: str) -> None:
    """Run a loader as two ranks: refused as srun starts them, and as the page says each has half of the rows."""
    (place / "train.py").write_text(RANK)
    alone = subprocess.run([python, "train.py"], capture_output=True, text=True, check=True).stdout
    plain = subprocess.run(["srun", "-n2", python, "train.py"], capture_output=True, text=True, check=False)
    assert plain.returncode, plain
    assert "SLURM_NTASKS is 2, and nothing says which of these processes this is" in plain.stderr, plain.stderr
    told = said("srun", "-n2", "bash", "-c", f"RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS {python} train.py")
    halves = [line.count(",") + 1 for line in told.splitlines() if line.startswith("ids")]
    assert len(halves) == 2, told
    assert sum(halves) == alone.count(",") + 1, (alone, told)
    tried("two ranks of srun")


def tried(what: str) -> None:
    """Say what was tried."""
    sys.stdout.write(f"tried: {what}\n")


def said(*command: str) -> str:
    """Run a command, and return what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


def finished(job: str, state: str, seconds: float = 300) -> None:
    """Wait until a job is in this state."""

    def there() -> bool:
        shown = said("scontrol", "show", "job", job)
        now = re.search(r"JobState=(\S+)", shown)
        assert now, shown
        ended = now[1] not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED")
        assert not ended or now[1] == state, f"{shown}\n{log_of(job)}"
        return ended

    until(there, f"job {job}", seconds)


def log_of(job: str) -> str:
    """Return what a job has printed."""
    return "".join(log.read_text() for log in Path().glob(f"slurm-{job}*.out"))


def until(true: object, what: str, seconds: float = 60) -> None:
    """Wait until a function returns something that is true."""
    assert callable(true)
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.5)


def same(made: Path, expected: Path, what: str) -> None:
    """Require the same rows."""
    files = sorted(file.name for file in expected.glob("*.npy"))
    for name in files:
        assert (made / name).read_bytes() == (expected / name).read_bytes(), f"{what}: {name} differs"
    tried(f"{what}: the {len(files)} arrays of one machine")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
