"""Write the rows of a corpus that was planned, and all that goes with them: tables, account, report and manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from packtool.choosing.chosen import Chosen
from packtool.commands.count_rows import neighbours_in_rows, rows_without_target, source_mix
from packtool.commands.dataset_job import DatasetJob, DatasetResult, with_documents
from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.formats.names import LENGTHS, REPORT, categories_file, column_file
from packtool.formats.schema import Bucket, Choice, KeptColumn, Options, OtherFile, PackedManifest, Shuffle
from packtool.formats.token_store import Corpus
from packtool.options.kinds import KeptField
from packtool.outputs.output import Output
from packtool.outputs.tokenizer_files import copy_tokenizer
from packtool.places.place import MappedFile
from packtool.planning.metrics.ledger import Ledger, balance
from packtool.planning.metrics.neighbours import Neighbours
from packtool.planning.metrics.tally import Tally
from packtool.planning.packing import Strategy
from packtool.planning.packing.untrained import text_beyond
from packtool.planning.plan import Plan, stages_of
from packtool.planning.shuffling.atom import AtomShuffle
from packtool.report.dataset_report import counted_report, packed_sources
from packtool.report.types import PackedReport
from packtool.rows.stored_tokens import names_for
from packtool.rows.unit_source import StoreSource
from packtool.writing.shards import Shards, write_shards

if TYPE_CHECKING:
    from packtool.choosing.kept_columns import KeptValues  # loads pyarrow.compute


@dataclass(frozen=True, kw_only=True)
class RowRecipe:
    """How the documents of a corpus become rows, as the manifest records it."""

    strategy: Strategy
    options: Options  # in full
    order: Shuffle | None  # the order of the rows; None for that of the plans
    kept: Sequence[KeptField]  # columns of the stores that travel with the rows
    most: int | None = None  # tokens of a document that are planned, its first; None for all


def write_corpus(
    job: DatasetJob,
    output: Output,
    corpus: Corpus,
    plans: Sequence[Plan],
    shuffles: Sequence[AtomShuffle | None],
    recipe: RowRecipe,
    chosen: Chosen,
    facts: Mapping[str, Any],
) -> DatasetResult:
    """Write the rows of each plan; finish the dataset.

    Args:
        shuffles: shuffle of each plan's atoms; None for rows that are written as they were planned.
        chosen: the documents of the corpus that are packed, and their order.
        facts: for `run.json`.
    """
    options, choice, index_only = recipe.options, chosen.choice, job.options.index_only
    lengths, with_segments = corpus.lengths(), options["segments"]
    columns = columns_of(corpus, recipe.kept)  # before anything is written: a value may be refused
    buckets, tallies = _write_rows(job, output, corpus, plans, shuffles, recipe)
    ledger = _ledger(corpus, plans, tallies, choice)
    mix = source_mix(output, buckets, corpus.store_documents, recipe.order)
    neighbours: Neighbours | None = None
    if chosen.order is not None and with_segments:
        neighbours = neighbours_in_rows(output, buckets, corpus, chosen.order)
    report = msgspec.structs.replace(
        _planned_report(job, corpus, plans, recipe, choice, ledger),
        source_mix=list(mix),
        neighbours=neighbours,
        rows_without_target=rows_without_target(tallies),
    )
    report = counted_report(report, tallies)
    stores = None
    if index_only:
        stores = names_for(job.inputs, str(output.place))
    manifest = PackedManifest(
        strategy=recipe.strategy.name,
        options=options,
        shuffle=recipe.order,
        inputs=job.recorded.entries,
        store_documents=corpus.store_documents,
        tokenizer=corpus.tokenizer,
        dtype=corpus.dtype.str,
        pad_id=options["pad_id"],
        documents=corpus.documents,
        choice=with_documents(choice, corpus.chosen if with_segments else None, output),
        ledger=ledger,
        lengths=output.array(LENGTHS, lengths) if with_segments else None,
        report=output.file(REPORT, manifests.encode(report)),
        buckets=buckets,
        tokenizer_files=_tokenizer_files(corpus, output),
        stores=stores,
        columns=_keep(output, columns),
    )
    return job.finish(output, manifest, report, facts)


def columns_of(corpus: Corpus, fields: Sequence[KeptField]) -> list[KeptValues]:
    """Read the columns that are kept of the documents of a corpus."""
    if not fields:
        return []
    from packtool.choosing.kept_columns import kept_values  # loads pyarrow.compute, 25 ms, which most runs do without

    columns = []
    for field in fields:
        columns.append(kept_values(corpus, field))
    return columns


def _write_rows(
    job: DatasetJob,
    output: Output,
    corpus: Corpus,
    plans: Sequence[Plan],
    shuffles: Sequence[AtomShuffle | None],
    recipe: RowRecipe,
) -> tuple[list[Bucket], list[Tally]]:
    """Write the shards of each plan; return what they are, and what was counted in them."""
    options, with_tokens = recipe.options, not job.options.index_only
    sources = [StoreSource(corpus, plan, options["pad_id"]) for plan in plans]
    shards = Shards(
        lengths=corpus.lengths(),
        shard_tokens=options["shard_tokens"],
        multiple=options.get("document_multiple", 1),
        with_segments=options["segments"],
        with_tokens=with_tokens,
    )
    return write_shards(
        output,
        sources,
        shuffles,
        shards,
        job.budget,
        by_length=recipe.strategy.multi_bucket,
        checked=job.checked(_files_read(corpus, tokens=with_tokens)),
        label=job.command,
        quiet=job.options.quiet,
    )


def _planned_report(
    job: DatasetJob, corpus: Corpus, plans: Sequence[Plan], recipe: RowRecipe, choice: Choice | None, ledger: Ledger
) -> PackedReport:
    """Return a report without the figures of rows."""
    inputs, lengths = job.recorded.entries, corpus.lengths()
    beyond: int | msgspec.UnsetType = msgspec.UNSET
    if recipe.most is not None:
        beyond = text_beyond(lengths, recipe.most)
    return PackedReport(
        strategy=recipe.strategy.name,
        options=msgspec.to_builtins(recipe.options),
        shuffle=recipe.order,
        batch_size=None,
        ledger=ledger,
        beyond=beyond,
        lengths=None,
        metrics=None,
        buckets=[],
        documents_per_row=[],
        sliding=None,
        stages=stages_of(plans) or None,
        sources=packed_sources(inputs, corpus.store_documents, lengths, choice, trained=ledger.trained_stored),
        choice=None if choice is None else choice.options,
    )


def _keep(output: Output, columns: Sequence[KeptValues]) -> list[KeptColumn]:
    """Write columns, and return their entries for the manifest."""
    entries = []
    for number, kept in enumerate(columns):
        categories = None
        if kept.categories is not None:
            categories = output.file(categories_file(number), manifests.encode(kept.categories))
        values = output.array(column_file(number), kept.values)
        entries.append(KeptColumn(name=kept.name, values=values, missing=kept.missing, categories=categories))
    return entries


def _files_read(corpus: Corpus, *, tokens: bool) -> Iterator[MappedFile]:
    """Yield the files of a corpus that are read to write its rows, with or without their tokens."""
    for file in corpus.files():
        if tokens or file.entry.name.startswith(("offsets", "loss")):
            yield file


def _ledger(corpus: Corpus, plans: Sequence[Plan], tallies: Sequence[Tally], choice: Choice | None) -> Ledger:
    chosen = trained = None
    if choice is not None:
        chosen = choice.text()
    if corpus.has_loss:
        trained = corpus.trained()
    try:
        return balance(corpus.tokens, corpus.documents, plans, tallies, chosen, trained)
    except DataError:
        # What the ledger goes by may be damaged in a store, which says so; else the fault is ours.
        for store in corpus.stores:
            store.require_trained()
        raise


def _tokenizer_files(corpus: Corpus, output: Output) -> list[OtherFile]:
    """Copy the tokenizer of the stores from the first that has its files: all of them have the same one."""
    for store in corpus.stores:
        entries = store.manifest.tokenizer_files
        if entries:
            return copy_tokenizer(store.place, entries, output)
    return []
