from __future__ import annotations

import json
from typing import Any

import numpy as np

from packtool.metrics import Tally, measure
from packtool.report import document
from packtool.storage.manifest import Ledger

NOTHING = Ledger(
    input=0, placed=0, dropped=0, repeated=0, eos=0, eos_inserted=0, eos_omitted=0, padding=0, output=0, rows=0
)


def test_is_plain_json(report: dict[str, Any]) -> None:
    assert json.loads(json.dumps(report)) == report
    assert report["schema_version"] == 1
    assert report["shuffle"] == {"method": "atom", "atom_size": 8192, "seed": 42, "epoch": 1}


def test_agrees_with_the_tally(report: dict[str, Any], tally: Tally) -> None:
    metrics = measure([tally], 8)
    assert report["metrics"]["padding_ratio"] == metrics.padding_ratio
    assert report["metrics"]["steps_per_epoch"] == -(-tally.rows // 8)
    assert sum(b["rows"] for b in report["documents_per_row"]) == tally.rows
    assert sum(b["documents"] for b in report["lengths"]["histogram"]) == len(tally.lengths)
    assert report["lengths"]["total"] == int(tally.lengths.sum())
    [bucket] = report["buckets"]
    assert (bucket["row_share"], bucket["token_share"]) == (1, 1)


def test_context_is_the_share_of_tokens_that_see_as_many(report: dict[str, Any], tally: Tally) -> None:
    seen = np.concatenate([np.arange(n) for n in tally.lengths])
    for point in report["context"]:
        assert point["share"] == np.count_nonzero(seen >= point["tokens"]) / len(seen)


def test_without_segments_only_the_ledger_is_known() -> None:
    report = document.build([], NOTHING, strategy="concat", options={}, shuffle=None)
    assert report["metrics"] is None
    assert report["lengths"] is None
    assert report["ledger"]["rows"] == 0


def test_of_no_documents() -> None:
    none = Tally(np.zeros(0, np.uint32), 8)
    report = document.build([none], NOTHING, strategy="concat", options={}, shuffle=None)
    assert report["metrics"]["rows"] == 0
    assert report["documents_per_row"] == report["context"] == []
