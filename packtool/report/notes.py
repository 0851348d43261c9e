"""What readers of a comparison should know beside its figures."""

from __future__ import annotations

from collections.abc import Sequence

from packtool.metrics.unpacked import Unpacked
from packtool.report.figures import count, percent
from packtool.report.schema import Comparison, Trial


def notes(comparison: Comparison) -> list[str]:
    """What was estimated and from what, what was not tried, and what no packing would cost."""
    found = (_estimated(comparison.entries), _left_out(comparison.left_out), _unpacked(comparison.unpacked))
    return [note for note in found if note]


def _estimated(entries: Sequence[Trial]) -> str:
    sampled = [entry for entry in entries if entry.sampled_documents is not None]
    if not sampled:
        return ""
    names = ", ".join(dict.fromkeys(entry.label for entry in sampled))
    return (
        f"Estimated from the first {count(sampled[0].sampled_documents)} documents, packed alone: how alike the rows "
        f"of {names} are, and how many documents each holds. All other figures are of all documents."
    )


def _left_out(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        f"Not tried: {', '.join(names)}, which places documents one by one, and there are more than two million. "
        "Name it in --compare to have it planned, too."
    )


def _unpacked(found: Unpacked | None) -> str:
    if found is None:
        return ""
    return (
        f"Without packing, each document padded to the longest of its batch of {count(found.batch_size)}, "
        f"{percent(found.padding_ratio)} would be padding."
    )
