"""What every shuffle shares: where it reads and writes, with what, and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtool.clock import Clock
from packtool.commands.preview import Preview
from packtool.report.packed import read_report
from packtool.report.schema import PackedReport
from packtool.storage import manifest as manifests
from packtool.storage.output import Output, key_of, look, prepare


@dataclass(frozen=True)
class ShuffleResult:
    """What `shuffle` wrote.

    Attributes:
        path: the packed dataset, or the order.
        report: the contents of its `report.json`; None for an order and after a dry run.
        run: what `run.json` holds: workers, wall and CPU seconds; empty after a dry run.
        preview: what would be written, after a dry run.
        kept: it was finished before, and nothing was done.
    """

    path: Path
    report: PackedReport | None
    run: dict[str, Any]
    preview: Preview | None = None
    kept: bool = False


@dataclass(frozen=True)
class Job:
    """Where to write, and with what."""

    source: Path
    output: Path
    memory: int
    workers: int
    overwrite: bool
    resume: bool
    dry_run: bool
    quiet: bool
    clock: Clock

    def begin(self, *options: Any, figures: dict[str, int]) -> Output | ShuffleResult:
        """Prepare the output, or say why there is nothing to do: a dry run, or a run that had finished.

        Args:
            options: all that the output depends on, beside the source.
            figures: what would be written, for a dry run.
        """
        key = key_of(*options, manifests.input_entry(self.source))
        if self.dry_run:
            found = look(self.output, "shuffle", key)
            return ShuffleResult(self.output, None, {}, Preview("shuffle", self.output, found, figures))
        place = prepare(
            self.output, "shuffle", key=key, inputs=[self.source], overwrite=self.overwrite, resume=self.resume
        )
        if not place.finished:
            return place
        report = read_report(place.path) if (place.path / manifests.REPORT).exists() else None
        return ShuffleResult(place.path, report, manifests.read_run(place.path), kept=True)

    def facts(self) -> dict[str, Any]:
        """What goes to `run.json`."""
        return {"workers": self.workers, "written": self.clock.seconds()}
