"""Results of the commands that write an output, and what a dry run knows of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from packtool.formats import manifest as manifests
from packtool.formats.schema import StoreManifest
from packtool.options.arguments import plain_arguments
from packtool.options.shared import Writing
from packtool.outputs.claim import difference
from packtool.outputs.output import Output
from packtool.places.typed import cache_directory
from packtool.support.sizes import free_bytes, plural
from packtool.text.corpus.records import CorpusFile

if TYPE_CHECKING:
    from packtool.text.tokenizing.estimate import Estimate  # loads what other commands do without


@dataclass(frozen=True)
class Preview:
    """A dry run of a command, as far as its effect is known before anything is planned, filtered or encoded.

    Attributes:
        command: its name.
        options: the options that were given, inputs among them, as `packtool.options.arguments` writes them.
        output: where it would write.
        found: what lies there now: ``nothing``, ``unfinished`` or ``finished`` work of the same options and inputs,
            or ``other``.
        differs: an option that was another one when this command made what lies there; "" if none is known.
        known: amounts of its input, all of it, whatever options leave out: files, bytes, documents, rows, tokens.
        files: of a corpus.
        staging: directory for files that are to be uploaded to a URL; None for the user's cache.
        overwrite: the output that lies there would be replaced.
        written: amounts of the output, as far as they are known or estimated: rows, tokens, bytes.
        unknown: the reason why the size of the output is unknown; "" where it is known.
        estimate: what `tokenize` would write, estimated from a sample; None if nothing is estimated.
        workers: number of parallel workers.
        read: the fields that are read of the first record, and those that are not, in a line; "" if there is no record.
            A line for each layout where conversations have several.
        left_out: how many documents of the input are not taken, and why, in words; "" if all are.
    """

    command: str
    options: dict[str, Any]
    output: Path | str
    found: str
    known: dict[str, int]
    differs: str = ""
    files: Sequence[CorpusFile] = ()
    staging: Path | str | None = None
    overwrite: bool = False
    written: Mapping[str, int] = field(default_factory=dict)
    unknown: str = ""
    estimate: Estimate | None = None
    workers: int = 1
    read: str = ""
    left_out: str = ""

    def __repr__(self) -> str:
        known = ", ".join(f"{name}={value}" for name, value in self.known.items())
        return f"<Preview: {self.command} would read {known}>"

    @property
    def free_bytes(self) -> int:
        """Return the free bytes at the output, or in the staging directory of a URL."""
        place = self.output if isinstance(self.output, Path) else Path(self.staging or cache_directory())
        return free_bytes(place)


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The output of a command, written or previewed.

    Attributes:
        path: of the output.
        run: what `run.json` holds: workers, wall and CPU seconds; empty after a dry run.
        preview: what would be done, after a dry run.
        kept: it was finished before, and nothing was done.
    """

    path: Path | str
    run: dict[str, Any] = field(default_factory=dict)
    preview: Preview | None = None
    kept: bool = False

    @classmethod
    def previewed(
        cls,
        output: Output,
        options: Writing,
        known: dict[str, int],
        files: Sequence[CorpusFile] = (),
        written: Mapping[str, int] | None = None,
        unknown: str = "",
        estimate: Estimate | None = None,
        workers: int = 1,
        read: str = "",
        left_out: str = "",
    ) -> Self:
        """Return the result of a dry run.

        Args:
            output: opened for a dry run.
            options: of the command.
            known, files, written, unknown, estimate, workers, read, left_out: as `Preview` has them.
        """
        assert output.preview is not None
        preview = Preview(
            command=output.state.command,
            options=plain_arguments(options),
            output=output.place.shown,
            found=output.preview,
            known=known,
            differs=difference(output.place, output.state.command, options),
            files=files,
            staging=options.staging,
            overwrite=options.overwrite,
            written=written or {},
            unknown=unknown,
            estimate=estimate,
            workers=workers,
            read=read,
            left_out=left_out,
        )
        return cls(path=output.place.shown, preview=preview)

    def held(self) -> object:
        """Summarise an output in a few words."""
        return ""

    def __repr__(self) -> str:
        what = self.preview or self.held()
        kept = ", kept" if self.kept else ""
        return f"<{type(self).__name__}: {self.path}, {what}{kept}>"


@dataclass(frozen=True, kw_only=True, repr=False)
class StoreResult(CommandResult):
    """The token store that a command wrote.

    Attributes:
        counts: as in its manifest; empty after a dry run.
    """

    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def kept_at(cls, output: Output) -> Self:
        """Return the result for an output that an earlier run had finished."""
        counts = manifests.read_as(output.place, StoreManifest).counts
        return cls(path=output.place.shown, counts=counts, run=manifests.read_run(output.place), kept=True)

    def held(self) -> object:
        return ", ".join(plural(self.counts[name], name[:-1]) for name in ("documents", "tokens") if self.counts)
