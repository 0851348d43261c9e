"""What `stats` and `report.json` hold is what their types say, and so what the published schema says."""

from typing import Any

import msgspec

import packtool
from packtool.report.types import MeasuredReport, PackedReport, StoreReport
from tests.making import Make, drawn_lengths


def test_reports_hold_what_their_types_say(make: Make) -> None:
    place = make(drawn_lengths(200, 499), packed={"strategy": "seamless", "sequence_length": 64})
    written: dict[Any, bytes] = {
        MeasuredReport: msgspec.json.encode(packtool.stats(place / "packed", batch_size=2)),
        StoreReport: msgspec.json.encode(packtool.stats(place / "store", compare="all", sequence_length=64)),
        PackedReport: (place / "packed" / "report.json").read_bytes(),
    }
    for kind, data in written.items():
        decoded = msgspec.json.decode(data, type=kind)
        assert msgspec.json.decode(msgspec.json.encode(decoded)) == msgspec.json.decode(data)
