"""An output directory is refused, replaced or continued, never mixed up with anything else, and has one writer."""

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.formats import manifest as manifests
from packtool.places import local
from tests.outputs.cases import STORE, begin, finish, manifest_of, names, shard


def test_what_attempts_left_goes_before_the_manifest_comes(tmp_path: Path) -> None:
    output = begin(tmp_path)
    shard(output, 7)
    (tmp_path / "notes.txt").write_text("mine")
    finish(output)
    assert names(tmp_path) == sorted([*STORE, "notes.txt"])


def test_nothing_is_finished_while_a_file_is_missing(tmp_path: Path) -> None:
    output = begin(tmp_path)
    made = manifest_of(shard(output, 0), shard(output, 1))
    (tmp_path / "tokens-00001.npy").unlink()
    with pytest.raises(DataError, match=r"tokens-00001\.npy: is not there any more"):
        output.finish(made)
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_output_and_the_way_on(tmp_path: Path, number: int) -> None:
    with pytest.raises(DataError) as caught, begin(tmp_path / "o"):
        raise OSError(number, os.strerror(number))
    what = {errno.ENOSPC: "no space left on the device", errno.EDQUOT: "disk quota exceeded"}[number]
    way = "Free some space, then run the command again with resume=True: what is finished is kept."
    assert (caught.value.code, str(caught.value)) == ("disk-full", f"{tmp_path / 'o'}: {what}. {way}")
    with pytest.raises(OSError, match="Input/output"), begin(tmp_path / "o", resume=True):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize(
    ("output", "given"),
    [("in/out", "in"), ("in", "in"), ("in", "link"), (".", "in"), ("in", "in/*.jsonl")],
)
def test_output_and_input_stay_apart(here: Path, output: str, given: str) -> None:
    Path("in").mkdir()
    Path("link").symlink_to("in")
    with pytest.raises(UsageError) as caught:
        begin(here / output, inputs=[here / given], overwrite=True)
    assert caught.value.code == "output-overlaps-input"
    with pytest.raises(UsageError, match="overwrite and resume exclude each other"):
        begin("in-out", inputs=[here / given], overwrite=True, resume=True)
    begin("in-out", inputs=[here / given])


def test_names_that_are_not_directories(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(DataError, match="not a directory"):
        begin(tmp_path / "f")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("link", "link/below"):
        with pytest.raises(DataError, match=r"/link is a link to nowhere, which is not there\. Choose another\.$"):
            begin(tmp_path / name)


OTHERS = "embeddings.npy tokens-00007.npy bucket-7/notes.txt bucket-00007/tokens-00000.npy thesis.tex"


@pytest.mark.parametrize("name", [*OTHERS.split(), "unfinished/novel.txt", "unfinished/dataset/novel.txt"])
def test_overwrite_never_removes_what_packtool_did_not_write(tmp_path: Path, name: str) -> None:
    out = tmp_path / "o"
    finish(begin(out))
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text("years of work")
    with pytest.raises(PacktoolError, match=f"holds {name}, which packtool did not write") as caught:
        begin(out, "other", overwrite=True)
    assert caught.value.code == "output-has-other-files"
    assert names(out) == sorted([*STORE, name])


@pytest.mark.parametrize("name", ["unfinished", "unfinished/scratch", "unfinished/pieces", "bucket-00008"])
@pytest.mark.parametrize("options", [{"resume": True}, {"overwrite": True}])
def test_nothing_is_written_through_a_planted_link(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    out, victim = tmp_path / "o", tmp_path / "victim"
    begin(out).release()
    victim.mkdir()
    if (out / name).is_dir():
        shutil.rmtree(out / name)
    (out / name).symlink_to(victim)
    with pytest.raises(DataError, match=f"holds the symbolic link {name}, which packtool did not make"):
        begin(out, **options)
    assert list(victim.iterdir()) == []


STEPS: list[tuple[Any, str]] = [(Path, "replace"), (Path, "unlink"), (Path, "hardlink_to"), (local, "sync_directory")]


@pytest.mark.parametrize("step", range(0, 40, 3))
@pytest.mark.parametrize("way", ["resume", "overwrite"])
def test_killed_at_any_step_of_an_overwrite(tmp_path: Path, step: int, way: str) -> None:
    """A reader sees the old dataset, the new one, or none; and whoever comes next finds a whole one."""
    out = tmp_path / "o"
    finish(begin(out), documents=3)
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
        finish(begin(out, "other", overwrite=True), documents=2)
        os._exit(0)
    os.waitpid(child, 0)
    if (out / "manifest.json").exists():
        assert packtool.info(out).state == "whole"
        assert len(manifests.read(out).shards) in (2, 3)  # type: ignore[union-attr]
    if way == "resume" and "unfinished/state.json" not in names(out) and manifests.read_run(out)["key"] == "k":
        way = "overwrite"  # nothing had begun
    again = begin(out, "other", **{way: True})  # type: ignore[arg-type]
    if not again.finished:
        finish(again, documents=2)
    again.release()
    assert names(out) == sorted([*STORE, "offsets-00001.npy", "tokens-00001.npy"])
    assert begin(out, "other", resume=True).finished
