"""One run of `pack` or `shuffle`: its input, output, engine and result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from packtool import __version__
from packtool.clock import Clock
from packtool.commands.part import Part, engine_of, require_all
from packtool.commands.places import fetch_inputs, in_part, places_to_write_from
from packtool.commands.result import Result, previewed
from packtool.options.pack import PackArguments
from packtool.options.shuffle import MaterializeArguments, ShuffleArguments
from packtool.places.place import MappedFile, Place
from packtool.places.typed import Typed
from packtool.report.packed import read_report
from packtool.report.schema import PackedReport
from packtool.sizes import memory_granted
from packtool.storage import manifest as manifests
from packtool.storage.claim import claim, key_of
from packtool.storage.output import Output
from packtool.storage.schema import DatasetEntry, PackedManifest
from packtool.writing.memory import Budget
from packtool.writing.shards import BucketJob, BucketWriter, ShardForm, Written


@dataclass(frozen=True, kw_only=True, repr=False)
class DatasetResult(Result):
    """What `pack`, `shuffle` or `materialize` wrote: a packed dataset, or the order of one.

    Attributes:
        report: the contents of its `report.json`; None for an order and after a dry run.
    """

    report: PackedReport | None = None

    def held(self) -> object:
        return self.report or "an order"


@dataclass(frozen=True)
class DatasetJob:
    """Where a command reads and writes, and with what.

    Attributes:
        command: its name.
        inputs: datasets that it reads.
        stores: where the tokens of those lie that hold none, as far as that was said.
        options: as the command takes them.
        budget: memory and engine.
        clock: started with the command.
        held: what is let go of when the command ends.
    """

    command: str
    inputs: Sequence[Place]
    stores: Sequence[Place]
    options: PackArguments | ShuffleArguments | MaterializeArguments
    budget: Budget
    clock: Clock
    held: ExitStack

    def input_entries(self) -> list[DatasetEntry]:
        """List the inputs as manifests identify them."""
        return [manifests.input_entry(place) for place in self.inputs]

    def begin(self, *options: Any, figures: Callable[[], dict[str, int]]) -> Output | DatasetResult:
        """Prepare the output, or say why there is nothing to do: a dry run, or a run that had finished.

        Args:
            options: all that the output depends on, beside the inputs, packtool's version, and whether it has tokens.
            figures: what would be written, for a dry run.
        """
        without_tokens = ["index-only"] if self.options.index_only else []
        key = key_of(__version__, *options, *without_tokens, self.input_entries())
        if self.options.dry_run:
            return DatasetResult(**previewed(self.command, self.options, self.options.output, key, figures()))
        place = self.held.enter_context(
            claim(
                self.options.output,
                self.command,
                self.options,
                key=key,
                inputs=map(str, self.inputs),
                share=self.budget.engine.share,
            )
        )
        if not place.finished:
            fetch_inputs(self.inputs, quiet=self.options.quiet)
            return place
        made = manifests.read(place.place)
        report = read_report(place.place, made) if isinstance(made, PackedManifest) else None
        return DatasetResult(path=place.shown, report=report, run=manifests.read_run(place.place), kept=True)

    def write(
        self, place: Output, form: ShardForm, buckets: Sequence[BucketJob], read: Iterable[MappedFile]
    ) -> Written | DatasetResult:
        """Write the rows of each bucket, or the share of them that a task has, of which its result is returned.

        Args:
            read: files that the rows depend on.

        Raises:
            DataError: it merges what tasks did, and pieces are missing.
        """
        checked = read if self.options.check_input else ()
        writer = BucketWriter(place, form, self.budget)
        written = writer.write(buckets, checked, self.command, quiet=self.options.quiet)
        share = self.budget.engine.share
        if share is None:
            return written
        if share.merges:
            require_all(str(place.place), written.missing, written.pieces, place.tasks)
            return written
        here = sum(map(share.has, range(written.pieces)))
        return DatasetResult(path=place.shown, part=Part(str(share), here, written.pieces))

    def facts(self) -> dict[str, Any]:
        """Return what goes into `run.json`."""
        names = [place.name for place in self.inputs]
        return {"inputs": names, "workers": self.budget.engine.workers, "written": self.clock.seconds()}


@contextmanager
def dataset_job(
    command: str,
    options: PackArguments | ShuffleArguments | MaterializeArguments,
    inputs: Typed | Sequence[Typed],
    stores: Typed | Sequence[Typed] = (),
) -> Iterator[DatasetJob]:
    """Make the job that a command's options ask for, with an engine that runs as long as the block.

    Args:
        inputs: what the user typed for the datasets that it reads.
        stores: and for the stores that hold their tokens.

    Raises:
        UsageError: options that make no sense.
    """
    clock = Clock()
    with (
        places_to_write_from(options, inputs, stores) as (datasets, tokens),
        engine_of(options, command) as engine,
        ExitStack() as held,
    ):
        yield DatasetJob(
            command=command,
            inputs=datasets,
            stores=tokens,
            options=options,
            budget=Budget(memory_granted(options.memory), engine, in_order=in_part(datasets)),
            clock=clock,
            held=held,
        )
