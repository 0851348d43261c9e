"""Training cost, against the usual estimates by hand."""

from __future__ import annotations

import numpy as np
import pytest

from packtool.metrics.summary import measure
from packtool.metrics.tally import Tally
from packtool.metrics.training import training_cost
from packtool.packing import PackOptions, plan
from packtool.writing.layout import Layout


def test_cost_of_one_row() -> None:
    lengths = np.array([5, 3])
    (whole,) = plan("bfd", lengths, PackOptions(sequence_length=8))
    tally = Tally(lengths, 8)
    tally.add(Layout(whole).segments(0, whole.rows))
    cost = training_cost(measure([tally]), 8, 12 * 128**2 * 10**3)
    assert (cost.layers, cost.width) == (10, 1280)
    assert cost.linear == pytest.approx(6 * cost.parameters * 8)
    assert cost.attention == pytest.approx(12 * 10 * 1280 * 36)
    assert cost.attention_masked == pytest.approx(12 * 10 * 1280 * (15 + 6))


@pytest.mark.parametrize(("parameters", "layers"), [(124_000_000, 9), (7_000_000_000, 33), (1000, 1)])
def test_shapes_of_models(parameters: int, layers: int) -> None:
    tally = Tally(np.array([5]), 8)
    assert training_cost(measure([tally]), 8, parameters).layers == layers
