"""What of a comparison is estimated from a part of the documents, and what was left out of it."""

from __future__ import annotations

from collections.abc import Sequence

from packtool.report.figures import count
from packtool.report.schema import Comparison, Trial


def notes(comparison: Comparison) -> list[str]:
    """What readers of the figures should know: what was estimated, from what, and what was not tried."""
    return [note for note in (_estimated(comparison.entries), _left_out(comparison.left_out)) if note]


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
