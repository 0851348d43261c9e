"""One run of `pack`, `shuffle` or `materialize`: its inputs, output and result; and how to write rows of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from packtool import __version__, packing
from packtool.clock import Clock
from packtool.commands.count_rows import source_mix
from packtool.commands.places import fetch_inputs, in_part, places_to_write_from
from packtool.commands.result import Result
from packtool.engines import engine_for
from packtool.errors import DataError
from packtool.metrics.ledger import balance
from packtool.options.pack import PackArguments
from packtool.options.shuffle import MaterializeArguments, ShuffleArguments
from packtool.places.place import MappedFile, Place
from packtool.places.typed import Typed
from packtool.plan import I64, Plan
from packtool.report.packed import packed_sources, read_report, report_of_rows
from packtool.report.schema import PackedReport
from packtool.shuffling.atom import AtomShuffle
from packtool.sizes import memory_granted
from packtool.storage import manifest as manifests
from packtool.storage.claim import claim, key_of
from packtool.storage.files import write_array
from packtool.storage.names import CHOSEN, LENGTHS, bucket_directory
from packtool.storage.output import Output
from packtool.storage.schema import (
    Choice,
    DatasetEntry,
    Options,
    OtherFile,
    PackedManifest,
    Shuffle,
    packed_version,
)
from packtool.storage.token_store import Corpus
from packtool.storage.tokenizer_files import copy_tokenizer
from packtool.temporary import discard_runs
from packtool.writing.memory import Budget
from packtool.writing.shards import BucketJob, BucketWriter, ShardForm, Written
from packtool.writing.source import StoreSource
from packtool.writing.stored_tokens import name_for


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
        stores: the stores given for inputs without tokens.
        options: as the command takes them.
        budget: memory and engine.
        clock: started with the command.
        held: contexts to leave when the command ends.
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

    def begin(self, *options: Any, known: dict[str, int]) -> Output | DatasetResult:
        """Prepare the output, or return the result where there is nothing to do: of a dry run, or of a finished run.

        Args:
            options: all that the output depends on, beside the inputs, packtool's version and `index_only`.
            known: amounts of the input, for a dry run.
        """
        without_tokens = ["index-only"] if self.options.index_only else []
        key = key_of(__version__, *options, *without_tokens, self.input_entries())
        if self.options.dry_run:
            return DatasetResult.previewed(self.command, self.options, self.options.output, key, known)
        place = self.held.enter_context(
            claim(
                self.options.output,
                self.command,
                self.options,
                key=key,
                inputs=map(str, self.inputs),
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
    ) -> Written:
        """Write the rows of each bucket.

        Args:
            read: files that the rows depend on.
        """
        checked = read if self.options.check_input else ()
        writer = BucketWriter(place, form, self.budget)
        return writer.write(buckets, checked, self.command, quiet=self.options.quiet)

    def finish(
        self,
        output: Output,
        manifest: PackedManifest,
        report: PackedReport | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> DatasetResult:
        """Publish what was written, with more `facts` in its `run.json`, and return the result."""
        run = {
            "inputs": [place.name for place in self.inputs],
            "workers": self.budget.engine.workers,
            "written": self.clock.seconds(),
            **(facts or {}),
        }
        output.finish(manifest, run)
        return DatasetResult(path=output.shown, report=report, run=run)


@contextmanager
def dataset_job(
    command: str,
    options: PackArguments | ShuffleArguments | MaterializeArguments,
    inputs: Typed | Sequence[Typed],
    stores: Typed | Sequence[Typed] = (),
) -> Iterator[DatasetJob]:
    """Set up a command's job, with an engine that runs as long as the block.

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


def write_corpus(
    job: DatasetJob,
    output: Output,
    corpus: Corpus,
    plans: Sequence[Plan],
    shuffles: Sequence[AtomShuffle | None],
    *,
    strategy: str,
    options: Options,
    order: Shuffle | None,
    choice: Choice | None = None,
    facts: Mapping[str, Any] | None = None,
) -> DatasetResult:
    """Write the rows of each plan, and all that goes with them.

    Args:
        shuffles: of each plan's atoms; None keeps the plan's order.
        options: for the manifest, as is `order`.
        choice: of the documents of the corpus, without a file yet; None where each is packed once.
        facts: for `run.json`.
    """
    index_only = job.options.index_only
    lengths, pad_id, with_segments = corpus.lengths(), options["pad_id"], options["segments"]
    multi_bucket = packing.strategy(strategy).multi_bucket
    directories = [bucket_directory(plan.sequence_length) if multi_bucket else "" for plan in plans]
    sources = [StoreSource(corpus, plan, pad_id) for plan in plans]
    written = job.write(
        output,
        ShardForm(lengths, options["shard_tokens"], with_segments, with_tokens=not index_only),
        [BucketJob(*each) for each in zip(directories, sources, shuffles, strict=True)],
        (file for file in corpus.files() if not index_only or file.entry.name.startswith(("offsets", "loss"))),
    )
    buckets, tallies = written.buckets, written.tallies
    chosen = None if choice is None else choice.text()
    trained = corpus.trained() if corpus.has_loss else None
    try:
        ledger = balance(corpus.tokens, corpus.documents, plans, tallies, chosen, trained)
    except DataError:
        for store in corpus.stores:
            store.require_trained()  # what the ledger goes by; else the fault is ours
        raise
    inputs = job.input_entries()
    report = report_of_rows(
        strategy=strategy,
        options=options,
        shuffle=order,
        ledger=ledger,
        tallies=tallies,
        sources=packed_sources(inputs, corpus.store_documents, lengths, choice, trained=ledger.trained_stored),
        source_mix=source_mix(output, buckets, corpus.dtype, corpus.store_documents, order),
    )
    manifest = PackedManifest(
        strategy=strategy,
        options=options,
        shuffle=order,
        inputs=inputs,
        store_documents=corpus.store_documents,
        tokenizer=corpus.tokenizer,
        dtype=corpus.dtype.str,
        pad_id=pad_id,
        documents=corpus.documents,
        choice=with_documents(choice, corpus.chosen if with_segments else None, output),
        ledger=ledger,
        lengths=write_array(output.staged / LENGTHS, lengths) if with_segments else None,
        report=manifests.write_report(output.staged, report),
        buckets=buckets,
        tokenizer_files=_tokenizer_files(corpus, output),
        **index_fields(job.inputs if index_only else None, output, has_loss=corpus.has_loss),
    )
    return job.finish(output, manifest, report, facts)


def with_documents(choice: Choice | None, documents: I64 | None, output: Output) -> Choice | None:
    """Write the file of a choice: the stored document behind each document, if that is known."""
    if choice is None or documents is None:
        return choice
    return msgspec.structs.replace(choice, documents=write_array(output.staged / CHOSEN, documents))


def index_fields(stores: Sequence[Place] | None, output: Output, *, has_loss: bool) -> dict[str, Any]:
    """Return the version of a manifest, and where the stores of a dataset without tokens are, if it has any."""
    return {
        "format_version": packed_version(index_only=stores is not None, has_loss=has_loss),
        "stores": UNSET if stores is None else index_names(stores, output.place),
    }


def index_names(stores: Sequence[Place], output: Typed) -> list[str]:
    """Return what the manifest of a dataset without tokens calls its stores. Errors are those of `name_for`."""
    return [name_for(store, str(output)) for store in stores]


def _tokenizer_files(corpus: Corpus, output: Output) -> list[OtherFile]:
    """Copy the tokenizer of the stores from the first that has its files: all of them have the same one."""
    for store in corpus.stores:
        if entries := store.manifest.tokenizer_files:
            return copy_tokenizer(store.place, entries, output.staged)
    return []
