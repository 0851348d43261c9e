"""Results of the commands that write an output: all of it, a task's share, or the preview of `--dry-run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from packtool.commands.places import result_path
from packtool.options.shared import Writing
from packtool.places.typed import Typed, cache_directory, place_of
from packtool.sizes import free_bytes, plural
from packtool.storage.claim import lies_at


@dataclass(frozen=True)
class SeenFile:
    """An input file, with a look at its beginning.

    Attributes:
        name: as messages call it.
        format: jsonl, parquet and so on.
        compression: gzip, zstd, bz2, xz, or "".
        bytes: its size.
        documents: documents seen.
        whole: these are all of them; else there are more.
        problem: of the first record that can't be used; "" where all can.
    """

    name: str
    format: str
    compression: str
    bytes: int
    documents: int
    whole: bool
    problem: str


@dataclass(frozen=True)
class Preview:
    """The preview of a command: what it would do if it were run.

    Attributes:
        command: its name.
        output: where it would write.
        found: what lies there now: ``nothing``, ``unfinished`` or ``finished`` work of the same options and inputs,
            or ``other``.
        figures: what it would read and write, such as documents, rows, tokens and bytes.
        estimated: names of the figures that are estimates.
        files: the inputs, the first of them with a look at their documents.
        staging: directory for what is on its way to a URL; None for the user's cache.
        overwrite: what lies there would be replaced.
    """

    command: str
    output: Path | str
    found: str
    figures: dict[str, int]
    estimated: tuple[str, ...] = ()
    files: list[SeenFile] = field(default_factory=list)
    staging: Path | str | None = None
    overwrite: bool = False

    def __repr__(self) -> str:
        figures = ", ".join(f"{name}={value}" for name, value in self.figures.items())
        return f"<Preview: {self.command} would write {figures}>"

    @property
    def free_bytes(self) -> int:
        """Return the free bytes at the output, or in the staging directory of a URL."""
        place = self.output if isinstance(self.output, Path) else Path(self.staging or cache_directory())
        return free_bytes(place)


@dataclass(frozen=True)
class Part:
    """The work that one task did.

    Attributes:
        task: which it is, such as ``3/8``.
        pieces: blocks or shards that are its share, all of them done.
        of: how many there are in all.
    """

    task: str
    pieces: int
    of: int

    def __str__(self) -> str:
        return f"task {self.task}, {self.pieces:,} of {plural(self.of, 'piece')}"


@dataclass(frozen=True, kw_only=True)
class Result:
    """The output of a command, written or previewed.

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

    @classmethod
    def previewed(
        cls,
        command: str,
        options: Writing,
        output: Typed,
        key: str,
        figures: dict[str, int],
        estimated: Sequence[str] = ("bytes",),
        files: Sequence[SeenFile] = (),
    ) -> Self:
        """Return the result of a dry run.

        Args:
            key: of the options and inputs, to tell whether work of the same kind lies at the output.
            figures, estimated, files: as `Preview` has them.
        """
        path, found = result_path(output), lies_at(place_of(output), command, key)
        preview = Preview(
            command, path, found, figures, tuple(estimated), list(files), options.staging, options.overwrite
        )
        return cls(path=path, preview=preview)

    def held(self) -> object:
        """Summarise an output in a few words."""
        return ""

    def __repr__(self) -> str:
        what = self.preview or self.part or self.held()
        return f"<{type(self).__name__}: {self.path}, {what}{', kept' if self.kept else ''}>"


@dataclass(frozen=True, kw_only=True, repr=False)
class StoreResult(Result):
    """The token store that a command wrote.

    Attributes:
        counts: as in its manifest; empty after a dry run, and where there is a part.
    """

    counts: dict[str, int] = field(default_factory=dict)

    def held(self) -> object:
        return ", ".join(plural(self.counts[name], name[:-1]) for name in ("documents", "tokens") if self.counts)
