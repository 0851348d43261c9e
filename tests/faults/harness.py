"""Commands under faults: what is run, where it is to stop, and what must come out in the end."""

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import packtool
from packtool.formats import manifest as manifests
from tests.making import write_records
from tests.stores import contents, document_loss, write_store

HERE = Path(__file__).parent
ASSET = Path(packtool.__file__).parent / "assets" / "tokenizer.json"
SPARED = ("unlink", "rmdir", "link", "mkdir")
"""Calls that may fail in a run that ends well: removing what is left over; a link, for which renaming stands in;
making a directory that is there."""
LEFT = "unfinished/lock"
"""What is left behind where it can't be removed: empty, and nobody's."""
KILL, FULL, BROKEN = -1, errno.ENOSPC, errno.EIO
LENGTHS = [1, 2, 40, 64, 65, 128, 200, 31, 7, 7, 7, 513, 90, 3, 33, 64, 12, 12, 300] * 3


@dataclass(frozen=True)
class Outcome:
    """How a command ended: exit status (negative for a signal), standard error, calls that changed files.

    `failed` is the call that was made to fail, if it lived to tell.
    """

    status: int
    stderr: str
    calls: int
    failed: str


class Faults:
    """A server that runs command lines with faults.

    Args:
        process: of `tests.faults.server`.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(
        self, arguments: list[str], below: Path, *, at: int = -1, how: int = 0, after: float | None = None
    ) -> Outcome:
        """Run one command.

        Args:
            below: calls that change files below this directory are counted.
            at: the call at which the fault happens, from 0; -1 for none.
            how: `KILL` the process group; `FULL`, the disk is full from there on; `BROKEN`, one I/O error.
            after: seconds after which the process group is killed, wherever it is.
        """
        return self.race([arguments], below, at=at, how=how, after=after)[0]

    def race(
        self, commands: list[list[str]], below: Path, *, at: int = -1, how: int = 0, after: float | None = None
    ) -> list[Outcome]:
        """Run several commands at once."""
        fault = {"below": str(below), "at": at, "how": how, "stays": how == FULL, "after": after}
        tasks = [{"arguments": each, **fault} for each in commands]
        self._process.stdin.write(json.dumps(tasks) + "\n")
        self._process.stdin.flush()
        return [Outcome(*each) for each in json.loads(self._process.stdout.readline())]


@contextmanager
def in_memory() -> Iterator[Path]:
    """A directory in memory, where flushing costs nothing: what is tested is the order of calls, not the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as made:
        yield Path(made).resolve()


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory in memory with inputs, and room for outputs."""
    with in_memory() as place:
        make_inputs(place / "in")
        (place / "out").mkdir()
        yield place


@contextmanager
def faults(scratch: Path) -> Iterator[Faults]:
    """A server, until the end of the block."""
    shim = scratch / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(shim), str(HERE / "shim.c"), "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(shim), "FAULT_SHIM": str(shim), "NO_COLOR": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=HERE.parents[1],
    ) as process:
        yield Faults(process)
        process.stdin.close()


def make_inputs(place: Path) -> None:
    """A corpus, a store, a packed dataset and a configuration."""
    for number in range(2):
        texts = [f"document {number} {'again ' * (n % 9)}" for n in range(60)]
        write_records(place / "corpus" / f"{number}.jsonl", [*({"text": text} for text in texts), {"txet": 1}])
    ids = [{"input_ids": [n % 250] * (1 + n % 40), "name": f"n{n}", "lang": "de"} for n in range(120)]
    for file in ("ids.jsonl", "foreign/0.jsonl", "foreign/1.jsonl", "foreign/2.jsonl"):
        write_records(place / file, ids)
    store = write_store(place / "store", LENGTHS, per_shard=20, loss=document_loss)
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "shard_tokens": 1024}
    packtool.pack(store, place / "packed", **options)
    packtool.pack(store, place / "index", **options, index_only=True)
    packtool.pack(store, place / "stream", strategy="concat", sequence_length=64, shuffle=False)
    (place / "c.toml").write_text(
        '[[pack]]\nstrategy = "concat"\nsequence-length = 64\noutput = "one"\n'
        '[[pack]]\nstrategy = "decompose"\nsequence-length = 64\noutput = "two"\n'
        '[shuffle]\ninput = "one"\nepoch = 1\n'
    )


def commands(place: Path) -> dict[str, list[str]]:
    """The command lines that are disturbed, without their output."""
    plain = ["-q", "--workers", "1"]
    small = [*plain, "--memory", "12KiB"]
    pack = ["pack", str(place / "store"), "--sequence-length", "64", "--shard-tokens", "1024"]
    return {
        "tokenize": [  # by the reference: libraries that start threads must not be loaded before a fork
            *["tokenize", str(place / "corpus"), *plain],
            *["--encoder", "tokenizers", "--on-error", "quarantine"],
        ],
        "tokenize, ids": [
            *["tokenize", str(place / "ids.jsonl"), *plain],
            *["--ids-field", "input_ids", "--id-field", "name", "--columns", "lang"],
        ],
        "pack": [*pack, "--strategy", "bfd", *plain],
        "pack, mixture": [*pack, "--strategy", "bfd", "--mix", "store=2.4x", "--sample", "60%", *plain],
        "pack, two passes": [*pack, "--strategy", "concat", *small],
        "pack, planned on disk": [
            *[*pack, "--strategy", "seamless", "--window-tokens", "900", *plain, "--memory", "3KiB"],
        ],
        "pack, index only": [*pack, "--strategy", "bfd", "--index-only", *plain],
        "materialize": ["materialize", str(place / "index"), *plain],
        "shuffle": ["shuffle", str(place / "packed"), "--epoch", "3", *plain],
        "shuffle, two passes": ["shuffle", str(place / "stream"), "--epoch", "3", *small],
        "import": ["import", str(place / "foreign"), "--format", "jsonl", "--tokenizer", str(ASSET), "-q"],
        "export": ["export", str(place / "packed"), "--format", "parquet", "-q"],
        "run": ["run", str(place / "c.toml"), "--input", str(place / "store"), *plain],
    }


def require_whole(path: Path) -> None:
    """Whatever looks whole is whole."""
    for manifest in path.rglob(manifests.MANIFEST):
        indexed = getattr(manifests.read(manifest.parent), "index_only", False)
        stores = [each / "in" / "store" for each in path.parents if indexed and (each / "in" / "store").exists()]
        found = packtool.verify(manifest.parent, store=stores).problems
        assert found == [], found


def disturb(
    server: Faults,
    command: list[str],
    out: Path,
    whole: dict[str, bytes],
    *,
    at: int = -1,
    how: int = 0,
    after: float | None = None,
) -> Outcome:
    """One fault, then the way to the end: the same bytes as undisturbed.

    Returns:
        How the disturbed run ended.
    """
    shutil.rmtree(out, ignore_errors=True)
    disturbed = server.run([*command, "-o", str(out)], out.parent, at=at, how=how, after=after)
    assert "Traceback" not in disturbed.stderr, disturbed.stderr
    assert disturbed.status in {KILL: (-9,), 0: (-9, 0)}.get(how, (0, 1)), disturbed
    if disturbed.status == 0 and how == BROKEN:
        assert disturbed.failed in SPARED, disturbed
        assert {name: data for name, data in contents(out).items() if not name.endswith(LEFT)} == whole, disturbed
    if disturbed.status == 1:
        assert "packtool: error[" in disturbed.stderr, disturbed.stderr
    require_whole(out)
    resume = [] if command[0] == "run" else ["--overwrite" if at % 5 == 4 else "--resume"]
    resumed = server.run([*command, "-o", str(out), *resume], out.parent)
    assert resumed.status == 0, (disturbed, resumed)
    assert contents(out) == whole, (disturbed, sorted(contents(out)))
    return disturbed


def undisturbed(server: Faults, command: list[str], out: Path) -> tuple[dict[str, bytes], int]:
    """What a command writes, and how many calls it takes."""
    shutil.rmtree(out, ignore_errors=True)
    outcome = server.run([*command, "-o", str(out)], out.parent)
    assert outcome.status == 0, outcome
    assert outcome.calls > 0
    return contents(out), outcome.calls
