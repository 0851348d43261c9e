"""An output directory is refused, replaced or continued, and never mixed up with anything else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from packtool.errors import DataError, PacktoolError
from packtool.storage import manifest as manifests
from packtool.storage.manifest import StoreManifest, TokenizerInfo
from packtool.storage.output import key_of, look, prepare

MANIFEST = StoreManifest(
    options={},
    inputs=[],
    tokenizer=TokenizerInfo("00" * 32, 2, 1, "<eos>"),
    dtype="<u2",
    counts={"documents": 0, "tokens": 0},
    shards=[],
)


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


def test_what_is_there_is_refused_unless_asked(tmp_path: Path) -> None:
    prepare(tmp_path / "o", "tokenize", key="k").finish(MANIFEST)
    (tmp_path / "o" / "tokens-00000.npy").write_bytes(b"old")
    assert code(tmp_path / "o") == "output-not-empty"
    assert code(tmp_path / "o", overwrite=True, resume=True) == "overwrite-and-resume"
    output = prepare(tmp_path / "o", "tokenize", key="k", overwrite=True)
    assert [p.name for p in output.path.iterdir()] == ["unfinished"]


def test_overwrite_never_removes_what_packtool_did_not_write(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "manifest.json").write_text("{}")
    assert code(tmp_path, overwrite=True) == "output-has-other-files"
    assert (tmp_path / "thesis.tex").exists()
    assert (tmp_path / "manifest.json").exists()


def test_resume_goes_on_only_with_the_same_work(tmp_path: Path) -> None:
    out = tmp_path / "o"
    assert not prepare(out, "tokenize", key="k", resume=True).resumed
    (out / "unfinished" / "piece").write_text("done")
    assert code(out, resume=True, key="other") == "resume-differs"
    with pytest.raises(PacktoolError, match="by packtool tokenize, not by packtool pack"):
        prepare(out, "pack", key="k", resume=True)
    again = prepare(out, "tokenize", key="k", resume=True)
    assert again.resumed
    assert not again.finished
    assert (again.work / "piece").read_text() == "done"
    again.finish(MANIFEST)
    assert prepare(out, "tokenize", key="k", resume=True).finished
    assert code(out, resume=True, key="other") == "resume-differs"


@pytest.mark.parametrize("resume", [False, True])
def test_killed_before_its_state_was_written(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "state.json.partial").write_text("{")
    assert look(tmp_path, "tokenize", "k") == "nothing"
    assert not prepare(tmp_path, "tokenize", key="k", resume=resume).resumed
    assert look(tmp_path, "tokenize", "k") == "unfinished"
    assert look(tmp_path, "tokenize", "other") == "other"


def test_resume_refuses_what_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").touch()
    assert code(tmp_path, resume=True) == "nothing-to-resume"


def test_output_and_input_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert code(tmp_path / "in" / "out", inputs=[tmp_path / "in"]) == "output-overlaps-input"
    assert code(tmp_path / "in", inputs=[tmp_path / "in"]) == "output-overlaps-input"
    assert code(tmp_path, inputs=[tmp_path / "in"], overwrite=True) == "output-overlaps-input"
    prepare(tmp_path / "in-out", "tokenize", key="k", inputs=[tmp_path / "in"])


def test_a_file_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(DataError, match="not a directory"):
        prepare(tmp_path / "f", "tokenize", key="k")


def test_keys_depend_on_every_part() -> None:
    assert key_of({"a": 1, "b": 2}, "x") == key_of({"b": 2, "a": 1}, "x")
    assert key_of({"a": 1}, "x") != key_of({"a": 1}, "y")
