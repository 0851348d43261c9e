"""What lies at an output, and whether a run may go on with it: in a directory as in an object store."""

from collections.abc import Callable
from pathlib import Path

import pytest

from packtool.errors import DataError, PacktoolError
from packtool.formats import manifest as manifests
from packtool.formats.names import MARKER
from packtool.outputs.claim import key_of, look, preview
from packtool.outputs.delivery import mark_again, require_mark, state_of_mark
from packtool.outputs.output import Action, State
from packtool.places.local import LocalPlace
from packtool.places.typed import place_of
from tests.outputs.cases import STORE, URL, begin, finish, names, piece
from tests.places.s3_server import Bucket


def begun(out: Path, key: str = "k", command: str = "tokenize") -> None:
    output = begin(out, key, command)
    piece(output, 0)
    output.release()


def damaged(out: Path) -> None:
    begun(out)
    (out / MARKER).write_bytes(b"{")


def damaged_alone(out: Path) -> None:
    (out / "unfinished").mkdir(parents=True)
    (out / MARKER).write_bytes(b"{")


def finished(out: Path, key: str = "k") -> None:
    finish(begin(out, key))


def finished_since(out: Path) -> None:
    """A run left its marker, and another one finished since."""
    begun(out)
    marker = (out / MARKER).read_bytes()
    finish(begin(out, "other", overwrite=True))
    (out / MARKER).parent.mkdir()
    (out / MARKER).write_bytes(marker)


def to_be_replaced(out: Path, key: str = "k") -> None:
    """Killed when the marker was there, before the old manifest went."""
    finished(out, "other")
    old = {name: (out / name).read_bytes() for name in names(out)}
    begin(out, key, overwrite=True).release()
    for name, data in old.items():
        (out / name).write_bytes(data)


def replaced_by_another(out: Path) -> None:
    """It is not told who made it, nor is it unfinished work."""
    to_be_replaced(out, "another")
    (out / manifests.RUN).write_text("{")


def of_nobody(out: Path) -> None:
    finished(out)
    (out / manifests.RUN).unlink()


def lost_a_file(out: Path) -> None:
    finished(out)
    (out / "tokens-00000.npy").unlink()


def not_told(out: Path) -> None:
    out.mkdir()
    (out / manifests.MANIFEST).write_text("{}")
    (out / "tokens-00000.npy").write_text("whose?")


def others(out: Path) -> None:
    out.mkdir()
    (out / "letter.txt").touch()


def before_its_state(out: Path) -> None:
    """Killed before its state was written."""
    (out / "unfinished" / "scratch").mkdir(parents=True)
    (out / "unfinished" / "state.json.0123abcd.partial").write_text("{")
    (out / "unfinished" / "lock").write_text("{")


def leftovers(out: Path) -> None:
    (out / "unfinished" / "scratch").mkdir(parents=True)
    (out / "unfinished" / "scratch" / "rejected-00000.jsonl").touch()


FULL = "output-not-empty: holds "
STORED = f"{FULL}a finished token store already. Give overwrite=True to replace it."
INTERRUPTED = f"{FULL}the unfinished work of an interrupted packtool tokenize. Give resume=True to go on, "
UNKNOWN = f"{FULL}the unfinished work of an interrupted command. Give resume=True"
NOTHING = "nothing-to-resume: not empty, and not the output of an interrupted run. "
NOBODY = f"{NOTHING}Give overwrite=True, or give another output"
OTHERS = f"{NOTHING}Choose another output, or move it away."
DIFFERS = "resume-differs: begun with other options or inputs. Give the same ones, or give overwrite=True"
COMMAND = "resume-differs: written by packtool pack, not by packtool tokenize. Give the same ones"
MARKED = "nothing-to-resume: holds unfinished work whose marker is damaged. Give overwrite=True"
GONE = "missing-shard: listed, but not there as it was written. Copy it again, or give overwrite=True"
NOT_TOLD = "output-has-other-files: holds a manifest that does not tell which files are packtool's: "
LEFT = f"{FULL}leftovers of unfinished work. Give resume=True or overwrite=True: both remove them, and begin."
LETTER = f"{FULL}letter.txt already"
KEPT = "output-has-other-files: holds letter.txt, which packtool did not write. Move it away"
Made = Callable[[Path], object]
TABLE: dict[str, tuple[Made, str, str, Action | str, Action | str, Action | str]] = {
    "nothing": (Path.mkdir, "nothing", "nothing", Action.BEGIN, Action.BEGIN, Action.BEGIN),
    "not begun": (before_its_state, "nothing", "nothing", Action.BEGIN, Action.BEGIN, Action.BEGIN),
    "begun": (begun, "begun", "unfinished", INTERRUPTED, Action.GO_ON, Action.REPLACE),
    "begun by another": (lambda out: begun(out, "other"), "begun", "other", INTERRUPTED, DIFFERS, Action.REPLACE),
    "another command": (lambda out: begun(out, command="pack"), "begun", "other", FULL, COMMAND, Action.REPLACE),
    "a damaged marker": (damaged, "begun", "other", UNKNOWN, MARKED, Action.REPLACE),
    "nothing but that": (damaged_alone, "begun", "other", UNKNOWN, Action.GO_ON, Action.REPLACE),
    "finished": (finished, "finished", "finished", STORED, Action.KEEP, Action.REPLACE),
    "finished by another": (lambda out: finished(out, "other"), "finished", "other", STORED, DIFFERS, Action.REPLACE),
    "finished since": (finished_since, "finished", "unfinished", STORED, DIFFERS, Action.REPLACE),
    "to be replaced": (to_be_replaced, "finished", "unfinished", STORED, Action.GO_ON, Action.REPLACE),
    "replaced by another": (replaced_by_another, "finished", "other", STORED, NOBODY, Action.REPLACE),
    "finished by nobody": (of_nobody, "finished", "other", STORED, NOBODY, Action.REPLACE),
    "finished, less a file": (lost_a_file, "finished", "other", STORED, GONE, Action.REPLACE),
    "a manifest of nothing": (not_told, "finished", "other", FULL, NOBODY, NOT_TOLD),
    "leftovers": (leftovers, "other", "other", LEFT, Action.REPLACE, Action.REPLACE),
    "other files": (others, "other", "other", LETTER, OTHERS, KEPT),
}
"""What lies at a place, its kind, what a dry run says, and what a run does or says: with neither option, to resume, to
overwrite."""


@pytest.mark.parametrize("where", ["directory", "store"])
@pytest.mark.parametrize("case", TABLE)
def test_what_lies_there_and_what_is_asked_decide(tmp_path: Path, bucket: Bucket, case: str, where: str) -> None:
    """Asking changes nothing, nor does a refusal. Whoever may write ends with a store, and with nothing else."""
    make, kind, seen, *wanted = TABLE[case]
    for way, asked in zip(wanted, ({}, {"resume": True}, {"overwrite": True}), strict=True):
        name = next(iter(asked), "begin")
        out: Path | str = tmp_path / name
        make(tmp_path / name)
        if where == "store":
            bucket.put_all(tmp_path / name, f"set/{name}")
            bucket.objects.pop(f"set/{name}/unfinished/lock", None)  # which lies on this machine
            out = f"{URL}/{name}"
        place = place_of(out)
        before = place.names()
        assert look(place).kind == kind
        assert preview(place, State("tokenize", "k")) == seen
        if isinstance(way, str):
            with pytest.raises(PacktoolError) as caught:
                begin(out, **asked)
            assert f"{caught.value.code}: {str(caught.value).partition(': ')[2]}".startswith(way)
            assert place.names() == before
            continue
        output = begin(out, **asked)
        assert output.action is way
        if way is not Action.KEEP:
            finish(output)
        assert sorted(place.names()) == STORE


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


def test_keys_depend_on_every_part() -> None:
    assert key_of({"a": 1, "b": 2}, "x") == key_of({"b": 2, "a": 1}, "x")
    assert key_of({"a": 1}, "x") != key_of({"a": 1}, "y")


def test_a_foreign_directory_is_known_by_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else lies there, which may be millions of files, is not listed."""
    (tmp_path / "out" / "photos").mkdir(parents=True)
    (tmp_path / "out" / "photos" / "a.png").touch()
    monkeypatch.delattr(LocalPlace, "names")
    for asked, said in (
        ({"overwrite": True}, "holds photos/a.png, which packtool did not write"),
        ({"resume": True}, "not empty, and not the output of an interrupted run"),
        ({}, "holds photos already"),
    ):
        with pytest.raises(PacktoolError, match=said):
            begin(tmp_path / "out", **asked)
