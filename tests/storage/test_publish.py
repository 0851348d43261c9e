"""A new dataset takes the place of an old one: as a whole, through any interruption, and removes nothing of others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packtool.errors import DataError, PacktoolError
from packtool.storage import lock, publish
from packtool.storage import manifest as manifests
from tests.storage.outputs import STORE, finish, names, prepare


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
