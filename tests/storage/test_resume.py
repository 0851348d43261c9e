"""What an interrupted run left is kept only where it is, bit for bit, what that run wrote."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError
from packtool.storage import manifest as manifests
from packtool.storage.state import state_of
from tests.stores import write_store

LENGTHS = np.random.default_rng(5).integers(1, 60, 200).tolist()


class Interrupted(BaseException):
    """As if the process had been killed."""


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Calls a command that ends just before its manifest is written."""

    def run(command: Callable[..., object], *args: Any, **options: Any) -> None:
        def stop(*args: object) -> None:
            raise Interrupted

        with monkeypatch.context() as patch, pytest.raises(Interrupted):
            patch.setattr(manifests, "write", stop)
            command(*args, **options)

    return run


def contents(path: Path) -> dict[str, bytes]:
    files = (file for file in path.rglob("*") if file.is_file() and file.name != "run.json")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def flip(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    whole[-1] ^= 1
    file.write_bytes(whole)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


DAMAGES = [flip, cut, Path.unlink, lambda file: file.write_bytes(b"[" * 2000)]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("pattern", ["dataset/tokens-*", "dataset/segments-*", "dataset/segment_o*", "shards/*"])
def test_a_shard_that_changed_is_made_again(
    tmp_path: Path, interrupted: Callable[..., None], damage: Callable[[Path], object], pattern: str
) -> None:
    store = write_store(tmp_path / "store", LENGTHS)
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "shard_tokens": 1024}
    packtool.pack(store, tmp_path / "whole", **options)
    interrupted(packtool.pack, store, tmp_path / "out", **options)
    for file in sorted((tmp_path / "out" / "unfinished").glob(pattern))[1:3]:
        damage(file)
    packtool.pack(store, tmp_path / "out", **options, resume=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def write_corpus(path: Path) -> Path:
    path.mkdir()
    for number in range(3):
        lines = "".join(f'{{"text": "document {number} {n}"}}\n' for n in range(50))
        (path / f"{number}.jsonl").write_text(lines + '{"txet": 1}\n', encoding="utf-8")
    return path


@pytest.mark.parametrize("damage", [*DAMAGES, "removed"])
@pytest.mark.parametrize("pattern", ["tokens-*", "offsets-*", "rejected.jsonl", "../block-*.json"])
@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
def test_a_block_that_changed_is_done_again(
    tmp_path: Path, interrupted: Callable[..., None], damage: Any, pattern: str
) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    options: dict[str, Any] = {"on_error": "quarantine", "workers": 1}
    packtool.tokenize(corpus, tmp_path / "whole", **options)
    interrupted(packtool.tokenize, corpus, tmp_path / "out", **options)
    block = sorted(path for path in (tmp_path / "out" / "unfinished").glob("block-*") if path.is_dir())[-1]
    if damage == "removed":
        shutil.rmtree(block)
    else:
        for file in sorted(block.glob(pattern)):
            damage(file)
    packtool.tokenize(corpus, tmp_path / "out", **options, resume=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert packtool.verify(tmp_path / "out").problems == []


def test_scratch_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write_store(tmp_path / "store", LENGTHS)
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 16, "memory": "8KiB", "workers": 1}

    def stop(*args: object, **options: object) -> None:
        raise Interrupted

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr("packtool.writing.shards.PackedShardWriter", stop)
        packtool.pack(store, tmp_path / "out", **options)
    scratch = sorted((tmp_path / "out" / "unfinished").rglob("*.atoms"))
    for damage in (lambda file: file.write_bytes(b"\xff" * 30), Path.unlink):
        damage(scratch[0])
        with pytest.raises(DataError, match="is gone, or has changed since it was written") as caught:
            packtool.pack(store, tmp_path / "out", **options, resume=True)
        assert caught.value.code == "damaged-scratch"


def test_another_version_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write_store(tmp_path / "store", LENGTHS)
    packtool.pack(store, tmp_path / "packed", strategy="bfd", sequence_length=64)
    for command, options in (
        (packtool.pack, {"strategy": "bfd", "sequence_length": 64}),
        (packtool.pack, {"strategy": "bfd", "sequence_length": 64, "optimize": True}),
        (packtool.shuffle, {"epoch": 1}),
    ):
        source = store if command is packtool.pack else tmp_path / "packed"
        out = tmp_path / f"out-{len(options)}"
        command(source, out, **options)
        assert command(source, out, **options, dry_run=True).preview.found == "finished"
        with monkeypatch.context() as patch:
            if "optimize" in options:
                patch.setattr("packtool.commands.pack.version", lambda name: "0.0")
            else:
                patch.setattr("packtool.commands.dataset_job.__version__", "0.0")
            assert command(source, out, **options, dry_run=True).preview.found == "other"
    assert state_of(tmp_path / "packed", "pack", "0") == "other"
