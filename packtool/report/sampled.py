"""What of a comparison is estimated from a part of the documents."""

from __future__ import annotations

from collections.abc import Sequence

from packtool.report.figures import count
from packtool.report.schema import Trial


def sampled_note(entries: Sequence[Trial]) -> str:
    """What was estimated, and from what; empty where nothing was."""
    sampled = [entry for entry in entries if entry.sampled_documents is not None]
    if not sampled:
        return ""
    names = ", ".join(dict.fromkeys(entry.label for entry in sampled))
    return (
        f"Estimated from the first {count(sampled[0].sampled_documents)} documents, packed alone: how alike the rows "
        f"of {names} are, and how many documents each holds. All other figures are of all documents."
    )
