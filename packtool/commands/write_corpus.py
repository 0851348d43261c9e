"""Plans of a corpus to a packed dataset: the last step of `pack`, and of the shuffle of a token store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from packtool.commands.dataset_job import DatasetJob, DatasetResult
from packtool.metrics import balance
from packtool.plan import Plan
from packtool.report.packed import report_of_rows
from packtool.shuffling.atom import AtomShuffle
from packtool.storage import manifest as manifests
from packtool.storage.files import write_array
from packtool.storage.manifest import Options, PackedManifest, Shuffle
from packtool.storage.output import Output
from packtool.storage.packed import LENGTHS, bucket_directory
from packtool.storage.token_store import Corpus
from packtool.writing.buckets import BucketJob, BucketWriter
from packtool.writing.store_source import StoreSource


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
) -> DatasetResult:
    """Write the rows of each plan, and all that goes with them.

    Args:
        shuffles: of each plan's atoms; None keeps the plan's order.
        strategy: its name, for manifest and report.
        multi_bucket: each plan's rows go to a directory of their own.
        options: as the manifest has them.
        record: how the manifest describes the order.
        facts: more of them for `run.json`.
    """
    lengths, pad_id, with_segments = corpus.lengths(), options["pad_id"], options["segments"]
    writer = BucketWriter(output, lengths, options["shard_tokens"], with_segments, job.budget)
    buckets, tallies = writer.write(
        [
            BucketJob(
                bucket_directory(plan.sequence_length) if multi_bucket else "",
                StoreSource(corpus, plan, pad_id),
                shuffle,
            )
            for plan, shuffle in zip(plans, shuffles, strict=True)
        ],
        corpus.files() if job.check_input else (),
        job.command,
        quiet=job.quiet,
    )
    ledger = balance(corpus.tokens, corpus.documents, plans, [tally.accounts() for tally in tallies])
    report = report_of_rows(strategy=strategy, options=options, shuffle=record, ledger=ledger, tallies=tallies)
    run = {**job.facts(), **(facts or {})}
    output.finish(
        PackedManifest(
            strategy=strategy,
            options=options,
            shuffle=record,
            inputs=job.input_entries(),
            store_documents=[store.documents for store in corpus.stores],
            tokenizer=corpus.tokenizer,
            dtype=corpus.dtype.str,
            pad_id=pad_id,
            documents=corpus.documents,
            ledger=ledger,
            lengths=write_array(output.staged / LENGTHS, lengths) if with_segments else None,
            report=manifests.write_report(output.staged, report),
            buckets=buckets,
        ),
        run,
    )
    return DatasetResult(output.path, report, run)
