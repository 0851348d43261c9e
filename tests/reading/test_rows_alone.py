"""The law: what a batch says of a row does not depend on the rows beside it, of whatever sources a blend has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import packtool
from packtool.reading import BlendedRows
from tests.examples import examples
from tests.making import Make, drawn_lengths
from tests.stores import document_loss

LENGTH, ROWS = 24, 200
PACKED: dict[str, dict[str, Any]] = {
    "cut": {"strategy": "concat"},
    "cut-index": {"strategy": "concat", "index_only": True},
    "repeated": {"strategy": "seamless", "max_repetition": "40%"},
    "padded": {"strategy": "padding", "atom_size": 8},
    "whole": {"strategy": "bfd"},
    "plain": {"strategy": "concat", "remainder": "drop", "segments": False},
}
"""Each with a loss column and without."""


@pytest.fixture(scope="module")
def sources(make: Make) -> dict[str, Path]:
    paths = {}
    for number, (kind, options) in enumerate(PACKED.items()):
        for name, loss in ((kind, None), (f"{kind}-loss", document_loss)):
            stored = {"first": 1000 * number, "loss": loss}
            place = make(drawn_lengths(40, 59, number, 1), stored, **{name: {**options, "sequence_length": LENGTH}})
            paths[name] = place / name
    return paths


@examples(60)
@given(data=st.data())
def test_a_row_is_what_it_is_alone(sources: dict[str, Path], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(sources)), min_size=2, max_size=4, unique=True), label="sources")
    without_segments = any("plain" in name for name in names)
    options: dict[str, Any] = {"labels": data.draw(st.sampled_from(["next", "same"]), label="labels")}
    options["extra_token"] = options["labels"] == "next" and data.draw(st.booleans(), label="extra token")
    fields = ["input_ids", "labels", "loss_mask", "source"]
    if without_segments:
        options["documents"] = False
    else:
        fields += ["position_ids", "document_ids"]
        for name in ("documents", "train_on_repeated", "train_across_documents"):
            options[name] = data.draw(st.booleans(), label=name)
    blend = packtool.open(packtool.Blend({name: sources[name] for name in names}, rows=ROWS))
    assert isinstance(blend, BlendedRows)
    rows = data.draw(st.lists(st.integers(0, ROWS - 1), min_size=2, max_size=12), label="rows")
    together = blend.batch(rows, fields=fields, **options)
    for place, row in enumerate(rows):
        alone = blend.batch([row], fields=fields, **options)
        for name in fields:
            np.testing.assert_array_equal(together[name][place], alone[name][0], name)  # type: ignore[literal-required]
