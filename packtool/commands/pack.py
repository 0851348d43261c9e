"""`pack`: token stores to a packed dataset.

Choose documents, plan rows from their lengths, shuffle the rows, write them. Tokens move once, or twice if they exceed
the memory.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from packtool.choosing.choose import choose_documents
from packtool.choosing.chosen import Chosen
from packtool.choosing.documents import StoredDocuments
from packtool.choosing.kept_columns import kept_values
from packtool.commands.corpus_rows import write_corpus
from packtool.commands.dataset_job import DatasetJob, DatasetResult, dataset_job
from packtool.commands.pack_recipe import PackRecipe
from packtool.commands.places import warn_of_scatter
from packtool.commands.stores_to_pack import require_stores
from packtool.commands.whole_conversations import require_fit
from packtool.formats.known import KnownDataset, Lookup, known
from packtool.formats.names import CATEGORY, LOSS, NUMBER, OFFSET, SEGMENT
from packtool.formats.schema import Options, PackedManifest
from packtool.formats.token_store import Corpus
from packtool.options.names import FIRST
from packtool.options.pack import PackArguments
from packtool.options.signature import takes
from packtool.outputs.output import Output
from packtool.places.npy import HEADER_BYTES
from packtool.places.typed import place_of, places_of
from packtool.planning.arrays import Arrays
from packtool.planning.packing.untrained import text_beyond
from packtool.planning.plan import Plan
from packtool.planning.shuffling.atom import AtomShuffle, atom_shuffles
from packtool.report.choice_words import left_out_of
from packtool.rows.layout import BATCH_TOKENS, Layout
from packtool.support.sizes import plural
from packtool.support.temporary import temporary_directory
from packtool.warnings import warn
from packtool.writing.planning import planned
from packtool.writing.shards import rows_per_shard

log = logging.getLogger(__name__)

MOST_DOCUMENTS = 10_000_000
"""Documents that a dry run plans: seconds of work."""
_OF_A_DOCUMENT = 4  # bytes of a document's length
_CHOSEN = 8  # bytes of the number of a document in its store, where documents were chosen


@takes(PackArguments)
def pack(options: PackArguments) -> DatasetResult:
    """Pack token stores into rows.

    Raises:
        UsageError: options that make no sense, or do not fit together.
        DataError: a store is missing, unfinished or damaged, or the disk is full.
    """
    recipe = check(options)
    recipe.warn_of_order()
    with dataset_job("pack", options, options.stores) as job, temporary_directory() as work:
        corpus = Corpus(job.inputs)
        longest = require_stores(recipe, [store.known for store in corpus.stores], known)
        _warn_of_empty(corpus)
        record = recipe.recorded(corpus.tokenizer)
        with job.budget.arrays_for(corpus.documents, work) as arrays:
            # Before the output is opened: the key depends on it, such as on a hold-out of a number of documents.
            chosen = _choose(job, recipe, corpus, arrays, longest)
            key = job.key(recipe.strategy.name, record, recipe.shuffle, *chosen.options, *recipe.kept)
            with job.open_output(key) as output:
                if output.finished:
                    return job.kept(output)
                if output.preview:
                    return _preview(job, output, recipe, corpus, chosen, work / "plans")
                return _write(job, output, recipe, record, corpus, chosen)


def check(options: PackArguments) -> PackRecipe:
    """Check options that make no sense, alone or together; return what they ask for."""
    return PackRecipe.of(options)


def makes(options: PackArguments, look: Lookup) -> KnownDataset:
    """Check what is needed of the stores; return what is known of the dataset that is made of them."""
    recipe, stores = check(options), list(map(look, places_of(options.stores)))
    require_stores(recipe, stores, look)
    return KnownDataset(
        place=place_of(options.output),
        kind=PackedManifest,
        tokenizer=stores[0].tokenizer,
        columns=[field.name for field in recipe.kept],
        masked=any(store.masked for store in stores),
        rows=recipe.rows,
    )


def _warn_of_empty(corpus: Corpus) -> None:
    for store in corpus.stores:
        if not store.documents:
            what, remedy = "the store holds no document", "check the input and the filters of packtool tokenize"
            warn("no-documents", what, remedy=remedy, where=str(store.place))


def _choose(job: DatasetJob, recipe: PackRecipe, corpus: Corpus, arrays: Arrays, longest: int | None) -> Chosen:
    """Choose the documents to pack, and put them in the order that is asked for.

    Args:
        arrays: allocates arrays as long as the corpus.
        longest: the most tokens of a conversation; longer ones are left out. None to keep all of them.
    """
    row_length = recipe.options.longest_row
    chosen = choose_documents(corpus, recipe.options, row_length=row_length, arrays=arrays, longest=longest)
    require_fit(corpus, recipe, chosen.passes)
    if not recipe.ordered_by:
        return chosen
    from packtool.choosing.order import documents_in_order  # reads with Arrow, which takes a while to load

    memory = job.budget.memory
    order = documents_in_order(StoredDocuments(corpus, arrays), chosen.passes, recipe.ordered_by, memory)
    return replace(chosen, order=order)


def _plan(
    job: DatasetJob, recipe: PackRecipe, corpus: Corpus, chosen: Chosen, scratch: Path
) -> AbstractContextManager[list[Plan]]:
    """Restrict the corpus to the chosen documents, and plan these in their order, for the block that runs."""
    order = None
    if chosen.order is not None:
        order = chosen.order.documents
    options = recipe.options
    return planned(
        recipe.strategy,
        corpus,
        options,
        job.budget,
        scratch,
        chosen.passes,
        options.epoch,
        order,
        cut=options.too_long in ("cut", FIRST),
        most=recipe.most,
    )


def _preview(
    job: DatasetJob, output: Output, recipe: PackRecipe, corpus: Corpus, chosen: Chosen, scratch: Path
) -> DatasetResult:
    """Say how large the dataset would be, from its plans; nothing of it is written."""
    known = {"documents": corpus.documents, "tokens": corpus.tokens}
    left_out = left_out_of(chosen.choice)
    documents = chosen.count(corpus)
    if documents > MOST_DOCUMENTS:
        unknown = (
            f"a dry run plans at most {MOST_DOCUMENTS:,} documents, and these are {documents:,}; "
            "stats with --compare plans a sample of them"
        )
        return DatasetResult.previewed(output, job.options, known, unknown=unknown, left_out=left_out)
    scratch.mkdir()  # the output of a dry run has no scratch directory
    with _plan(job, recipe, corpus, chosen, scratch) as plans:
        if recipe.most is not None:
            beyond = plural(text_beyond(corpus.lengths(), recipe.most), "token")
            after = f"{beyond} after the first {recipe.most:,} of long documents"
            left_out = ", ".join(filter(None, (left_out, after)))
        for field in recipe.kept:
            kept_values(corpus, field)  # raises what the run would
        written = _planned_size(corpus, plans, recipe)
        return DatasetResult.previewed(output, job.options, known, written=written, left_out=left_out)


def _write(
    job: DatasetJob, output: Output, recipe: PackRecipe, record: Options, corpus: Corpus, chosen: Chosen
) -> DatasetResult:
    """Plan the chosen documents, and write their rows.

    Args:
        record: the options, for the manifest.
    """
    with _plan(job, recipe, corpus, chosen, output.scratch) as plans:
        seconds = job.clock.seconds()
        log.info("%s: %d documents planned in %.1f s", recipe.strategy.name, corpus.documents, seconds["wall"])
        if job.budget.in_order and not recipe.options.index_only:
            warn_of_scatter(corpus, plans)
        return write_corpus(
            job,
            output,
            corpus,
            plans,
            strategy=recipe.strategy,
            options=record,
            order=recipe.shuffle,
            kept=recipe.kept,
            chosen=chosen,
            most=recipe.most,
            facts={"planned": seconds},
        )


def _planned_size(corpus: Corpus, plans: Sequence[Plan], recipe: PackRecipe) -> dict[str, int]:
    """Count the rows and tokens that `pack` would write, padding included, and the bytes of its arrays and of the
    tokenizer's files.

    Returns:
        rows, tokens and bytes; these but for the manifest, the report, and the names of categories.
    """
    shuffles: Sequence[AtomShuffle | None] = [None] * len(plans)
    order = recipe.shuffle
    if order is not None:
        shuffles = atom_shuffles(plans, seed=order.seed, epoch=order.epoch)
    rows = tokens = 0
    size = sum(entry.bytes for entry in corpus.stores[0].manifest.tokenizer_files)
    for plan, shuffle in zip(plans, shuffles, strict=True):
        rows += plan.rows
        tokens += plan.rows * plan.sequence_length
        size += _bucket_bytes(corpus, plan, shuffle, recipe)
    if recipe.options.segments:
        size += _array_bytes(corpus.documents, _OF_A_DOCUMENT)
        if corpus.chosen is not None:
            size += _array_bytes(corpus.documents, _CHOSEN)
    for field in recipe.kept:
        value = NUMBER if field.number else CATEGORY
        size += _array_bytes(corpus.documents, value.itemsize)
    return {"rows": rows, "tokens": tokens, "bytes": size}


def _array_bytes(items: int, item_bytes: int) -> int:
    return HEADER_BYTES + items * item_bytes


def _bucket_bytes(corpus: Corpus, plan: Plan, shuffle: AtomShuffle | None, recipe: PackRecipe) -> int:
    """Count the bytes of the shards of a plan's rows."""
    order = None
    if shuffle is not None:
        order = shuffle.order()
    layout = Layout(plan, order)
    size, step = 0, rows_per_shard(plan, recipe.options.shard_tokens)
    for first in range(0, plan.rows, step):
        last = min(first + step, plan.rows)
        tokens = (last - first) * plan.sequence_length
        if not recipe.options.index_only:
            size += _array_bytes(tokens, corpus.dtype.itemsize)
            size += corpus.has_loss * _array_bytes(tokens, LOSS.itemsize)
        if recipe.options.segments:
            size += _array_bytes(_count_segments(layout, first, last), SEGMENT.itemsize)
            size += _array_bytes(last - first + 1, OFFSET.itemsize)
        atoms = layout.atoms(first, last)
        if atoms is not None:
            size += _array_bytes(len(atoms), OFFSET.itemsize)
    return size


def _count_segments(layout: Layout, first: int, last: int) -> int:
    """Count the segments of rows, some at a time."""
    count = 0
    step = max(1, BATCH_TOKENS // layout.plan.sequence_length)
    for begin in range(first, last, step):
        count += len(layout.segments(begin, min(begin + step, last)).document)
    return count
