"""An output directory is refused, replaced or continued, never mixed up with anything else, and has one writer."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import xxhash

import packtool
from packtool.errors import DataError, PacktoolError
from packtool.formats import manifest as manifests
from packtool.outputs.output import Way
from packtool.places import local
from tests.formats.outputs import MANIFEST, STORE, code, finish, manifest_of, names, piece, pieces_of, prepare, shard


def test_a_new_output_is_created_and_finished(tmp_path: Path) -> None:
    output = prepare(tmp_path / "a" / "b", "tokenize", key="k")
    assert output.work.is_dir()
    assert output.way not in (Way.GO_ON, Way.KEEP)
    path = tmp_path / "a" / "b"
    assert names(path) == ["unfinished/lock", "unfinished/state.json"]
    output.finish(MANIFEST, {"workers": 2})
    assert sorted(p.name for p in path.iterdir()) == ["manifest.json", "run.json"]
    assert msgspec.json.decode((path / "run.json").read_bytes()) == {
        "command": "tokenize",
        "key": "k",
        "manifest": xxhash.xxh3_128_hexdigest((path / "manifest.json").read_bytes()),
        "arguments": {},
        "workers": 2,
    }
    assert manifests.read(path) == MANIFEST


def test_overwrite_removes_the_manifest_first_and_goes_on_after_an_interruption(tmp_path: Path) -> None:
    out = tmp_path / "o"
    finish(prepare(out, "tokenize", key="k"), documents=3)
    assert code(out) == "output-not-empty"
    assert code(out, overwrite=True, resume=True) == "overwrite-and-resume"
    output = prepare(out, "tokenize", key="other", overwrite=True)
    assert names(out) == ["unfinished/lock", "unfinished/state.json"]
    piece(output, 0)
    output.release()
    assert code(out) == "output-not-empty"
    again = prepare(out, "tokenize", key="other", resume=True)
    assert again.way is Way.GO_ON
    assert pieces_of(again).numbers() == [0]
    finish(again, documents=1)
    assert names(out) == STORE


def test_a_manifest_that_was_not_to_be_replaced_stays(tmp_path: Path) -> None:
    """A marker that a run left, and a dataset that another one finished since."""
    out = tmp_path / "o"
    prepare(out, "tokenize", key="k").release()
    marker = (out / "unfinished" / "state.json").read_bytes()
    finish(prepare(out, "tokenize", key="other", overwrite=True), documents=2)
    (out / "unfinished").mkdir()
    (out / "unfinished" / "state.json").write_bytes(marker)
    assert code(out, resume=True) == "resume-differs"
    assert len(manifests.read(out).shards) == 2  # type: ignore[union-attr]
    assert prepare(out, "tokenize", key="other", resume=True).finished
    assert not (out / "unfinished").exists()


def test_what_attempts_left_goes_before_the_manifest_comes(tmp_path: Path) -> None:
    out = tmp_path / "o"
    output = prepare(out, "tokenize", key="k")
    shard(output, 7)
    (out / "notes.txt").write_text("mine")
    finish(output)
    assert names(out) == sorted([*STORE, "notes.txt"])


def test_nothing_is_finished_while_a_file_is_missing(tmp_path: Path) -> None:
    output = prepare(tmp_path / "o", "tokenize", key="k")
    made = manifest_of(shard(output, 0), shard(output, 1))
    (tmp_path / "o" / "tokens-00001.npy").unlink()
    with pytest.raises(DataError, match=r"tokens-00001\.npy: is not there any more"):
        output.finish(made)
    assert not (tmp_path / "o" / "manifest.json").exists()


def test_resume_goes_on_only_with_the_same_work(tmp_path: Path) -> None:
    out = tmp_path / "o"
    first = prepare(out, "tokenize", key="k", resume=True)
    assert first.way not in (Way.GO_ON, Way.KEEP)
    (out / "unfinished" / "scratch" / "stdin").write_text("done")
    first.release()
    assert code(out, resume=True, key="other") == "resume-differs"
    with pytest.raises(PacktoolError, match="by packtool tokenize, not by packtool pack"):
        prepare(out, "pack", key="k", resume=True)
    again = prepare(out, "tokenize", key="k", resume=True)
    assert again.way is Way.GO_ON
    assert not again.finished
    assert (again.scratch / "stdin").read_text() == "done"
    again.finish(MANIFEST)
    assert prepare(out, "tokenize", key="k", resume=True).finished
    assert code(out, resume=True, key="other") == "resume-differs"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_output_and_the_way_on(tmp_path: Path, number: int) -> None:
    with pytest.raises(DataError) as caught, prepare(tmp_path / "o", "tokenize", key="k"):
        raise OSError(number, os.strerror(number))
    what = {errno.ENOSPC: "no space left on the device", errno.EDQUOT: "disk quota exceeded"}[number]
    way = "Free some space, then run the command again with resume=True: what is finished is kept."
    assert (caught.value.code, str(caught.value)) == ("disk-full", f"{tmp_path / 'o'}: {what}. {way}")
    with pytest.raises(OSError, match="Input/output"), prepare(tmp_path / "o", "tokenize", key="k", resume=True):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


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
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("link", "link/below"):
        with pytest.raises(DataError, match=r"/link is a link to nowhere, which is not there\. Choose another\.$"):
            prepare(tmp_path / name, "tokenize", key="k")
    with pytest.raises(PacktoolError, match=r"output: an empty name\. Give a path"):
        packtool.tokenize("corpus.jsonl", "")


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


def test_a_manifest_that_tells_nothing_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "tokens-00000.npy").write_text("whose?")
    with pytest.raises(PacktoolError, match="holds a manifest that does not tell which files are packtool's"):
        prepare(tmp_path, "tokenize", key="k", overwrite=True)
    assert names(tmp_path) == ["manifest.json", "tokens-00000.npy"]


@pytest.mark.parametrize("name", ["unfinished", "unfinished/scratch", "unfinished/pieces", "bucket-00008"])
@pytest.mark.parametrize("options", [{"resume": True}, {"overwrite": True}])
def test_nothing_is_written_through_a_planted_link(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    out, victim = tmp_path / "o", tmp_path / "victim"
    prepare(out, "tokenize", key="k").release()
    victim.mkdir()
    if (out / name).is_dir():
        shutil.rmtree(out / name)
    (out / name).symlink_to(victim)
    with pytest.raises(DataError, match=f"holds the symbolic link {name}, which packtool did not make"):
        prepare(out, "tokenize", key="k", **options)
    assert list(victim.iterdir()) == []


STEPS: list[tuple[Any, str]] = [(Path, "replace"), (Path, "unlink"), (Path, "hardlink_to"), (local, "sync_directory")]


@pytest.mark.parametrize("step", range(0, 40, 3))
@pytest.mark.parametrize("way", ["resume", "overwrite"])
def test_killed_at_any_step_of_an_overwrite(tmp_path: Path, step: int, way: str) -> None:
    """A reader sees the old dataset, the new one, or none; and whoever comes next finds a whole one."""
    out = tmp_path / "o"
    finish(prepare(out, "tokenize", key="k"), documents=3)
    left = [step]

    def stopping(real: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        return run

    if (child := os.fork()) == 0:
        for owner, name in STEPS:
            setattr(owner, name, stopping(getattr(owner, name)))
        finish(prepare(out, "tokenize", key="other", overwrite=True), documents=2)
        os._exit(0)
    os.waitpid(child, 0)
    if (out / "manifest.json").exists():
        assert packtool.info(out).state == "whole"
        assert len(manifests.read(out).shards) in (2, 3)  # type: ignore[union-attr]
    if way == "resume" and "unfinished/state.json" not in names(out) and manifests.read_run(out)["key"] == "k":
        way = "overwrite"  # nothing had begun
    again = prepare(out, "tokenize", key="other", **{way: True})  # type: ignore[arg-type]
    if not again.finished:
        finish(again, documents=2)
    again.release()
    assert names(out) == sorted([*STORE, "offsets-00001.npy", "tokens-00001.npy"])
    assert prepare(out, "tokenize", key="other", resume=True).finished
