"""The job script of docs/cluster.md, with its scheduler and workers as processes: the bytes of one machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import packtool
from tests.making import write_records
from tests.stores import contents
from tests.test_docs import ROOT, blocks

SRUN = """#!/bin/bash
# Slurm's srun: the command once for each task of the job, until all of them end.
trap 'kill $(jobs -p); exit' TERM
for ((task = 0; task < SLURM_NTASKS; task++)); do "$@" & done
wait
"""


@pytest.mark.slow
def test_a_scheduler_and_workers_in_one_job(tmp_path: Path) -> None:
    for part in range(3):
        texts = [{"text": f"document {n} of part {part}"} for n in range(200)]
        write_records(tmp_path / "corpus" / f"{part}.jsonl", texts)
    [script] = [code for _, name, code in blocks(ROOT / "docs" / "cluster.md") if name == "job.sbatch"]
    (tmp_path / "job.sbatch").write_text(script)
    (tmp_path / "bin").mkdir()
    python = f'#!/bin/sh\nexec "{sys.executable}" -m'
    for name, text in (("srun", SRUN), ("packtool", f'{python} packtool "$@"\n'), ("dask", f'{python} dask "$@"\n')):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    job = {"SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "7", "SLURM_NTASKS": "2"}
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **job, "PATH": path, "PYTHONPATH": str(ROOT)}
    job_output = tmp_path / "job.out"
    with job_output.open("wb") as out:
        run = subprocess.Popen(
            ["bash", "job.sbatch"], cwd=tmp_path, env=environment, stdout=out, stderr=out, start_new_session=True
        )
        try:
            assert run.wait(120) == 0, job_output.read_text()
        finally:  # as Slurm ends what a job leaves behind
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
    packtool.tokenize(tmp_path / "corpus", tmp_path / "tokens-here", workers=1)
    packtool.pack(tmp_path / "tokens-here", tmp_path / "packed-here", strategy="bfd", sequence_length=2048)
    for name in ("tokens", "packed"):
        assert contents(tmp_path / name) == contents(tmp_path / f"{name}-here")
