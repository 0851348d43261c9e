"""One run of `pack`, `shuffle` or `materialize`: its inputs, options and resources, its output and its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from packtool.choosing.documents import names_of
from packtool.commands.places import fetch_inputs, in_part, places_to_write_from
from packtool.commands.result import CommandResult
from packtool.engines import engine_for
from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.formats.made_by import tokenizer_named
from packtool.formats.names import CHOSEN
from packtool.formats.schema import Choice, PackedManifest
from packtool.outputs.claim import key_of, open_output
from packtool.outputs.output import Output
from packtool.outputs.recorded import Recorded
from packtool.places.place import MappedFile, Place
from packtool.places.typed import Typed, place_of
from packtool.planning.plan import I64
from packtool.report.dataset_report import read_report
from packtool.report.types import PackedReport
from packtool.support.clock import Clock
from packtool.support.sizes import memory_granted
from packtool.support.temporary import discard_runs
from packtool.writing.memory import Budget

if TYPE_CHECKING:
    from packtool.options.pack import PackArguments  # each is loaded by its own command alone
    from packtool.options.shuffle import MaterializeArguments, ShuffleArguments


@dataclass(frozen=True, kw_only=True, repr=False)
class DatasetResult(CommandResult):
    """The packed dataset that `pack`, `shuffle` or `materialize` wrote.

    Attributes:
        report: the contents of its `report.json`; None after a dry run.
    """

    report: PackedReport | None = None

    def held(self) -> object:
        return self.report


@dataclass(frozen=True)
class DatasetJob:
    """A run of a command: its inputs, options and resources."""

    command: str  # name of the command
    inputs: Sequence[Place]  # datasets that it reads
    recorded: Recorded  # the same datasets, as they were when the run began
    stores: Sequence[Place]  # stores given for inputs without tokens
    options: PackArguments | ShuffleArguments | MaterializeArguments  # options as the command takes them
    budget: Budget  # memory and engine
    clock: Clock  # started with the command

    def key(self, *options: Any) -> str:
        """Return the key of the output: a digest of all that it depends on.

        Args:
            options: the options that matter to the bytes, apart from the inputs and `index_only`.

        Raises:
            DataError: an input was replaced while it was opened. What is made of it would be kept under a wrong key.
        """
        self.recorded.require_unchanged()
        without_tokens = ["index-only"] if self.options.index_only else []
        return key_of(*options, *without_tokens, self.recorded.entries)

    @contextmanager
    def open_output(self, key: str) -> Iterator[Output]:
        """Open the output for the block; fetch inputs at URLs if there is something to do."""
        place, inputs = place_of(self.options.output), map(str, self.inputs)
        with open_output(place, self.command, self.options, key=key, inputs=inputs) as output:
            if output.preview is None and not output.finished:
                fetch_inputs(self.inputs, quiet=self.options.quiet)
            yield output

    def checked(self, files: Iterable[MappedFile]) -> Iterable[MappedFile]:
        """Return the input files to hash while rows are written; no files if the input is trusted."""
        return files if self.options.check_input else ()

    def kept(self, output: Output) -> DatasetResult:
        """Return the result of an output that was finished before."""
        manifest = manifests.read_as(output.place, PackedManifest)
        report, run = read_report(output.place, manifest), manifests.read_run(output.place)
        return DatasetResult(path=output.place.shown, report=report, run=run, kept=True)

    def finish(
        self, output: Output, manifest: PackedManifest, report: PackedReport, facts: Mapping[str, Any]
    ) -> DatasetResult:
        """Publish the dataset, with more `facts` in its `run.json`, and return the result.

        Raises:
            DataError: an input was replaced while it was read.
        """
        self.recorded.require_unchanged(output)
        run = {
            "inputs": names_of(self.inputs).shortest,
            "tokenizer": tokenizer_named([*self.inputs, *self.stores]),
            "workers": self.budget.engine.workers,
            "written": self.clock.seconds(),
            **facts,
        }
        output.finish(manifest, run)
        return DatasetResult(path=output.place.shown, report=report, run=run)


@contextmanager
def dataset_job(
    command: str,
    options: PackArguments | ShuffleArguments | MaterializeArguments,
    inputs: Typed | Sequence[Typed],
    stores: Typed | Sequence[Typed] = (),
) -> Iterator[DatasetJob]:
    """Open the inputs of a command, and an engine that runs as long as the block.

    Args:
        inputs: the datasets to read, as the user typed them.
        stores: the stores that hold their tokens, as the user typed them.

    Raises:
        UsageError: options that make no sense.
    """
    clock = Clock()
    with (
        places_to_write_from(options, inputs, stores) as (datasets, tokens),
        engine_for(options.scheduler, options.workers, command, at_end=discard_runs) as engine,
    ):
        budget = Budget(memory_granted(options.memory), engine, in_order=in_part(datasets))
        recorded = Recorded.of(datasets)
        try:
            yield DatasetJob(command, datasets, recorded, tokens, options, budget, clock)
        except DataError:
            recorded.require_unchanged()  # tells more than an error about a file of an input that was replaced
            raise


def with_documents(choice: Choice | None, documents: I64 | None, output: Output) -> Choice | None:
    """Write the file of a choice: the stored document behind each document, if that is known."""
    if choice is None or documents is None:
        return choice
    return msgspec.structs.replace(choice, documents=output.array(CHOSEN, documents))
