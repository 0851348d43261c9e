"""An output directory is refused, replaced or continued, never mixed up with anything else, and has one writer."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from packtool.errors import DataError, PacktoolError
from packtool.storage import lock, publish
from packtool.storage import manifest as manifests
from packtool.storage.files import write_array
from packtool.storage.manifest import StoreManifest, TokenizerInfo, TokenShard
from packtool.storage.output import Output, one_writer, prepare
from packtool.storage.state import key_of, state_of
from packtool.warnings import PacktoolWarning

MANIFEST = StoreManifest(
    options={},
    inputs=[],
    tokenizer=TokenizerInfo("00" * 32, 2, 1, "<eos>"),
    dtype="<u2",
    counts={"documents": 0, "tokens": 0},
    shards=[],
)


def finish(output: Output, documents: int = 1) -> None:
    """Stage and finish a store of one-token documents, one in each shard."""
    shards = []
    for number in range(documents):
        tokens = write_array(output.staged / f"tokens-{number:05d}.npy", np.array([1], "<u2"))
        offsets = write_array(output.staged / f"offsets-{number:05d}.npy", np.array([0, 1]))
        shards.append(TokenShard(tokens, offsets, number))
    counts = {"documents": documents, "tokens": documents}
    output.finish(msgspec.structs.replace(MANIFEST, shards=shards, counts=counts))


def names(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


STORE = ["manifest.json", "offsets-00000.npy", "run.json", "tokens-00000.npy"]


def code(path: Path, **options: object) -> str:
    with pytest.raises(PacktoolError) as caught:
        prepare(path, "tokenize", **{"key": "k", **options})  # type: ignore[arg-type]
    return caught.value.code


def test_a_new_output_is_created_and_finished(tmp_path: Path) -> None:
    output = prepare(tmp_path / "a" / "b", "tokenize", key="k")
    assert output.work.is_dir()
    assert not output.resumed
    assert not (output.path / manifests.MANIFEST).exists()
    output.finish(MANIFEST, {"workers": 2})
    assert sorted(p.name for p in output.path.iterdir()) == ["manifest.json", "run.json"]
    assert msgspec.json.decode((output.path / "run.json").read_bytes()) == {
        "command": "tokenize",
        "key": "k",
        "workers": 2,
    }
    assert manifests.read(output.path) == MANIFEST


def test_the_old_dataset_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    finish(prepare(tmp_path / "o", "tokenize", key="k"), documents=3)
    old = {name: (tmp_path / "o" / name).read_bytes() for name in names(tmp_path / "o")}
    assert code(tmp_path / "o") == "output-not-empty"
    assert code(tmp_path / "o", overwrite=True, resume=True) == "overwrite-and-resume"
    output = prepare(tmp_path / "o", "tokenize", key="other", overwrite=True)
    write_array(output.staged / "tokens-00000.npy", np.array([7], "<u2"))
    assert {name: (tmp_path / "o" / name).read_bytes() for name in old} == old
    assert manifests.read(tmp_path / "o")
    output.release()
    again = prepare(tmp_path / "o", "tokenize", key="other", resume=True)
    assert again.resumed
    assert not again.finished
    finish(again, documents=1)
    assert names(tmp_path / "o") == STORE


@pytest.mark.parametrize(
    "name",
    [
        "embeddings.npy",
        "tokens-00007.npy",
        "bucket-7/notes.txt",
        "bucket-00007/tokens-00000.npy",
        "unfinished/novel.txt",
        "unfinished/dataset/novel.txt",
        "thesis.tex",
    ],
)
def test_overwrite_never_removes_what_packtool_did_not_write(tmp_path: Path, name: str) -> None:
    out = tmp_path / "o"
    finish(prepare(out, "tokenize", key="k"))
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text("years of work")
    with pytest.raises(PacktoolError, match=f"holds {name}, which packtool did not write") as caught:
        prepare(out, "tokenize", key="other", overwrite=True)
    assert caught.value.code == "output-has-other-files"
    assert names(out) == sorted([*STORE, name])


def test_a_file_that_comes_later_stays_too(tmp_path: Path) -> None:
    out = tmp_path / "o"
    finish(prepare(out, "tokenize", key="k"))
    output = prepare(out, "tokenize", key="other", overwrite=True)
    (out / "tokens-00001.npy").write_text("years of work")
    with pytest.raises(PacktoolError, match="which packtool did not write"):
        finish(output, documents=2)
    assert (out / "tokens-00001.npy").read_text() == "years of work"
    assert manifests.read(out)
    output.release()
    (out / "tokens-00001.npy").unlink()
    again = prepare(out, "tokenize", key="other", resume=True)
    assert again.finished, "the rest was put in place"
    again.release()
    assert len(names(out)) == 6


def test_a_manifest_that_tells_nothing_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "tokens-00000.npy").write_text("whose?")
    with pytest.raises(PacktoolError, match="holds a manifest that does not tell which files are packtool's"):
        prepare(tmp_path, "tokenize", key="k", overwrite=True)
    assert names(tmp_path) == ["manifest.json", "tokens-00000.npy"]


def test_resume_goes_on_only_with_the_same_work(tmp_path: Path) -> None:
    out = tmp_path / "o"
    first = prepare(out, "tokenize", key="k", resume=True)
    assert not first.resumed
    (out / "unfinished" / "stdin").write_text("done")
    first.release()
    assert code(out, resume=True, key="other") == "resume-differs"
    with pytest.raises(PacktoolError, match="by packtool tokenize, not by packtool pack"):
        prepare(out, "pack", key="k", resume=True)
    again = prepare(out, "tokenize", key="k", resume=True)
    assert again.resumed
    assert not again.finished
    assert (again.work / "stdin").read_text() == "done"
    again.finish(MANIFEST)
    assert prepare(out, "tokenize", key="k", resume=True).finished
    assert code(out, resume=True, key="other") == "resume-differs"


def test_a_finished_output_that_lost_a_file_is_not_kept(tmp_path: Path) -> None:
    finish(prepare(tmp_path / "o", "tokenize", key="k"))
    (tmp_path / "o" / "tokens-00000.npy").unlink()
    with pytest.raises(DataError, match="not there as it was written"):
        prepare(tmp_path / "o", "tokenize", key="k", resume=True)
    finish(prepare(tmp_path / "o", "tokenize", key="k", overwrite=True))
    assert names(tmp_path / "o") == STORE


@pytest.mark.parametrize("resume", [False, True])
def test_killed_before_its_state_was_written(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "unfinished" / "dataset").mkdir(parents=True)
    (tmp_path / "unfinished" / "state.json.partial").write_text("{")
    (tmp_path / "unfinished" / "lock").write_text("{")
    assert state_of(tmp_path, "tokenize", "k") == "nothing"
    assert not prepare(tmp_path, "tokenize", key="k", resume=resume).resumed
    assert state_of(tmp_path, "tokenize", "k") == "unfinished"
    assert state_of(tmp_path, "tokenize", "other") == "other"


def test_resume_refuses_what_is_not_an_output(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").touch()
    assert code(tmp_path, resume=True) == "nothing-to-resume"
    assert names(tmp_path) == ["letter.txt"]


def test_output_and_input_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    assert code(tmp_path / "in" / "out", inputs=[tmp_path / "in"]) == "output-overlaps-input"
    assert code(tmp_path / "in", inputs=[tmp_path / "in"]) == "output-overlaps-input"
    assert code(tmp_path / "in", inputs=[tmp_path / "link"], overwrite=True) == "output-overlaps-input"
    assert code(tmp_path, inputs=[tmp_path / "in"], overwrite=True) == "output-overlaps-input"
    assert code(tmp_path / "in", inputs=[tmp_path / "in" / "*.jsonl"], overwrite=True) == "output-overlaps-input"
    prepare(tmp_path / "in-out", "tokenize", key="k", inputs=[tmp_path / "in"])


def test_names_that_are_not_directories(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(DataError, match="not a directory"):
        prepare(tmp_path / "f", "tokenize", key="k")
    with pytest.raises(PacktoolError, match="--output: an empty name"):
        prepare("", "tokenize", key="k")


@pytest.mark.parametrize("name", ["unfinished", "unfinished/dataset", "unfinished/shards", "bucket-00008"])
@pytest.mark.parametrize("options", [{"resume": True}, {"overwrite": True}])
def test_nothing_is_written_through_a_planted_link(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    out, victim = tmp_path / "o", tmp_path / "victim"
    prepare(out, "tokenize", key="k").release()
    victim.mkdir()
    if name == "unfinished":
        shutil.rmtree(out / name)
    elif (out / name).is_dir():
        (out / name).rmdir()
    (out / name).symlink_to(victim)
    with pytest.raises(DataError, match=f"holds the symbolic link {name}, which packtool did not make"):
        prepare(out, "tokenize", key="k", **options)
    assert list(victim.iterdir()) == []


def test_one_writer(tmp_path: Path) -> None:
    output = prepare(tmp_path / "o", "tokenize", key="k")
    for options in ({"resume": True}, {"overwrite": True}):
        with pytest.raises(
            DataError, match=rf"packtool tokenize \(process {os.getpid()} on .*\) is writing here"
        ) as caught:
            prepare(tmp_path / "o", "pack", key="k2", **options) if "overwrite" in options else prepare(
                tmp_path / "o", "tokenize", key="k", **options
            )
        assert caught.value.code == "output-in-use"
    finish(output)
    assert names(tmp_path / "o") == STORE
    prepare(tmp_path / "o", "tokenize", key="k", resume=True)


def _hold(path: str, started: Any) -> None:
    prepare(path, "tokenize", key="k")
    started.set()
    signal.pause()


def test_a_dead_writer_is_recognised(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    process = context.Process(target=_hold, args=(str(tmp_path / "o"), started))
    process.start()
    assert started.wait(60)
    assert code(tmp_path / "o", resume=True) == "output-in-use"
    process.kill()
    process.join()
    assert prepare(tmp_path / "o", "tokenize", key="k", resume=True).resumed


def test_the_lock_goes_with_the_command_that_took_it(tmp_path: Path) -> None:
    @one_writer
    def command() -> None:
        prepare(tmp_path / "o", "tokenize", key="k")
        raise RuntimeError

    for options in ("resume", "overwrite"):
        with pytest.raises(RuntimeError):
            command()
        assert names(tmp_path / "o") == ["unfinished/state.json"]
        prepare(tmp_path / "o", "tokenize", key="k", **{options: True}).discard()
        assert not (tmp_path / "o").exists()


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(PacktoolWarning, match=r"this file system has no locks \(No locks available\), so a second run"):
        prepare(tmp_path / "o", "tokenize", key="k")
    holder = lock.Holder("pack", os.getppid(), lock.socket.gethostname(), "now")
    (tmp_path / "o" / "unfinished" / "lock").write_bytes(msgspec.json.encode(holder))
    with pytest.raises(DataError, match=rf"packtool pack \(process {os.getppid()} on .*, since now\) is writing here"):
        prepare(tmp_path / "o", "tokenize", key="k", resume=True)
    elsewhere = lock.Holder("pack", 1, "elsewhere", "now")
    (tmp_path / "o" / "unfinished" / "lock").write_bytes(msgspec.json.encode(elsewhere))
    with pytest.warns(PacktoolWarning, match=r"above all packtool pack \(process 1 on elsewhere, since now\)"):
        prepare(tmp_path / "o", "tokenize", key="k", resume=True)


STEPS: list[tuple[Any, str]] = [(Path, "replace"), (Path, "unlink"), (Path, "rmdir"), (publish, "sync_directory")]


@pytest.mark.parametrize("step", range(26))
@pytest.mark.parametrize("way", ["resume", "overwrite"])
def test_killed_at_every_step_of_the_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, way: str
) -> None:
    """A reader sees the old dataset, the new one, or none; and whoever comes next finds a whole one."""
    out = tmp_path / "o"
    finish(prepare(out, "tokenize", key="k"), documents=3)
    output = prepare(out, "tokenize", key="other", overwrite=True)
    left = [step]

    def stopping(real: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            if publish.is_staged(out) or not (out / "manifest.json").exists():
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt
            return real(*args, **options)

        return run

    with monkeypatch.context() as patch:
        for owner, name in STEPS:
            patch.setattr(owner, name, stopping(getattr(owner, name)))
        try:
            finish(output, documents=2)
        except KeyboardInterrupt:
            lock.os.close(output.lock._handle)
    if (out / "manifest.json").exists():
        assert len(manifests.read(out).shards) in (2, 3)  # type: ignore[union-attr]
    again = prepare(out, "tokenize", key="other", **{way: True})  # type: ignore[arg-type]
    if not again.finished:
        finish(again, documents=2)
    again.release()
    assert names(out) == sorted([*STORE, "offsets-00001.npy", "tokens-00001.npy"])
    assert prepare(out, "tokenize", key="other", resume=True).finished


def test_keys_depend_on_every_part() -> None:
    assert key_of({"a": 1, "b": 2}, "x") == key_of({"b": 2, "a": 1}, "x")
    assert key_of({"a": 1}, "x") != key_of({"a": 1}, "y")


def test_the_command_line_refuses_an_empty_name(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "packtool", "pack", "store", "-o", "", "--strategy", "concat", "-L", "8"]
    result = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "packtool: error[bad-option]: --output: an empty name. Give a path.\n"
    assert list(tmp_path.iterdir()) == []
