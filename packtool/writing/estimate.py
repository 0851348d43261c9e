"""Estimate how many bytes a packed dataset takes, from its plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from packtool.plan import Plan, distinct
from packtool.storage.names import LARGE, OFFSET, SEGMENT
from packtool.storage.schema import InputEntry

SAMPLED_UNITS = 4096
REST_BYTES, ORDER_REST_BYTES = 1 << 13, 1 << 12
"""What manifest, report and run.json take, about: of rows, and of an order."""


def bytes_of_plans(
    plans: Sequence[Plan], token_bytes: int, documents: int, tokenizer: Sequence[InputEntry], *, segments: bool
) -> int:
    """Count the bytes of plans: tokens exactly, their segments by looking at some units of each plan.

    Args:
        token_bytes: of one token.
        documents: that the plans are made of.
        tokenizer: files that are kept beside the rows.
        segments: the table of segments is written.
    """
    held = sum(plan.rows * plan.sequence_length for plan in plans) * token_bytes
    if segments:
        held += round(sum(map(_segments, plans))) * SEGMENT.itemsize
        held += sum(plan.rows + 1 for plan in plans) * OFFSET.itemsize
        held += documents * LARGE.itemsize
    return held + sum(entry.bytes for entry in tokenizer) + REST_BYTES


def _segments(plan: Plan) -> float:
    """Estimate how many segments a plan has."""
    if not plan.units:
        return 0.0
    looked = distinct(np.linspace(0, plan.units - 1, SAMPLED_UNITS).astype(np.int64))
    return len(plan.segments(looked).document) * plan.units / len(looked)
