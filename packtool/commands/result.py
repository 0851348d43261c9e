"""What commands that write an output return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packtool.commands.part import Part
from packtool.commands.places import result_path
from packtool.commands.preview import Preview, SeenFile
from packtool.options.shared import Writing
from packtool.places.typed import Typed, place_of
from packtool.storage.state import lies_at


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a command wrote, or would write.

    Attributes:
        path: of the output.
        run: what `run.json` holds: workers, wall and CPU seconds; empty after a dry run.
        preview: what would be written, after a dry run.
        kept: it was finished before, and nothing was done.
        part: what a task with a share of the work did; nothing else is known then.
    """

    path: Path | str
    run: dict[str, Any] = field(default_factory=dict)
    preview: Preview | None = None
    kept: bool = False
    part: Part | None = None

    def held(self) -> object:
        """Say what was written, in a few words."""
        return ""

    def __repr__(self) -> str:
        what = self.preview or self.part or self.held()
        return f"<{type(self).__name__}: {self.path}, {what}{', kept' if self.kept else ''}>"


def previewed(
    command: str,
    options: Writing,
    output: Typed,
    key: str,
    figures: dict[str, int],
    estimated: Sequence[str] = ("bytes",),
    files: Sequence[SeenFile] = (),
) -> dict[str, Any]:
    """Return path and preview of the result of a dry run.

    Args:
        key: of what the output depends on; tells whether work of the same kind lies there.
        figures: what would be written.
        estimated: names of the figures that are estimates.
        files: that would be read.
    """
    path, found = result_path(output), lies_at(place_of(output), command, key)
    return {
        "path": path,
        "preview": Preview(
            command, path, found, figures, tuple(estimated), list(files), options.staging, options.overwrite
        ),
    }
