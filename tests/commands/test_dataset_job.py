"""What makes work the same work: options, inputs and versions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.outputs.claim import preview
from packtool.outputs.output import State
from packtool.places.local import LocalPlace
from tests.stores import write_store

LENGTHS = np.random.default_rng(5).integers(1, 60, 200).tolist()


def test_another_version_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write_store(tmp_path / "store", LENGTHS)
    packtool.pack(store, tmp_path / "packed", strategy="bfd", sequence_length=64)
    for command, options in (
        (packtool.pack, {"strategy": "bfd", "sequence_length": 64}),
        (packtool.shuffle, {"epoch": 1}),
    ):
        source = store if command is packtool.pack else tmp_path / "packed"
        out = tmp_path / f"out-{len(options)}"
        command(source, out, **options)
        assert command(source, out, **options, dry_run=True).preview.found == "finished"
        with monkeypatch.context() as patch:
            patch.setattr("packtool.commands.dataset_job.__version__", "0.0")
            assert command(source, out, **options, dry_run=True).preview.found == "other"
    assert preview(LocalPlace(tmp_path / "packed"), State("pack", "0")) == "other"
