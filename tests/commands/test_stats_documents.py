"""`stats` of documents: what each strategy would make of them is what it makes of them."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import packtool
from packtool.planning.packing import STRATEGIES
from packtool.report.compare import candidates
from tests.commands.counted import count_by_hand, make_store


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_compare_equals_packing_then_measuring(data: st.DataObject, tmp_path: Path) -> None:
    size = data.draw(st.sampled_from([4, 8, 16]))
    lengths = data.draw(st.lists(st.integers(2, 4 * size), min_size=1, max_size=40))
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    store = make_store(place / "store", np.array(lengths))
    foreseen = packtool.stats(store, compare="all", sequence_length=size, buckets=[size, 2 * size], batch_size=3)
    tried = candidates(["all"], [size], {"buckets": (size, 2 * size)})
    assert len(tried) == len(foreseen.comparison.entries) == len(STRATEGIES)
    for candidate, entry in zip(tried, foreseen.comparison.entries, strict=True):
        options = {f.name: getattr(candidate.options, f.name) for f in fields(candidate.options)}
        packtool.pack(store, place / entry.strategy, strategy=entry.strategy, **options)
        measured = packtool.stats(place / entry.strategy, batch_size=3)
        if entry.strategy == "seamless":
            assert measured.sliding.texts == entry.metrics.overlapping_documents
        for name in ("ledger", "metrics", "buckets", "documents_per_row", "context"):
            assert getattr(entry, name) == getattr(measured, name), (entry.strategy, name)
        count_by_hand(place / entry.strategy, np.array(lengths), measured)
