"""Tasks with a share of the work each, and merge: the bytes of one run, in any order, killed and done again."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.cli import run
from packtool.commands.info import info
from packtool.corpus import blocks
from packtool.encoding.encoders import EncoderMismatchError
from packtool.errors import PacktoolError
from packtool.storage import lock, publish
from packtool.tokenizing import job as jobs
from tests.stores import contents, write_store
from tests.test_golden import RECORDED, make

LENGTHS = np.random.default_rng(3).integers(1, 90, 120).tolist()
PACK: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "shard_tokens": 512}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store, and a corpus of several blocks; two of its files are divided."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(blocks, "SMALLEST", 2000)
    write_store(Path("store"), LENGTHS, per_shard=30)
    Path("corpus").mkdir()
    for number, lines in enumerate((300, 20, 40, 500)):
        texts = (json.dumps({"text": f"document {n} of file {number}"}) + "\n" for n in range(lines))
        Path("corpus", f"{number}.jsonl").write_text("".join(texts))
    return tmp_path


def refused(call: Any, *args: Any, **options: Any) -> PacktoolError:
    with pytest.raises(PacktoolError) as caught:
        call(*args, **options)
    return caught.value


def test_every_golden_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = []

    def in_tasks(command: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if options.get("order_only"):
                return command(*args, **options)
            for number in (3, 1, 2, 1):
                parts.append(command(*args, **options, task=f"{number}/3").part)
            return packtool.merge(args[1])

        return call

    for name in ("tokenize", "pack", "shuffle"):
        monkeypatch.setattr(packtool, name, in_tasks(getattr(packtool, name)))
    recorded, found = json.loads(RECORDED.read_text(encoding="utf-8")), make(tmp_path)
    assert {name: digest for name, digest in found.items() if digest != recorded[name]} == {}
    assert max(part.of for part in parts) > 10


def test_a_corpus_of_many_blocks(place: Path) -> None:
    packtool.tokenize("corpus", "expected", workers=1)
    parts = [packtool.tokenize("corpus", "out", task=f"{number}/4", workers=1).part for number in (2, 4, 1, 3)]
    assert {part.of for part in parts} == {sum(part.pieces for part in parts)}
    assert min(part.pieces for part in parts) >= 2
    assert str(parts[0]) == f"task 2/4, {parts[0].pieces} of {parts[0].of} pieces"
    result = packtool.merge("out")
    assert contents(Path("out")) == contents(Path("expected"))
    assert result.counts["documents"] == 860
    assert not Path("out/unfinished").exists()
    assert packtool.merge("out").kept, "merging again does no harm"
    assert packtool.tokenize("corpus", "out", task="1/4").kept, "nor does a task that comes late"


def test_what_is_missing_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packtool.tokenize("corpus", "out", task="2/4", workers=1)
    assert run(["merge", "out"]) == 1
    message = capsys.readouterr().err
    assert "error[task-missing]: out: 13 of 17 pieces are missing or not as they were written. " in message
    assert message.endswith("Run tasks 1/4, 3/4, 4/4 again (--array=1,3-4), then merge.\n")
    for number in (1, 3, 4):
        packtool.tokenize("corpus", "out", task=f"{number}/4", workers=1)
    next(Path("out/unfinished/scratch").glob("block-00005/tokens-*.npy")).write_bytes(b"damaged")
    error = refused(packtool.merge, "out")
    assert "1 of 17 pieces" in error.what
    assert "run task 2/4 again (--array=2)" in error.remedy
    packtool.tokenize("corpus", "out", task="2/4", workers=1)
    packtool.merge("out")
    packtool.tokenize("corpus", "expected", workers=1)
    assert contents(Path("out")) == contents(Path("expected"))


def test_rows_in_tasks(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packtool.pack("store", "expected", **PACK)
    assert (
        run(
            ["pack", "store", "-o", "out", *["--strategy", "bfd", "-L", "64", "--shard-tokens", "512", "--task", "2/3"]]
        )
        == 0
    )
    assert "task 2/3, 6 of 19 pieces. When all tasks are done: packtool merge out" in capsys.readouterr().out
    assert info(Path("out")).next == ["packtool merge out"]
    for number in (1, 3):
        packtool.pack("store", "out", **PACK, task=f"{number}/3")
    shard = next(Path("out/unfinished/dataset").glob("tokens-00004.npy"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"\xff")
    assert refused(packtool.merge, "out").code == "task-missing"
    for number in (1, 2, 3):
        packtool.pack("store", "out", **PACK, task=f"{number}/3")
    assert packtool.merge("out").report == packtool.pack("store", "expected", **PACK, resume=True).report
    assert contents(Path("out")) == contents(Path("expected"))


def test_merge_from_another_directory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Path(packtool.__file__).parent / "assets" / "tokenizer.json"
    packtool.tokenize(Path("corpus"), "out", task="1/1", tokenizer=os.path.relpath(tokenizer))
    monkeypatch.chdir("/")
    packtool.merge(place / "out")
    monkeypatch.chdir(place)
    Path("left-out").write_text("0.jsonl:3\n")
    packtool.pack(["out"], "packed", **PACK, task="1/1", mix=["out=0.5"], exclude="left-out")
    monkeypatch.chdir("/")
    packtool.merge(place / "packed")
    assert not packtool.verify(place / "packed").problems


def test_other_options_inputs_and_numbers_are_refused(place: Path) -> None:
    packtool.pack("store", "out", **PACK, task="1/3")
    other = refused(packtool.pack, "store", "out", **{**PACK, "sequence_length": 32}, task="2/3")
    assert str(other) == (
        "out: begun with other options or inputs. Give the same ones, or remove the output to start again."
    )
    write_store(Path("store2"), LENGTHS)
    assert refused(packtool.pack, "store2", "out", **PACK, task="2/3").code == "resume-differs"
    assert str(refused(packtool.pack, "store", "out", **PACK, task="2/4")) == "out: begun as 3 tasks. Give --task I/3."
    assert refused(packtool.pack, "store", "out", **PACK).code == "output-not-empty"
    shutil.rmtree("store")
    write_store(Path("store"), LENGTHS[:-1], per_shard=30)
    assert refused(packtool.merge, "out").code == "resume-differs"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "0/3"}, "--task: '0/3' is not a task. Give one such as 3/8, the third of eight tasks; they are"),
        ({"task": "4/3"}, "'4/3' is not a task"),
        ({"task": "x"}, "'x' is not a task"),
        ({"task": "1/3", "scheduler": "local"}, "--task: can't be combined with --scheduler"),
        ({"task": "1/3", "overwrite": True}, "--overwrite: can't be combined with --task, since every task would"),
    ],
)
def test_options_that_make_no_sense(place: Path, options: dict[str, Any], message: str) -> None:
    assert message in str(refused(packtool.pack, "store", "out", **PACK, **options))
    assert not Path("out").exists()


def test_what_cannot_be_shared_out(place: Path) -> None:
    packtool.pack("store", "packed", **PACK)
    error = refused(packtool.shuffle, "packed", "out", order_only=True, task="1/2")
    assert str(error).startswith("--task: has no effect on --order-only")
    assert "can't be shared out" in str(refused(packtool.tokenize, "-", "out", task="1/2"))


def test_what_was_not_begun_by_tasks(place: Path) -> None:
    assert refused(packtool.merge, "out").code == "missing-input"
    assert str(refused(packtool.merge, "corpus")) == "corpus: not begun by tasks. Give it the output of tasks."
    packtool.pack("store", "out", **PACK)
    Path("out/manifest.json").unlink()
    begun = {"command": "pack", "key": json.loads(Path("out/run.json").read_bytes())["key"]}
    shutil.rmtree("out")
    Path("out/unfinished").mkdir(parents=True)
    Path("out/unfinished/state.json").write_text(json.dumps(begun))
    assert "begun by packtool pack without --task. Go on with --resume" in str(refused(packtool.merge, "out"))
    error = refused(packtool.pack, "store", "out", **PACK, task="1/3")
    assert str(error) == "out: begun by a run without --task. Give --resume instead of --task to go on with it."


def test_one_run_may_take_over(place: Path) -> None:
    packtool.pack("store", "expected", **PACK)
    packtool.pack("store", "out", **PACK, task="2/3")
    packtool.pack("store", "out", **PACK, resume=True)
    assert contents(Path("out")) == contents(Path("expected"))


def test_locks(place: Path) -> None:
    """Tasks work beside each other; the same task twice, a run or a merge beside them do not."""
    packtool.pack("store", "out", **PACK, task="1/3")
    held = lock.take(Path("out/unfinished"), "pack --task 1/3", 1)
    packtool.pack("store", "out", **PACK, task="2/3")
    for call in (
        lambda: packtool.pack("store", "out", **PACK, task="1/3"),
        lambda: packtool.pack("store", "out", **PACK, resume=True),
        lambda: packtool.merge("out"),
    ):
        error = refused(call)
        assert error.code == "output-in-use"
        assert error.what.startswith("packtool pack --task 1/3 (process ")
    held.release()
    alone = lock.take(Path("out/unfinished"), "merge")
    assert "packtool merge (process" in refused(packtool.pack, "store", "out", **PACK, task="3/3").what
    alone.release()
    packtool.pack("store", "out", **PACK, task="3/3")
    packtool.merge("out")


def _task(number: int, count: int) -> None:
    packtool.pack("store", "out", **PACK, task=f"{number}/{count}")


def test_all_at_once(place: Path) -> None:
    """Four processes begin the same output at the same moment."""
    packtool.pack("store", "expected", **PACK)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_task, args=(number, 4)) for number in range(1, 5)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    packtool.merge("out")
    assert contents(Path("out")) == contents(Path("expected"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_killed_at_any_moment(place: Path, seed: int) -> None:
    packtool.pack("store", "expected", **PACK)
    command = [sys.executable, "-m", "packtool", "pack", "store", "-o", "out", "-q", "--strategy", "bfd", "-L", "64"]
    command += ["--shard-tokens", "512"]
    chance = np.random.default_rng(seed)
    for number in chance.permutation(np.repeat([1, 2, 3], 3)).tolist():
        process = subprocess.Popen([*command, "--task", f"{number}/3"], start_new_session=True)
        time.sleep(float(chance.uniform(0.1, 0.6)))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if chance.random() < 0.3:
            try:
                packtool.merge("out")
            except PacktoolError as error:
                assert error.code in ("task-missing", "missing-input", "nothing-to-merge")  # noqa: PT017 - or none
            else:
                break  # all of them had done their share
        assert not Path("out/manifest.json").exists()
    for number in (1, 2, 3):
        subprocess.run([*command, "--task", f"{number}/3"], check=True)
    packtool.merge("out")
    assert contents(Path("out")) == contents(Path("expected"))


def test_a_merge_that_was_killed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packtool.pack("store", "expected", **PACK)
    packtool.pack("store", "out", **PACK, task="1/1")

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("packtool.storage.output.publish", killed)
        packtool.merge("out")
    assert publish.is_staged(Path("out"))
    error = refused(packtool.pack, "store", "out", **PACK, task="1/1")
    assert str(error) == "out: all tasks are done, and a merge was interrupted. Run packtool merge out."
    packtool.merge("out")
    assert contents(Path("out")) == contents(Path("expected"))
    Path("out/unfinished").mkdir()
    Path("out/unfinished/lock").touch()  # killed when all was done but removing it
    packtool.merge("out")
    assert contents(Path("out")) == contents(Path("expected"))


def test_damaged_input_spoils_all_tasks(place: Path) -> None:
    sound = Path("store/tokens-00001.npy").read_bytes()
    Path("store/tokens-00001.npy").write_bytes(sound[:-2] + b"\xfe\xff")
    codes = []
    for number in (1, 2, 3):
        try:
            packtool.pack("store", "out", **PACK, task=f"{number}/3")
            codes.append("done")
        except PacktoolError as error:
            codes.append(error.code)
    assert "wrong-checksum" in codes
    Path("store/tokens-00001.npy").write_bytes(sound)
    for call in (lambda: packtool.merge("out"), lambda: packtool.pack("store", "out", **PACK, task="1/3")):
        error = refused(call)
        assert error.code == "input-was-damaged"
        assert "store/tokens-00001.npy: its checksum differs" in error.what
    shutil.rmtree("out")
    packtool.pack("store", "out", **PACK, task="1/1")
    packtool.merge("out")


def test_one_task_gives_the_fast_encoder_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then all blocks are encoded by the other: those that were done before are done again."""
    packtool.tokenize("corpus", "out", task="1/2", workers=1)
    before = jobs.Job.run

    def fail(self: jobs.Job) -> None:
        if self.context.recipe.encoder == "gigatoken":
            raise EncoderMismatchError("encoder-mismatch", "one text differs", remedy="", where="a.jsonl")
        before(self)

    with monkeypatch.context() as patch:
        patch.setattr(jobs.Job, "run", fail)
        with pytest.warns(UserWarning, match="one text differs"):
            packtool.tokenize("corpus", "out", task="2/2", workers=1)
    assert "run task 1/2 again" in refused(packtool.merge, "out").remedy
    packtool.tokenize("corpus", "out", task="1/2", workers=1)
    assert packtool.merge("out").run["encoder"] == "tokenizers"


def test_the_most_bad_records_of_all_tasks(place: Path) -> None:
    for number in range(4):
        with Path("corpus", f"{number}.jsonl").open("a") as file:
            file.write("no record\n" * 2)
    for number in (1, 2, 3):
        packtool.tokenize("corpus", "out", on_error="skip", max_errors=7, task=f"{number}/3", workers=1)
    error = refused(packtool.merge, "out")
    assert (error.code, error.where) == ("too-many-errors", str(place / "corpus" / "0.jsonl"))
    assert error.what == "more than 7 records can't be used; here 2 invalid-json"
