"""What a command would do, for `--dry-run`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from packtool.places.typed import cache_directory
from packtool.sizes import free_bytes


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
        problem: why the first record that can't be used can't be; "" for none.
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
    """What a command would do if it were run.

    Attributes:
        command: its name.
        output: where it would write.
        found: what lies there now: ``nothing``, ``unfinished`` or ``finished`` work of the same options and inputs,
            or ``other``.
        figures: what it would read and write, such as documents, rows, tokens and bytes.
        estimated: names of the figures that are estimates.
        files: that would be read, the first of them with a look at their documents.
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
        """Bytes free where the output would lie, or what is on its way to a URL."""
        place = self.output if isinstance(self.output, Path) else Path(self.staging or cache_directory())
        return free_bytes(place)
