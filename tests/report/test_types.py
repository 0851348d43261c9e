"""What `stats` and `report.json` hold is what their types say, and so what the published schema says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import packtool
from packtool.report.blend_types import Report
from packtool.report.types import MeasuredReport, PackedReport, StoreReport
from tests.stores import write_store


@pytest.fixture
def reports(tmp_path: Path) -> dict[type[msgspec.Struct], bytes]:
    """The JSON of every kind of report, as it is written."""
    lengths = np.random.default_rng(0).integers(2, 500, 200)
    store = write_store(tmp_path / "store", lengths.tolist())
    packtool.pack(store, tmp_path / "packed", strategy="seamless", sequence_length=64)
    found: dict[type[msgspec.Struct], Report] = {
        MeasuredReport: packtool.stats(tmp_path / "packed", batch_size=2),
        StoreReport: packtool.stats(store, compare="all", sequence_length=64),
    }
    made = {kind: msgspec.json.encode(report) for kind, report in found.items()}
    return {**made, PackedReport: (tmp_path / "packed" / "report.json").read_bytes()}


@pytest.mark.parametrize("kind", [PackedReport, MeasuredReport, StoreReport])
def test_reports_hold_what_their_types_say(
    reports: dict[type[msgspec.Struct], bytes], kind: type[msgspec.Struct]
) -> None:
    decoded = msgspec.json.decode(reports[kind], type=kind)
    assert msgspec.json.decode(msgspec.json.encode(decoded)) == msgspec.json.decode(reports[kind])
