"""What lies at an output, and whether a run may go on with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.names import MARKER
from packtool.options.shared import Writing
from packtool.outputs.claim import Begun, Finished, Nothing, Other, There, decide, key_of, look, preview
from packtool.outputs.delivery import mark_again, require_mark, state_of_mark
from packtool.outputs.output import State, Way
from packtool.places.local import LocalPlace
from tests.formats.outputs import STORE, finish, names, piece, prepare


def begun(out: Path, key: str = "k") -> None:
    output = prepare(out, "tokenize", key=key)
    piece(output, 0)
    output.release()


def damaged(out: Path) -> None:
    begun(out)
    (out / MARKER).write_bytes(b"{")


def damaged_alone(out: Path) -> None:
    (out / "unfinished").mkdir(parents=True)
    (out / MARKER).write_bytes(b"{")


def finished(out: Path, key: str = "k") -> None:
    finish(prepare(out, "tokenize", key=key))


def to_be_replaced(out: Path) -> None:
    """Killed when the marker was there, before the old manifest went."""
    finished(out, "other")
    old = {name: (out / name).read_bytes() for name in names(out)}
    prepare(out, "tokenize", key="k", overwrite=True).release()
    for name, data in old.items():
        (out / name).write_bytes(data)


def of_nobody(out: Path) -> None:
    finished(out)
    (out / manifests.RUN).unlink()


def others(out: Path) -> None:
    out.mkdir()
    (out / "letter.txt").touch()


def leftovers(out: Path) -> None:
    (out / "unfinished" / "scratch").mkdir(parents=True)
    (out / "unfinished" / "scratch" / "rejected-00000.jsonl").touch()


FULL = "output-not-empty"
TABLE: dict[str, tuple[Callable[[Path], object], type[There], tuple[Way | str, Way | str, Way | str]]] = {
    "nothing": (Path.mkdir, Nothing, (Way.BEGIN, Way.BEGIN, Way.BEGIN)),
    "begun": (begun, Begun, (FULL, Way.GO_ON, Way.REPLACE)),
    "begun by another": (lambda out: begun(out, "other"), Begun, (FULL, "resume-differs", Way.REPLACE)),
    "a damaged marker": (damaged, Begun, (FULL, "nothing-to-resume", Way.REPLACE)),
    "nothing but that": (damaged_alone, Begun, (FULL, Way.GO_ON, Way.REPLACE)),
    "finished": (finished, Finished, (FULL, Way.KEEP, Way.REPLACE)),
    "finished by another": (lambda out: finished(out, "other"), Finished, (FULL, "resume-differs", Way.REPLACE)),
    "to be replaced": (to_be_replaced, Finished, (FULL, Way.GO_ON, Way.REPLACE)),
    "finished by nobody": (of_nobody, Finished, (FULL, "nothing-to-resume", Way.REPLACE)),
    "leftovers": (leftovers, Other, (FULL, Way.REPLACE, Way.REPLACE)),
    "other files": (others, Other, (FULL, "nothing-to-resume", "output-has-other-files")),
}
"""What lies at a place, what it is called, and what a run does: with neither option, to resume, to overwrite."""


@pytest.mark.parametrize("case", TABLE)
def test_what_lies_there_and_what_is_asked_decide(tmp_path: Path, case: str) -> None:
    make, kind, wanted = TABLE[case]
    make(tmp_path / "o")
    place, before = LocalPlace(tmp_path / "o"), names(tmp_path)
    there, found = look(place), []
    for options in (Writing(), Writing(resume=True), Writing(overwrite=True)):
        try:
            found.append(decide(place, there, State("tokenize", "k"), options))
        except PacktoolError as error:
            found.append(error.code)
    assert (type(there), tuple(found)) == (kind, wanted)
    assert names(tmp_path) == before


def test_whose_a_marker_is_and_what_mends_it(tmp_path: Path) -> None:
    place = LocalPlace(tmp_path)
    assert state_of_mark(place, b"") == "ours"  # where a lock keeps others out
    assert state_of_mark(place, b"mine") == "gone"
    assert names(tmp_path) == [], "asking mends nothing"
    assert mark_again(place, b"mine")
    assert (state_of_mark(place, b"mine"), state_of_mark(place, b"other")) == ("ours", "another's")
    require_mark(place, b"mine")
    assert not mark_again(place, b"other")
    with pytest.raises(DataError, match="is writing here, or has finished just now"):
        require_mark(place, b"other")
    (tmp_path / MARKER).unlink()
    (tmp_path / manifests.MANIFEST).touch()  # of a run that has finished meanwhile
    with pytest.raises(DataError, match="is writing here, or has finished just now"):
        require_mark(place, b"mine")
    assert names(tmp_path) == [manifests.MANIFEST]


def test_a_finished_output_that_lost_a_file_is_not_kept(tmp_path: Path) -> None:
    finish(prepare(tmp_path / "o", "tokenize", key="k"))
    (tmp_path / "o" / "tokens-00000.npy").unlink()
    with pytest.raises(DataError, match="not there as it was written"):
        prepare(tmp_path / "o", "tokenize", key="k", resume=True)
    finish(prepare(tmp_path / "o", "tokenize", key="k", overwrite=True))
    assert names(tmp_path / "o") == STORE


@pytest.mark.parametrize("resume", [False, True])
def test_killed_before_its_state_was_written(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "unfinished" / "scratch").mkdir(parents=True)
    (tmp_path / "unfinished" / "state.json.0123abcd.partial").write_text("{")
    (tmp_path / "unfinished" / "lock").write_text("{")
    assert preview(LocalPlace(tmp_path), State("tokenize", "k")) == "nothing"
    assert prepare(tmp_path, "tokenize", key="k", resume=resume).way not in (Way.GO_ON, Way.KEEP)
    assert preview(LocalPlace(tmp_path), State("tokenize", "k")) == "unfinished"
    assert preview(LocalPlace(tmp_path), State("tokenize", "other")) == "other"


def test_resume_refuses_what_is_not_an_output(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").touch()
    with pytest.raises(UsageError, match=r"an interrupted run\. Choose another output, or move it away"):
        prepare(tmp_path, "tokenize", key="k", resume=True)
    assert names(tmp_path) == ["letter.txt"]


@pytest.mark.parametrize("how", ["resume", "overwrite"])
def test_leftovers_alone_are_removed_by_either_option(tmp_path: Path, how: str) -> None:
    leftovers(tmp_path / "o")
    with pytest.raises(UsageError, match=r"holds leftovers of unfinished work\. Give resume=True or overwrite=True"):
        prepare(tmp_path / "o", "tokenize", key="k")
    output = prepare(tmp_path / "o", "tokenize", key="k", **{how: True})
    assert output.way not in (Way.GO_ON, Way.KEEP)
    finish(output)
    assert names(tmp_path / "o") == STORE


def test_a_finished_output_of_nobody_beside_a_marker_is_not_said_to_be_damaged(tmp_path: Path) -> None:
    to_be_replaced(tmp_path / "o")
    (tmp_path / "o" / manifests.RUN).write_text("{")
    with pytest.raises(UsageError, match="not empty, and not the output of an interrupted run"):
        prepare(tmp_path / "o", "tokenize", key="k2", resume=True)


def test_keys_depend_on_every_part() -> None:
    assert key_of({"a": 1, "b": 2}, "x") == key_of({"b": 2, "a": 1}, "x")
    assert key_of({"a": 1}, "x") != key_of({"a": 1}, "y")
