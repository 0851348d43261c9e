"""Tasks on a cluster give what they give here, whatever happens to workers and scheduler."""

import errno
import os
import pickle
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import distributed
import msgspec
import pytest

import packtool
from packtool.commands import count_rows
from packtool.engines import Cluster, RunOptions, cluster
from packtool.engines.cluster import on_worker
from packtool.engines.sending import load, sent
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.support.version import build
from tests.engines.test_processes import fail_from_three, square
from tests.making import Make, write_records
from tests.shell import Shell, python
from tests.stores import contents
from tests.test_docs import ROOT, blocks

PACKED: dict[str, Any] = {"strategy": "bfd", "sequence_length": 512, "shard_tokens": 1 << 21}
BY_TASKS = "unfinished/scratch/partitions/*/*.atoms"
"""What tasks of the first pass have finished."""
FAULTS = (
    *("none", "a worker dies", "a worker is cut off"),
    *("the scheduler dies", "the scheduler is started again", "the command dies"),
)
PATIENT = 60
"""Seconds after which something hangs."""
SCHEDULER = ("distributed.cli.dask_scheduler", "--no-dashboard", "--host")
WORKER = (
    *("distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard", "--no-nanny"),
    *("--death-timeout", "30"),
)
UNSHARE = ("unshare", "--map-root-user", "--mount", "sh", "-c")
"""Runs a shell command with file systems of its own."""
Process = subprocess.Popen[bytes]
COPIES = tuple(f"copy-{number}" for number in range(5))


def called(function: Any, task: Any = 7) -> Any:
    """Call a function as a worker does."""
    return on_worker(pickle.dumps(function), build(), pickle.dumps(task))


def test_a_task_brings_its_result_and_what_it_reported() -> None:
    assert called(square) == (49, 7)


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "build", lambda: "0.0.1 of source 123")
    with pytest.raises(DataError, match=r"has packtool 0\.0\.1 of source 123, but the command is packtool"):
        on_worker(pickle.dumps(square), build(), pickle.dumps(7))


def test_two_commits_of_one_version_are_told_apart(tmp_path: Path) -> None:
    package = Path(packtool.__file__).parent
    shutil.copytree(package, tmp_path / "packtool", ignore=shutil.ignore_patterns("__pycache__"))

    def copied() -> str:
        return python("from packtool.support.version import build; print(build())", cwd=tmp_path).strip()

    assert copied() == build()
    with (tmp_path / "packtool" / "engines" / "sending.py").open("a") as source:
        source.write("# changed\n")
    assert copied() != build()
    with pytest.raises(DataError, match="but the command is packtool 0") as caught:
        on_worker(pickle.dumps(square), copied(), pickle.dumps(7))
    assert caught.value.code == "worker-differs"


def test_files_that_a_worker_does_not_see(tmp_path: Path) -> None:
    with sent(square, tmp_path) as function:
        assert called(function) == (49, 7)
    seen = (
        rf"{tmp_path}/function.*\.pickle: the worker on .* doesn't see it\. Put inputs and output on a file system that"
    )
    load.cache_clear()
    with pytest.raises(DataError, match=seen) as caught:
        called(function)
    assert caught.value.code == "not-shared"


def fail(error: Exception, worker: Any) -> None:
    raise error


HERE = f"the worker on {os.uname().nodename}"
OF_THIS_WORKER: list[tuple[Exception, str, str]] = [
    (OSError(errno.EFBIG, "File too large", "/a"), "file-too-large", rf"/a: {HERE}: larger than the file system lets"),
    (OSError(errno.ENOSPC, "No space left", "/a"), "disk-full", f"/a: {HERE}: no space left on the device"),
    (MemoryError(), "out-of-memory", f"{HERE}: not enough memory"),
    (ImportError("no libarrow"), "worker-broken", rf"{HERE} can't import what it needs \(no libarrow\)\. Install"),
    (UsageError("missing-extra", "no Jinja", remedy="install it"), "missing-extra", f"{HERE}: no Jinja. Install it"),
    (DataError("invalid-json", "not JSON", remedy="look", where="a:5"), "invalid-json", r"^a:5: not JSON\. Look"),
]


@pytest.mark.parametrize(("error", "code", "said"), OF_THIS_WORKER, ids=repr)
def test_what_is_wrong_with_a_worker_names_it(error: Exception, code: str, said: str) -> None:
    with pytest.raises(PacktoolError, match=said) as caught:
        called(fail, error)
    assert caught.value.code == code


def test_a_defect_names_the_worker_in_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        called(fail, ZeroDivisionError())
    assert caught.value.__notes__ == [f"on {HERE}"]


def test_nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT", "1s")
    nobody = f"tcp://127.0.0.1:{_free_port()}"
    with pytest.raises(PacktoolError, match=rf"{nobody}: no scheduler answers there") as caught:
        list(Cluster(nobody, 1, "x").run(square, [1], RunOptions(work=tmp_path)))
    assert caught.value.code == "no-cluster"


def test_dask_is_loaded_only_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"text": "a"}\n')
    program = (
        "import sys, packtool; packtool.tokenize('corpus.jsonl', 'tokens', quiet=True);"
        "print({name.partition('.')[0] for name in sys.modules} & {'dask', 'distributed'})"
    )
    assert python(program, cwd=tmp_path) == "set()\n"


@pytest.mark.parametrize(
    "command",
    [
        *("tokenize store.jsonl -o out", "pack store -o out --strategy concat -L 8", "shuffle packed -o out"),
        *("stats packed", "run run.toml -o out"),
    ],
)
def test_without_dask_nothing_is_begun(
    here: Path, make: Make, monkeypatch: pytest.MonkeyPatch, shell: Shell, command: str
) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    make([{"text": "a"}], at=here, packed={"strategy": "concat", "sequence_length": 8, "remainder": "pad"})
    Path("run.toml").write_text('[tokenize]\ninput = "store.jsonl"\n')
    before = sorted(path.name for path in here.iterdir())
    said = shell.refused(*command.split(), "--scheduler", "local", status=2)
    assert re.search(r"error\[missing-extra\]: --scheduler: Dask is not installed\. Install it: .*distributed", said)
    assert sorted(path.name for path in here.iterdir()) == before


@pytest.mark.slow
def test_a_client_serves_until_the_engine_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = _opened(monkeypatch)
    with Cluster("local", 1, "x", at_end=tmp_path.rmdir) as engine, ThreadPoolExecutor(2) as pool:
        for found in [
            pool.submit(lambda: dict(engine.run(square, [2, 3], RunOptions(work=tmp_path)))) for _ in range(2)
        ]:
            assert found.result() == {0: 4, 1: 9}
    assert opened == [1]
    assert not tmp_path.exists(), "called on the worker"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten blocks of text, `expected`, their store, and copies of it."""
    place = tmp_path_factory.mktemp("cluster")
    chance = random.Random(0)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(5000)]
    for number in range(10):
        texts = (" ".join(chance.choices(words, k=500)) for _ in range(4500))
        write_records(place / f"part-{number}.jsonl", [{"text": text} for text in texts])
    packtool.tokenize(sorted(place.glob("*.jsonl")), place / "expected")
    packtool.pack(place / "expected", place / "packed", **PACKED)
    packtool.shuffle(place / "packed", place / "shuffled", epoch=1)
    for copy in COPIES:
        shutil.copytree(place / "expected", place / copy)
    packtool.pack([place / "expected", *(place / copy for copy in COPIES)], place / "large", **PACKED)
    return place


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_cluster_of_its_own(corpus: Path, tmp_path: Path, workers: int) -> None:
    local: dict[str, Any] = {"scheduler": "local", "workers": workers}
    packtool.tokenize(sorted(corpus.glob("*.jsonl")), tmp_path / "tokens", **local)
    assert contents(tmp_path / "tokens") == contents(corpus / "expected")
    packtool.pack(corpus / "expected", tmp_path / "packed", **PACKED, **local)
    assert contents(tmp_path / "packed") == contents(corpus / "packed")
    packtool.shuffle(corpus / "packed", tmp_path / "shuffled", epoch=1, **local)
    assert contents(tmp_path / "shuffled") == contents(corpus / "shuffled")
    packtool.pack(corpus / "expected", tmp_path / "index", **PACKED, index_only=True, **local)
    local["store"] = corpus / "expected"  # elsewhere than beside the index
    packtool.materialize(tmp_path / "index", tmp_path / "materialized", **local)
    assert contents(tmp_path / "materialized") == contents(corpus / "packed")
    packtool.shuffle(tmp_path / "index", tmp_path / "index-shuffled", epoch=1, index_only=True, **local)
    packtool.materialize(tmp_path / "index-shuffled", tmp_path / "written", store=corpus / "expected")
    assert contents(tmp_path / "written") == contents(corpus / "shuffled")


@pytest.mark.slow
def test_one_cluster_for_a_run(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of three lengths and the checks of their input, too; then `stats` on text."""
    opened = _opened(monkeypatch)
    (tmp_path / "all.toml").write_text(
        f'[tokenize]\ninput = "{corpus}/part-0.jsonl"\n'
        '[pack]\nstrategy = "length-buckets"\nbuckets = "128,256,512"\nsegments = false\n'
        "[shuffle]\nepoch = 1\n"
    )
    packtool.run(tmp_path / "all.toml", output=tmp_path / "expected")
    packtool.run(tmp_path / "all.toml", output=tmp_path / "found", scheduler="local", workers=2)
    assert opened == [2]
    for name in ("tokens", "packed", "shuffled"):
        assert contents(tmp_path / "found" / name) == contents(tmp_path / "expected" / name)
    text = corpus / "part-0.jsonl"
    assert packtool.stats(text, compare="bfd", sequence_length=512, scheduler="local", workers=2).lengths == (
        packtool.stats(text, compare="bfd", sequence_length=512).lengths
    )


@pytest.mark.slow
def test_rows_are_counted_on_a_cluster(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_rows, "STEPS", 1)
    for options in ({}, {"batch_size": 7}):
        found = packtool.stats(corpus / "packed", **options, scheduler="local", workers=2)
        assert found == packtool.stats(corpus / "packed", **options)


@pytest.mark.slow
def test_strategies_are_compared_on_a_cluster(corpus: Path) -> None:
    expected = packtool.stats(corpus / "expected", compare="all", sequence_length=512)
    found = packtool.stats(corpus / "expected", compare="all", sequence_length=512, scheduler="local", workers=2)

    assert len(found.comparison.entries) > 8
    untimed = {"timings": expected.comparison.timings}
    assert msgspec.structs.replace(found.comparison, **untimed) == expected.comparison


@pytest.mark.slow
def test_the_first_error_in_order(tmp_path: Path) -> None:
    with Cluster("local", 2, "x") as engine, pytest.raises(DataError, match="task 3"):
        list(engine.run(fail_from_three, range(8), RunOptions(work=tmp_path)))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("what", ["tokenize", "pack", "pack in two passes"])
def test_bytes_are_the_same_after_every_fault(corpus: Path, tmp_path: Path, what: str, fault: str) -> None:
    command = [sys.executable, "-m", "packtool", what.split(maxsplit=1)[0], "-o", tmp_path / "out"]
    if what == "tokenize":
        command, expected = [*command, *sorted(corpus.glob("*.jsonl"))], "expected"
        finished = "unfinished/pieces/block/*.json"
    else:
        options = ("--strategy", "bfd", "-L", "512", "--shard-tokens", str(1 << 21))
        command, expected, finished = [*command, corpus / "expected", *options], "packed", "tokens-*.npy"
    if what == "pack in two passes":
        copies = [corpus / copy for copy in COPIES]
        command, expected, finished = [*command, *copies, "--memory", "64MiB"], "large", BY_TASKS
    with _cluster(tmp_path) as (address, scheduler, workers, start):
        run = subprocess.Popen(
            [*map(str, command), "--scheduler", address], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        _wait_until(lambda: len(list((tmp_path / "out").glob(finished))) >= 2, run)
        match fault:
            case "a worker dies":
                workers[0].kill()
            case "a worker is cut off":
                workers[0].send_signal(signal.SIGSTOP)
            case "the scheduler dies":
                scheduler.kill()
            case "the scheduler is started again":
                scheduler.kill()
                scheduler.wait()
                start(*SCHEDULER, address)
            case "the command dies":
                run.kill()
        _, errors = run.communicate(timeout=PATIENT)
    if fault.startswith("the scheduler"):
        assert run.returncode == 1, errors
        assert "error[cluster-lost]" in errors
        assert "--resume" in errors
        assert "Traceback" not in errors
    if fault.startswith(("the scheduler", "the command")):
        subprocess.run([*map(str, command), "--resume", "-q"], check=True)
    else:
        assert run.returncode == 0, errors
    assert contents(tmp_path / "out") == contents(corpus / expected)


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run([*UNSHARE, "true"], check=False, capture_output=True).returncode,
    reason="hides files from workers by file systems of their own",
)
@pytest.mark.parametrize(
    "command",
    [
        *("tokenize part-0.jsonl", "pack expected --strategy bfd -L 512", "shuffle packed --epoch 1"),
        *("pack expected --strategy bfd -L 512 --memory 4MiB", "materialize index", "stats packed"),
        "stats part-0.jsonl",
    ],
)
def test_a_worker_that_does_not_see_the_inputs(corpus: Path, tmp_path: Path, command: str) -> None:
    if command == "materialize index":
        packtool.pack(corpus / "expected", corpus / "index", **PACKED, index_only=True)
    output = [] if command.startswith("stats") else ["-o", str(tmp_path / "out")]
    with _cluster(tmp_path, hidden=corpus) as (address, *_):
        run = subprocess.run(
            [sys.executable, "-m", "packtool", *command.split(), *output, "--scheduler", address],
            cwd=corpus,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            timeout=PATIENT,
            check=False,
        )
    assert run.returncode == 1
    seen = (
        rf"packtool: error\[not-shared\]: {corpus}/\S+: the worker on \S+ doesn't see it\. Put inputs and output on a"
    )
    assert re.search(seen, run.stderr), run.stderr
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "before", "said"),
    [
        ("", "ulimit -f 100", r"worker on \S+: larger than ulimit -f allows, 102 kB"),
        ("tokenizers", "", r"worker on \S+ can't import what it needs \(it is broken\)"),
    ],
)
def test_a_broken_worker_is_named(broken: str, before: str, said: str, tmp_path: Path) -> None:
    file = write_records(tmp_path / "a.jsonl", [{"text": f"some words {number}"} for number in range(20_000)])
    if broken:
        (tmp_path / f"{broken}.py").write_text("raise ImportError('it is broken')")
    command = f'export PYTHONPATH="{tmp_path}"; {before or "true"}; exec "$@"'
    output = ["-o", str(tmp_path / "out"), "--encoder", "tokenizers"]
    with _cluster(tmp_path, workers=0) as (address, _, _, start):
        start(*WORKER, address, before=["bash", "-c", command, "bash"])
        run = subprocess.run(
            [sys.executable, "-m", "packtool", "tokenize", file, *output, "--scheduler", address],
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENT,
            check=False,
        )
    assert run.returncode == 1
    assert re.search(said, run.stderr), run.stderr


@pytest.mark.slow
def test_without_workers_it_waits_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WARN_SECONDS", 1.5)
    said: list[str] = []
    with (
        _cluster(tmp_path, workers=0) as (address, _, _, start),
        Cluster(address, 1, "x") as engine,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("always")

        def hear(message: Warning | str, *_: object) -> None:
            said.append(str(message))
            if len(said) == 3:
                start(*WORKER, address)

        warnings.showwarning = hear  # type: ignore[assignment]
        assert sorted(engine.run(square, range(20), RunOptions(work=tmp_path))) == [(n, n * n) for n in range(20)]
    assert said[0] == f"{address}: no workers yet. Start some: dask worker {address}."
    for again in said[1:3]:
        assert re.fullmatch(
            rf"{address}: no workers yet, after [1-9]\d* s\. Start some: dask worker {address}\.", again
        )


@pytest.mark.slow
def test_without_workers_it_ends_on_an_interrupt(corpus: Path, tmp_path: Path) -> None:
    with _cluster(tmp_path, workers=0) as (address, *_):
        command = ["tokenize", corpus / "part-0.jsonl", "-o", tmp_path / "out", "--scheduler", address]
        run = subprocess.Popen([sys.executable, "-m", "packtool", *command], stderr=subprocess.PIPE, text=True)
        assert f"warning[no-workers]: {address}: no workers yet. Start some" in run.stderr.readline()
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=PATIENT)
    assert (run.returncode, errors) == (130, "packtool: interrupted; with --resume, what is finished is kept\n")


@pytest.mark.slow
def test_workers_that_have_all_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOST_SECONDS", 2.0)
    with _cluster(tmp_path) as (address, _, workers, _start), Cluster(address, 1, "x") as engine:
        results = engine.run(square, range(1000), RunOptions(work=tmp_path))
        assert next(results)
        for worker in workers:
            worker.kill()
        with pytest.raises(PacktoolError, match=r"all its workers have been gone for .* minutes") as caught:
            list(results)
    assert (caught.value.code, caught.value.where) == ("cluster-lost", address)


@pytest.mark.slow
def test_no_process_holds_more_for_a_larger_corpus(corpus: Path, tmp_path: Path) -> None:
    """Four times as many documents and tokens; memory that maps files is the system's, and not counted."""
    peaks = []
    for times in (2, 8):
        place = tmp_path / str(times)
        place.mkdir()
        with _cluster(place) as (address, scheduler, workers, _):
            options = ("--strategy", "bfd", "-L", "512", "--shard-tokens", "2M", "--window-tokens", "20M")
            given = (*options, "--memory", "64MiB", "--workers", "2", "--scheduler", address, "-q")
            stores = [place / f"store-{number}" for number in range(times)]
            for store in stores:
                shutil.copytree(corpus / "expected", store, copy_function=os.link)
            run = subprocess.Popen(
                [sys.executable, "-m", "packtool", "pack", *map(str, stores), "-o", place / "out", *given]
            )
            seen: dict[str, int] = {}
            while run.poll() is None:
                for name, process in (("scheduler", scheduler), ("command", run), *((f"w{w.pid}", w) for w in workers)):
                    kind = name[0] if name[0] == "w" else name
                    seen[kind] = max(seen.get(kind, 0), _anonymous(process.pid))
                time.sleep(0.05)
            assert run.returncode == 0
        peaks.append(seen)
    small, large = peaks
    for kind in small:
        assert large[kind] < small[kind] + (24 << 20), peaks


SRUN = """#!/bin/bash
# Slurm's srun: the command once for each task of the job, until all of them end.
trap 'kill $(jobs -p); exit' TERM
for ((task = 0; task < SLURM_NTASKS; task++)); do "$@" & done
wait
"""


@pytest.mark.slow
def test_a_scheduler_and_workers_in_one_job(tmp_path: Path) -> None:
    """The job script of docs/cluster.md, with its scheduler and workers as processes: the bytes of one machine."""
    for part in range(3):
        texts = [{"text": f"document {n} of part {part}"} for n in range(200)]
        write_records(tmp_path / "corpus" / f"{part}.jsonl", texts)
    _write_blocks(tmp_path, "job.sbatch", "tls.sh")
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


@pytest.mark.slow
def test_with_the_certificate_of_the_page_and_not_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_blocks(tmp_path, "tls.sh")
    file = write_records(tmp_path / "a.jsonl", [{"text": "a"}])
    sourced = subprocess.run(["bash", "-c", ". ./tls.sh; env -0"], cwd=tmp_path, capture_output=True, check=True)
    for line in sourced.stdout.decode().split("\0"):
        name, _, value = line.partition("=")
        if name.startswith("DASK_"):
            monkeypatch.setenv(name, value)
    with _cluster(tmp_path, workers=1, protocol="tls") as (address, *_):
        command = [sys.executable, "-m", "packtool", "tokenize", file, "--scheduler", address, "-o"]
        done = subprocess.run(
            [*command, tmp_path / "out"], capture_output=True, text=True, timeout=PATIENT, check=False
        )
        assert done.returncode == 0, done.stderr
        others = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
        refused = subprocess.run(
            [*command, tmp_path / "no"], capture_output=True, text=True, timeout=PATIENT, check=False, env=others
        )
    assert refused.returncode == 1
    assert f"error[no-cluster]: {address}: no scheduler answers there" in refused.stderr


def _write_blocks(place: Path, *names: str) -> None:
    """Write files as docs/cluster.md has them."""
    for _, name, code in blocks(ROOT / "docs" / "cluster.md"):
        if name in names:
            (place / name).write_text(code)


def _anonymous(process: int) -> int:
    """Bytes of memory that map no file."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon")), 0)


@contextmanager
def _cluster(
    place: Path, workers: int = 2, hidden: Path | None = None, protocol: str = "tcp"
) -> Iterator[tuple[str, Process, list[Process], Callable[..., Process]]]:
    """A real scheduler and workers, processes of their own in another working directory; and what starts more.

    Args:
        place: for the working directory.
        workers: how many.
        hidden: a directory that they do not see: another file system is mounted there.
        protocol: tcp, or tls, of which the environment must know more.
    """
    address = f"{protocol}://127.0.0.1:{_free_port()}"
    variables = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5s"}
    python, elsewhere = [sys.executable, "-m"], place / "elsewhere"
    elsewhere.mkdir()

    started: list[Process] = []

    def start(*arguments: str, before: Sequence[str] = ()) -> Process:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([*before, *python, *arguments], env=variables, cwd=elsewhere, **quiet)
        started.append(process)
        return process

    blindfold = [] if hidden is None else [*UNSHARE, f'mount -t tmpfs none {hidden}; exec "$@"', "sh"]
    scheduler = start(*SCHEDULER, address)
    try:
        yield address, scheduler, [start(*WORKER, address, before=blindfold) for _ in range(workers)], start
    finally:
        for process in started:
            process.kill()
            process.wait()


def _wait_until(true: Callable[[], bool], run: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENT
    while not true():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Local clusters that are started from now on, by how many workers they have."""
    opened: list[int] = []
    begin = distributed.LocalCluster

    def count(**given: Any) -> Any:
        opened.append(given["n_workers"])
        return begin(**given)

    monkeypatch.setattr(distributed, "LocalCluster", count)
    return opened
