"""An output directory is refused, replaced or continued, never mixed up with anything else, and has one writer."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from packtool.errors import DataError, PacktoolError
from packtool.storage import manifest as manifests
from packtool.storage.files import write_array
from tests.storage.outputs import MANIFEST, STORE, code, finish, names, prepare


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


def test_resume_goes_on_only_with_the_same_work(tmp_path: Path) -> None:
    out = tmp_path / "o"
    first = prepare(out, "tokenize", key="k", resume=True)
    assert not first.resumed
    (out / "unfinished" / "scratch" / "stdin").write_text("done")
    first.release()
    assert code(out, resume=True, key="other") == "resume-differs"
    with pytest.raises(PacktoolError, match="by packtool tokenize, not by packtool pack"):
        prepare(out, "pack", key="k", resume=True)
    again = prepare(out, "tokenize", key="k", resume=True)
    assert again.resumed
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
    way = "Free some space, then run the command again with --resume: what is finished is kept."
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
    with pytest.raises(PacktoolError, match="--output: an empty name"):
        prepare("", "tokenize", key="k")


def test_the_command_line_refuses_an_empty_name(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "packtool", "pack", "store", "-o", "", "--strategy", "concat", "-L", "8"]
    result = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "packtool: error[bad-option]: --output: an empty name. Give a path.\n"
    assert list(tmp_path.iterdir()) == []
