"""`pack`: token stores to a packed dataset. Lengths → plan → permutation → rows → tokens, which move once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from packtool.commands.dataset_job import DatasetResult, dataset_job
from packtool.commands.document_choice import choosing, require_distinct
from packtool.commands.pack_options import check_options, conversations_whole, describe, padding_id
from packtool.commands.staging_limit import warn_of_scatter
from packtool.commands.write_corpus import write_corpus
from packtool.engines import Threads
from packtool.options.pack import PackArguments
from packtool.options.signature import takes
from packtool.selecting.mixture import Passes
from packtool.shuffling.atom import atom_shuffles
from packtool.storage.schema import Shuffle
from packtool.storage.token_store import Corpus
from packtool.temporary import temporary_directory
from packtool.writing.memory import Budget
from packtool.writing.planning import bytes_of_plans, planned

log = logging.getLogger(__name__)


@takes(PackArguments)
def pack(options: PackArguments) -> DatasetResult:
    """Pack token stores into rows.

    Raises:
        UsageError: options that make no sense, or do not fit together.
        DataError: a store is missing, unfinished or damaged, or the disk is full.
    """
    from importlib.metadata import version  # reads mail headers, which takes long to load

    chosen = check_options(options)
    strategy = options.strategy
    with dataset_job("pack", options, options.stores) as job:
        require_distinct(job.inputs)
        corpus = Corpus(job.inputs)
        described = describe(chosen, options, padding_id(options.pad_token, corpus.tokenizer))
        record = (
            Shuffle(method="atom", atom_size=options.atom_size, seed=options.seed, epoch=options.epoch)
            if options.shuffle
            else None
        )
        longest = options.sequence_length or max(options.buckets)
        whole = conversations_whole(corpus, options, chosen)
        with choosing(corpus, options, longest, job.budget, whole) as documents:
            choice = None if documents is None else documents.choice
            passes = None if documents is None else documents.passes
            place = job.begin(
                strategy,
                described,
                record,
                version("scipy") if options.optimize else None,
                *([] if choice is None else [choice.options]),
                figures=lambda: _figures(corpus, strategy, options, job.budget, passes),
            )
            if isinstance(place, DatasetResult):
                return place
            with planned(strategy, corpus, options, job.budget, place.scratch, passes, options.epoch) as plans:
                if job.budget.in_order and not options.index_only:
                    warn_of_scatter(corpus, plans)
                facts: dict[str, Any] = {"planned": job.clock.seconds()}
                log.info("%s: %d documents planned in %.1f s", strategy, corpus.documents, facts["planned"]["wall"])
                if proven := [plan.least_rows for plan in plans if plan.least_rows is not None]:
                    facts["least_rows"] = sum(proven)
                return write_corpus(
                    job,
                    place,
                    corpus,
                    plans,
                    atom_shuffles(plans, seed=options.seed, epoch=options.epoch)
                    if options.shuffle
                    else [None] * len(plans),
                    strategy=strategy,
                    multi_bucket=chosen.multi_bucket,
                    options=described,
                    record=record,
                    facts=facts,
                    choice=choice,
                )


def _figures(
    corpus: Corpus, strategy: str, options: PackArguments, budget: Budget, passes: Sequence[Passes] | None
) -> dict[str, int]:
    """Return what would be written, for a dry run."""
    kept, itemsize = corpus.stores[0].manifest.tokenizer_files, corpus.dtype.itemsize + corpus.has_loss
    budget = replace(budget, engine=Threads(budget.engine.workers))
    with (
        temporary_directory() as work,
        planned(strategy, corpus, options, budget, work, passes, options.epoch) as plans,
    ):
        return {
            "documents": corpus.documents,
            "rows": sum(plan.rows for plan in plans),
            "tokens": sum(plan.rows * plan.sequence_length for plan in plans),
            "bytes": bytes_of_plans(
                plans, 0 if options.index_only else itemsize, corpus.documents, kept, segments=options.segments
            ),
        }
