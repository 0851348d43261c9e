"""`pack`: token stores to a packed dataset.

Choose documents, plan rows from their lengths, shuffle the rows, write them. Tokens move once, or twice if they exceed
the memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from packtool.choosing.asked import Asked
from packtool.choosing.choose import choose_documents
from packtool.choosing.chosen import Chosen
from packtool.choosing.documents import StoredDocuments
from packtool.choosing.whole_conversations import require_fit
from packtool.commands.corpus_rows import RowRecipe, columns_of, write_corpus
from packtool.commands.dataset_job import DatasetJob, DatasetResult, dataset_job
from packtool.commands.pack_recipe import PackRecipe
from packtool.commands.places import warn_of_scatter
from packtool.commands.planned_size import planned_size
from packtool.commands.stores_to_pack import known_dataset, require_stores
from packtool.formats.known import KnownDataset, Lookup, known
from packtool.formats.token_store import Corpus
from packtool.options.names import FIRST
from packtool.options.pack import PackArguments
from packtool.options.signature import takes
from packtool.outputs.output import Output
from packtool.places.typed import places_of
from packtool.planning.arrays import Arrays
from packtool.planning.packing.untrained import text_beyond
from packtool.planning.plan import Plan
from packtool.planning.shuffling.atom import AtomShuffle, atom_shuffles
from packtool.report.choice_words import left_out_of
from packtool.support.sizes import plural
from packtool.support.temporary import temporary_directory
from packtool.warnings import warn
from packtool.writing.planning import planned

log = logging.getLogger(__name__)

MOST_DOCUMENTS = 10_000_000
"""Documents that a dry run plans: seconds of work."""


@takes(PackArguments)
def pack(options: PackArguments) -> DatasetResult:
    """Pack token stores into rows.

    Raises:
        UsageError: options that make no sense, or do not fit together.
        DataError: a store is missing, unfinished or damaged, or the disk is full.
    """
    recipe = check(options)
    recipe.warn_of_order()
    with dataset_job("pack", recipe.options, options.stores) as job, temporary_directory() as work:
        corpus = Corpus(job.inputs)
        asked = require_stores(recipe, corpus.known, known)
        _warn_of_empty(corpus)
        rows = recipe.row_recipe(corpus.tokenizer)
        with job.budget.arrays_for(corpus.documents, work) as arrays:
            # Before the output is opened: the key depends on it, such as on a hold-out of a number of documents.
            chosen = _choose(job, recipe, asked, corpus, arrays)
            key = job.key(rows.strategy.name, rows.options, rows.order, *chosen.options, *rows.kept)
            with job.open_output(key) as output:
                if output.finished:
                    return job.kept(output)
                if output.preview:
                    return _preview(job, output, recipe, rows, corpus, chosen, work / "plans")
                return _write(job, output, recipe, rows, corpus, chosen)


def check(options: PackArguments) -> PackRecipe:
    """Check options that make no sense, alone or together; return what they ask for."""
    return PackRecipe.of(options)


def makes(options: PackArguments, look: Lookup) -> KnownDataset:
    """Check what is needed of the stores; return what is known of the dataset that is made of them."""
    recipe, stores = check(options), list(map(look, places_of(options.stores)))
    asked = require_stores(recipe, stores, look)
    return known_dataset(recipe, stores, asked)


def _warn_of_empty(corpus: Corpus) -> None:
    for store in corpus.stores:
        if not store.documents:
            what, remedy = "the store holds no document", "check the input and the filters of packtool tokenize"
            warn("no-documents", what, remedy=remedy, where=str(store.place))


def _choose(job: DatasetJob, recipe: PackRecipe, asked: Asked, corpus: Corpus, arrays: Arrays) -> Chosen:
    """Choose the documents to pack, and put them in the order that is asked for.

    Args:
        asked: which documents, settled.
        arrays: allocates arrays as long as the corpus.
    """
    chosen = choose_documents(corpus, asked, arrays)
    if recipe.options.too_long == "error":
        require_fit(corpus, recipe.options.longest_row, chosen.passes)
    if not recipe.ordered_by:
        return chosen
    from packtool.choosing.order import documents_in_order  # reads with Arrow, which takes a while to load

    memory = job.budget.memory
    order = documents_in_order(StoredDocuments(corpus, arrays), chosen.passes, recipe.ordered_by, memory)
    return replace(chosen, order=order)


@contextmanager
def _plan(
    job: DatasetJob, recipe: PackRecipe, rows: RowRecipe, corpus: Corpus, chosen: Chosen, scratch: Path
) -> Iterator[tuple[list[Plan], Sequence[AtomShuffle | None]]]:
    """Restrict the corpus to the chosen documents, for the block that runs; yield their plans, in the order asked for,
    and the shuffle of each plan's atoms, None where rows keep their order.

    Args:
        scratch: directory for files of plans.
    """
    options, order = recipe.options, None
    if chosen.order is not None:
        order = chosen.order.documents
    corpus_planned = planned(
        recipe.strategy,
        corpus,
        options,
        job.budget,
        scratch,
        chosen.passes,
        options.epoch,
        order,
        cut=options.too_long in ("cut", FIRST),
        most=rows.most,
    )
    with corpus_planned as plans:
        shuffles: Sequence[AtomShuffle | None] = [None] * len(plans)
        if rows.order is not None:
            shuffles = atom_shuffles(plans, seed=rows.order.seed, epoch=rows.order.epoch)
        yield plans, shuffles


def _preview(
    job: DatasetJob, output: Output, recipe: PackRecipe, rows: RowRecipe, corpus: Corpus, chosen: Chosen, scratch: Path
) -> DatasetResult:
    """Say how large the dataset would be, from its plans; nothing of it is written."""
    amounts = {"documents": corpus.documents, "tokens": corpus.tokens}
    left_out = left_out_of(chosen.choice)
    documents = chosen.count(corpus)
    if documents > MOST_DOCUMENTS:
        unknown = (
            f"a dry run plans at most {MOST_DOCUMENTS:,} documents, and these are {documents:,}; "
            "stats with --compare plans a sample of them"
        )
        return DatasetResult.previewed(output, job.options, amounts, unknown=unknown, left_out=left_out)
    scratch.mkdir()  # the output of a dry run has no scratch directory
    with _plan(job, recipe, rows, corpus, chosen, scratch) as (plans, shuffles):
        if rows.most is not None:
            beyond = text_beyond(corpus.lengths(), rows.most)
            after = f"{plural(beyond, 'token')} after the first {rows.most:,} of long documents"
            left_out = ", ".join(filter(None, (left_out, after)))
        columns_of(corpus, rows.kept)  # raises what the run would
        written = planned_size(corpus, plans, shuffles, rows, index_only=recipe.options.index_only)
        return DatasetResult.previewed(output, job.options, amounts, written=written, left_out=left_out)


def _write(
    job: DatasetJob, output: Output, recipe: PackRecipe, rows: RowRecipe, corpus: Corpus, chosen: Chosen
) -> DatasetResult:
    """Plan the chosen documents, and write their rows."""
    with _plan(job, recipe, rows, corpus, chosen, output.scratch) as (plans, shuffles):
        seconds = job.clock.seconds()
        log.info("%s: %d documents planned in %.1f s", recipe.strategy.name, corpus.documents, seconds["wall"])
        if job.budget.in_order and not recipe.options.index_only:
            warn_of_scatter(corpus, plans)
        return write_corpus(job, output, corpus, plans, shuffles, rows, chosen, {"planned": seconds})
