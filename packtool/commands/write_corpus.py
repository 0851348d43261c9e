"""Write a packed dataset from plans of a corpus: the last step of `pack`, and of shuffling a token store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from packtool.commands.count_rows import source_mix
from packtool.commands.dataset_job import DatasetJob, DatasetResult
from packtool.metrics.ledger import balance
from packtool.places.place import MappedFile, Place
from packtool.plan import Plan
from packtool.report.packed import packed_sources, report_of_rows
from packtool.shuffling.atom import AtomShuffle
from packtool.storage import manifest as manifests
from packtool.storage.files import write_array
from packtool.storage.names import CHOSEN, LENGTHS, bucket_directory
from packtool.storage.output import Output
from packtool.storage.packed import PackedDataset
from packtool.storage.schema import Choice, InputEntry, Options, PackedManifest, Shuffle, packed_version
from packtool.storage.token_store import Corpus
from packtool.storage.tokenizer_files import copy_tokenizer
from packtool.writing.shards import BucketJob, ShardForm
from packtool.writing.source import StoreSource
from packtool.writing.stored_tokens import relative_places


def write_corpus(
    job: DatasetJob,
    output: Output,
    corpus: Corpus,
    plans: Sequence[Plan],
    shuffles: Sequence[AtomShuffle | None],
    *,
    strategy: str,
    multi_bucket: bool,
    options: Options,
    record: Shuffle | None,
    facts: Mapping[str, Any] | None = None,
    choice: Choice | None = None,
) -> DatasetResult:
    """Write the rows of each plan, and all that goes with them.

    Args:
        shuffles: of each plan's atoms; None keeps the plan's order.
        strategy: its name, for manifest and report.
        multi_bucket: each plan's rows go to a directory of their own.
        options: as the manifest has them.
        record: how the manifest describes the order.
        facts: more of them for `run.json`.
        choice: which documents `corpus` has, its file not written yet; None for each of them once.
    """
    index_only = job.options.index_only  # no tokens, but where the stores are
    lengths, pad_id, with_segments = corpus.lengths(), options["pad_id"], options["segments"]
    form = ShardForm(lengths, options["shard_tokens"], with_segments, with_tokens=not index_only)
    directories = [bucket_directory(plan.sequence_length) if multi_bucket else "" for plan in plans]
    sources = [StoreSource(corpus, plan, pad_id) for plan in plans]
    tasks = [BucketJob(*each) for each in zip(directories, sources, shuffles, strict=True)]
    written = job.write(output, form, tasks, _files_read(corpus, index_only=index_only))
    if isinstance(written, DatasetResult):
        return written
    buckets, tallies = written.buckets, written.tallies
    chosen = None if choice is None else choice.text()
    trained = corpus.trained() if corpus.has_loss else None
    ledger = balance(corpus.tokens, corpus.documents, plans, tallies, chosen, trained)
    inputs = job.input_entries()
    report = report_of_rows(
        strategy=strategy,
        options=options,
        shuffle=record,
        ledger=ledger,
        tallies=tallies,
        sources=packed_sources(inputs, corpus.store_documents, lengths, choice, trained=ledger.trained_stored),
        source_mix=source_mix(output, buckets, corpus.dtype, corpus.store_documents, record),
    )
    run = {**job.facts(), **(facts or {})}
    output.finish(
        PackedManifest(
            strategy=strategy,
            options=options,
            shuffle=record,
            inputs=inputs,
            store_documents=corpus.store_documents,
            tokenizer=corpus.tokenizer,
            dtype=corpus.dtype.str,
            pad_id=pad_id,
            documents=corpus.documents,
            choice=_choice(output, corpus, choice, with_segments),
            ledger=ledger,
            lengths=write_array(output.staged / LENGTHS, lengths) if with_segments else None,
            report=manifests.write_report(output.staged, report),
            buckets=buckets,
            tokenizer_files=_tokenizer_files(corpus, output),
            **index_fields(job.inputs if index_only else None, output, has_loss=corpus.has_loss),
        ),
        run,
    )
    return DatasetResult(path=output.shown, report=report, run=run)


def index_fields(stores: Sequence[Place] | None, output: Output, *, has_loss: bool) -> dict[str, Any]:
    """Return the version of a manifest, and where the stores of a dataset without tokens are, if it has any."""
    version = packed_version(index_only=stores is not None, has_loss=has_loss)
    return {
        "format_version": version,
        "stores": UNSET if stores is None else relative_places(stores, output.place),
    }


def _files_read(corpus: Corpus, *, index_only: bool) -> Iterator[MappedFile]:
    """List the stores' files that rows depend on: without tokens, those of lengths and loss."""
    return (file for file in corpus.files() if not index_only or file.entry.name.startswith(("offsets", "loss")))


def _choice(output: Output, corpus: Corpus, choice: Choice | None, with_segments: bool) -> Choice | None:
    """Return the choice with its file, which says where the documents of the segment table come from."""
    if choice is None or not with_segments:
        return choice
    assert corpus.chosen is not None
    return msgspec.structs.replace(choice, documents=write_array(output.staged / CHOSEN, corpus.chosen))


def _tokenizer_files(corpus: Corpus, output: Output) -> list[InputEntry]:
    """Copy the tokenizer of the stores from the first that has its files: all of them have the same one."""
    for store in corpus.stores:
        if entries := store.manifest.tokenizer_files:
            return copy_tokenizer(store.place, entries, output.staged)
    return []


def copied_choice(dataset: PackedDataset, output: Output) -> Choice | None:
    """Copy the choice of a packed dataset for another order of its rows."""
    choice, chosen = dataset.manifest.choice, dataset.chosen()
    if choice is None or chosen is None:
        return choice
    return msgspec.structs.replace(choice, documents=write_array(output.staged / CHOSEN, np.concatenate(chosen)))
