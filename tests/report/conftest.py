"""A small packing to report on."""

import msgspec
import pytest

import packtool
from packtool.report.types import PackedReport
from tests.making import Make, drawn_lengths


@pytest.fixture
def report(make: Make) -> PackedReport:
    """Of documents of 100 to 2000 tokens, whole, in rows of 8192, of which eight are a step."""
    options = {"strategy": "bfd", "sequence_length": 8192}
    path = make(drawn_lengths(500, 2000, seed=7, shortest=100), packed=options) / "packed"
    written = msgspec.json.decode((path / "report.json").read_bytes(), type=PackedReport)
    return msgspec.structs.replace(written, metrics=packtool.stats(path, batch_size=8).metrics)
