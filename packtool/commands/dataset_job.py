"""One run of `pack`, `shuffle` or `materialize`: its inputs, output and result; and how to write rows of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from packtool.commands.count_rows import source_mix
from packtool.commands.places import fetch_inputs, in_part, places_to_write_from
from packtool.commands.result import Result
from packtool.engines import engine_for
from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.formats.names import CHOSEN, LENGTHS, REPORT
from packtool.formats.schema import (
    Choice,
    DatasetEntry,
    Options,
    OtherFile,
    PackedManifest,
    Shuffle,
    packed_version,
)
from packtool.formats.token_store import Corpus
from packtool.options.pack import PackArguments
from packtool.options.shuffle import MaterializeArguments, ShuffleArguments
from packtool.outputs.claim import claim, key_of
from packtool.outputs.output import Output
from packtool.outputs.tokenizer_files import copy_tokenizer
from packtool.places.place import MappedFile, Place
from packtool.places.typed import Typed
from packtool.planning.metrics.ledger import balance
from packtool.planning.packing import Strategy
from packtool.planning.plan import I64, Plan
from packtool.planning.shuffling.atom import AtomShuffle, atom_shuffles
from packtool.report.packed import packed_sources, read_report, report_of_rows, stages_of
from packtool.report.schema import PackedReport
from packtool.support.clock import Clock
from packtool.support.sizes import memory_granted
from packtool.support.temporary import discard_runs
from packtool.support.version import __version__
from packtool.writing.memory import Budget
from packtool.writing.shards import write_shards
from packtool.writing.source import StoreSource
from packtool.writing.stored_tokens import name_for


@dataclass(frozen=True, kw_only=True, repr=False)
class DatasetResult(Result):
    """The result of `pack`, `shuffle` or `materialize`: a packed dataset, or the order of one.

    Attributes:
        report: the contents of its `report.json`; None for an order and after a dry run.
    """

    report: PackedReport | None = None

    def held(self) -> object:
        return self.report or "an order"


@dataclass(frozen=True)
class DatasetJob:
    """A run of a command: its inputs, options and resources.

    Attributes:
        command: its name.
        inputs: datasets that it reads.
        stores: the stores given for inputs without tokens.
        options: as the command takes them.
        budget: memory and engine.
        clock: started with the command.
    """

    command: str
    inputs: Sequence[Place]
    stores: Sequence[Place]
    options: PackArguments | ShuffleArguments | MaterializeArguments
    budget: Budget
    clock: Clock

    def input_entries(self) -> list[DatasetEntry]:
        """List the inputs as manifests identify them."""
        return [manifests.input_entry(place) for place in self.inputs]

    def key(self, *options: Any) -> str:
        """Return the key of the output: a digest of all that it depends on.

        Args:
            options: those that matter, apart from the inputs, packtool's version and `index_only`.
        """
        without_tokens = ["index-only"] if self.options.index_only else []
        return key_of(__version__, *options, *without_tokens, self.input_entries())

    def preview(self, key: str, known: dict[str, int]) -> DatasetResult:
        """Return the result of a dry run, with amounts of the input."""
        return DatasetResult.previewed(self.command, self.options, self.options.output, key, known)

    @contextmanager
    def claim(self, key: str) -> Iterator[Output]:
        """Claim the output for the block; fetch inputs at URLs unless it is finished already."""
        inputs = map(str, self.inputs)
        with claim(self.options.output, self.command, self.options, key=key, inputs=inputs) as output:
            if not output.finished:
                fetch_inputs(self.inputs, quiet=self.options.quiet)
            yield output

    def checked(self, files: Iterable[MappedFile]) -> Iterable[MappedFile]:
        """Return the input files to hash while rows are written: none where the input is trusted."""
        return files if self.options.check_input else ()

    def kept(self, output: Output) -> DatasetResult:
        """Return the result of an output that was finished before."""
        manifest = manifests.read_as(output.place, PackedManifest)
        report, run = read_report(output.place, manifest), manifests.read_run(output.place)
        return DatasetResult(path=output.shown, report=report, run=run, kept=True)

    def finish(
        self, output: Output, manifest: PackedManifest, report: PackedReport, facts: Mapping[str, Any]
    ) -> DatasetResult:
        """Publish what was written, with more `facts` in its `run.json`, and return the result."""
        run = {
            "inputs": [place.name for place in self.inputs],
            "workers": self.budget.engine.workers,
            "written": self.clock.seconds(),
            **facts,
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
        yield DatasetJob(command, datasets, tokens, options, budget, clock)


def write_corpus(
    job: DatasetJob,
    output: Output,
    corpus: Corpus,
    plans: Sequence[Plan],
    *,
    strategy: Strategy,
    options: Options,
    order: Shuffle | None,
    choice: Choice | None = None,
    facts: Mapping[str, Any] | None = None,
) -> DatasetResult:
    """Write the rows of each plan, and all that goes with them.

    Args:
        options: for the manifest, as is `order`: of atoms, which are shuffled here, or one that the plans have already.
        choice: of the documents of the corpus, without a file yet; None where each is packed once.
        facts: for `run.json`.
    """
    index_only = job.options.index_only
    lengths, pad_id, with_segments = corpus.lengths(), options["pad_id"], options["segments"]
    shuffles: Sequence[AtomShuffle | None] = [None] * len(plans)
    if order is not None and order.method == "atom":
        shuffles = atom_shuffles(plans, seed=order.seed, epoch=order.epoch)
    buckets, tallies = write_shards(
        output,
        [StoreSource(corpus, plan, pad_id) for plan in plans],
        shuffles,
        lengths,
        job.budget,
        by_length=strategy.multi_bucket,
        shard_tokens=options["shard_tokens"],
        multiple=options.get("document_multiple", 1),
        with_segments=with_segments,
        with_tokens=not index_only,
        checked=job.checked(
            file for file in corpus.files() if not index_only or file.entry.name.startswith(("offsets", "loss"))
        ),
        label=job.command,
        quiet=job.options.quiet,
    )
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
        strategy=strategy.name,
        options=options,
        shuffle=order,
        ledger=ledger,
        tallies=tallies,
        sources=packed_sources(inputs, corpus.store_documents, lengths, choice, trained=ledger.trained_stored),
        source_mix=source_mix(output, buckets, corpus.dtype, corpus.store_documents, order),
        stages=stages_of(plans),
    )
    manifest = PackedManifest(
        strategy=strategy.name,
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
        lengths=output.array(LENGTHS, lengths) if with_segments else None,
        report=output.file(REPORT, manifests.encode(report)),
        buckets=buckets,
        tokenizer_files=_tokenizer_files(corpus, output),
        **index_fields(job.inputs if index_only else None, output, has_loss=corpus.has_loss),
    )
    return job.finish(output, manifest, report, facts or {})


def with_documents(choice: Choice | None, documents: I64 | None, output: Output) -> Choice | None:
    """Write the file of a choice: the stored document behind each document, if that is known."""
    if choice is None or documents is None:
        return choice
    return msgspec.structs.replace(choice, documents=output.array(CHOSEN, documents))


def index_fields(stores: Sequence[Place] | None, output: Output, *, has_loss: bool) -> dict[str, Any]:
    """Return the version of a manifest, and where the stores of a dataset without tokens are, if it has any."""
    return {
        "format_version": packed_version(index_only=stores is not None, has_loss=has_loss),
        "stores": UNSET if stores is None else index_names(stores, output.place),
    }


def index_names(stores: Sequence[Place], output: Typed) -> list[str]:
    """Return the names of stores in the manifest of a dataset without tokens. Raises what `name_for` raises."""
    return [name_for(store, str(output)) for store in stores]


def _tokenizer_files(corpus: Corpus, output: Output) -> list[OtherFile]:
    """Copy the tokenizer of the stores from the first that has its files: all of them have the same one."""
    for store in corpus.stores:
        if entries := store.manifest.tokenizer_files:
            return copy_tokenizer(store.place, entries, output)
    return []
