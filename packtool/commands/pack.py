"""`pack`: token stores to a packed dataset. Lengths → plan → permutation → rows → tokens, which move once."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from packtool.commands.corpus_rows import write_corpus
from packtool.commands.dataset_job import DatasetJob, DatasetResult, dataset_job, index_names
from packtool.commands.document_choice import Chosen, check_choice, choose
from packtool.commands.places import require_distinct, warn_of_scatter
from packtool.commands.planned_size import MOST_DOCUMENTS, planned_size
from packtool.errors import DataError, UsageError
from packtool.formats.schema import Options, Shuffle, TokenizerInfo
from packtool.formats.token_store import Corpus
from packtool.options.kinds import parse_kept
from packtool.options.names import listed
from packtool.options.order import order_keys
from packtool.options.pack import PackArguments
from packtool.options.record import recorded
from packtool.options.shared import DEFAULT_SEED
from packtool.options.signature import takes
from packtool.planning import packing
from packtool.planning.arrays import Arrays
from packtool.planning.packing import STRATEGIES, Strategy
from packtool.planning.packing.strategy import draws, mixes
from packtool.support.sizes import plural
from packtool.support.temporary import temporary_directory
from packtool.warnings import warn
from packtool.writing.kept_columns import require_columns
from packtool.writing.planning import planned

if TYPE_CHECKING:
    from packtool.commands.document_order import StoredOrder

log = logging.getLogger(__name__)


@takes(PackArguments)
def pack(options: PackArguments) -> DatasetResult:
    """Pack token stores into rows.

    Raises:
        UsageError: options that make no sense, or do not fit together.
        DataError: a store is missing, unfinished or damaged, or the disk is full.
    """
    strategy = check_options(options)
    _warn_of_order(strategy, options)
    with dataset_job("pack", options, options.stores) as job, temporary_directory() as work:
        require_distinct(job.inputs)
        if options.index_only:
            index_names(job.inputs, options.output)
        corpus, kept = Corpus(job.inputs), parse_kept(options.keep)
        require_columns(corpus, kept)
        described = _recorded(strategy, options, padding_id(options.pad_token, corpus.tokenizer))
        order = None
        if options.shuffle:
            order = Shuffle(method="atom", atom_size=options.atom_size, seed=options.seed, epoch=options.epoch)
        longest = _longest_conversation(corpus, options, strategy)
        row_length = options.sequence_length or max(options.buckets)
        with job.budget.arrays_for(corpus.documents, work) as arrays:
            chosen = choose(corpus, options, row_length, arrays, longest)
            _require_whole(corpus, chosen, options)
            ordered = _ordered(job, options, corpus, chosen, work, arrays)
            stored_order = groups = None
            if ordered is not None:
                stored_order, groups = ordered.documents, ordered.groups
            key = job.key(strategy.name, described, order, *chosen.options, *kept)
            with job.open_output(key) as output:
                if output.finished:
                    return job.kept(output)
                scratch, known = output.scratch, {"documents": corpus.documents, "tokens": corpus.tokens}
                if output.preview:
                    scratch = work / "plans"
                    scratch.mkdir()
                    documents = _documents(corpus, chosen)
                    if documents > MOST_DOCUMENTS:
                        unknown = (
                            f"a dry run plans at most {MOST_DOCUMENTS:,} documents, and these are {documents:,}; "
                            "packtool stats --compare plans a sample of them"
                        )
                        return job.previewed(output, known, unknown=unknown)
                with planned(
                    strategy,
                    corpus,
                    options,
                    job.budget,
                    scratch,
                    chosen.passes,
                    options.epoch,
                    stored_order,
                ) as plans:
                    if output.preview:
                        return job.previewed(output, known, planned_size(corpus, plans, options, kept, order))
                    seconds = job.clock.seconds()
                    log.info("%s: %d documents planned in %.1f s", strategy.name, corpus.documents, seconds["wall"])
                    columns = job.keep(output, corpus, kept)  # before the rows: a value may be refused
                    if job.budget.in_order and not options.index_only:
                        warn_of_scatter(corpus, plans)
                    return write_corpus(
                        job,
                        output,
                        corpus,
                        plans,
                        strategy=strategy,
                        options=described,
                        order=order,
                        choice=chosen.choice,
                        columns=columns,
                        groups=groups,
                        facts={"planned": seconds},
                    )


def _documents(corpus: Corpus, chosen: Chosen) -> int:
    """Count the documents to pack, each as often as it is packed."""
    if chosen.passes is None:
        return corpus.documents
    return sum(map(len, chosen.passes))


def _ordered(
    job: DatasetJob, options: PackArguments, corpus: Corpus, chosen: Chosen, work: Path, arrays: Arrays
) -> StoredOrder | None:
    """Return the chosen documents in the order that is asked for; None for corpus order."""
    if not options.order_by:
        return None
    from packtool.commands.document_order import documents_in_order  # reads with Arrow, which takes a while to load

    keys = order_keys(options.order_by)
    return documents_in_order(corpus.stores, chosen.passes, keys, job.budget.memory, work, arrays)


def _warn_of_order(strategy: Strategy, options: PackArguments) -> None:
    """Warn where an order of documents has no effect on which of them share rows."""
    if options.order_by and not strategy.neighbours:
        what = f"{strategy.name} does not put documents in a row for being next to each other"
        near = tuple(name for name, each in STRATEGIES.items() if each.neighbours)
        remedy = f"take {listed(near)} to keep neighbours together, or leave it out"
        warn("order-without-effect", what, remedy=remedy, where="--order-by")


def check_options(options: PackArguments) -> Strategy:
    """Check that options make sense together; return the strategy."""
    strategy = packing.strategy(options.strategy)
    packing.check(strategy, options)
    check_choice(options)
    if options.index_only and not options.segments:
        what, remedy = "a dataset without tokens needs its segment table", "leave one of the two out"
        raise UsageError("bad-option", what, remedy=remedy, where="--index-only")
    if options.keep and not options.segments:
        what, remedy = "columns are looked up by the segment table", "leave one of the two out"
        raise UsageError("bad-option", what, remedy=remedy, where="--keep")
    return strategy


def _longest_conversation(corpus: Corpus, options: PackArguments, strategy: Strategy) -> int | None:
    """Return the length in tokens above which conversations are dropped; None to drop none.

    Raises:
        UsageError: the strategy would cut conversations without `--too-long cut`; or there are none.
    """
    stores = [store for store in corpus.stores if store.manifest.conversations]
    if not stores and options.too_long != "error":
        remedy = "leave it out; --max-tokens leaves out texts"
        raise UsageError("bad-option", "no store holds conversations", remedy=remedy, where="--too-long")
    if not stores or options.too_long == "cut":
        return None
    if not (strategy.whole and strategy.keeps_eos):
        cuts = "cuts" if strategy.keeps_eos else "leaves out the EOS of"
        what = f"{strategy.name} {cuts} documents that would fit a row, and {stores[0].place} holds conversations"
        keeping = ", ".join(name for name, strategy in STRATEGIES.items() if strategy.whole and strategy.keeps_eos)
        remedy = f"give --too-long cut, or a strategy that keeps documents whole: {keeping}"
        raise UsageError("conversations-cut", what, remedy=remedy, where="--strategy")
    if options.too_long == "drop":
        return min(options.atom, options.row_length)
    return None


def _require_whole(corpus: Corpus, chosen: Chosen, options: PackArguments) -> None:
    """Require that the chosen conversations fit rows, if no option says what becomes of longer ones.

    Raises:
        DataError: one of them is too long for a row.
    """
    if options.too_long != "error":
        return
    for number, store in enumerate(corpus.stores):
        if not store.manifest.conversations:
            continue
        row = min(options.atom, options.row_length)  # buckets, which have no one length, take no conversations
        lengths = store.lengths()
        if chosen.passes is not None:
            passes = chosen.passes[number]
            taken = passes.part
            if passes.whole:
                taken = passes.kept
            lengths = lengths[taken]
        longer = int(np.count_nonzero(lengths > row))
        if longer:
            what = f"{plural(longer, 'conversation')} of {len(lengths):,} do not fit a row of {row:,} tokens"
            remedy = f"give --too-long drop or cut, or longer rows: the longest has {int(lengths.max()):,} tokens"
            raise DataError("conversations-too-long", what, remedy=remedy, where=str(store.place))


def padding_id(token: str | int | None, tokenizer: TokenizerInfo) -> int:
    """Return the id of the padding token: EOS unless another is given by id, or by the text of an added token."""
    if token is None:
        return tokenizer.eos_id
    if isinstance(token, str) and token in tokenizer.added_tokens:
        return tokenizer.added_tokens[token]
    if str(token).isdecimal():
        number = int(token)
        if number < tokenizer.vocab_size:
            return number
        remedy = f"give an id below {tokenizer.vocab_size}"
        raise UsageError("bad-option", f"{number} is out of range", remedy=remedy, where="--pad-token")
    known = ", ".join(tokenizer.added_tokens) or "none"
    what = f"{token!r} is not an added token of the tokenizer (it has: {known})"
    raise UsageError("unknown-token", what, remedy="give one of them, or an id", where="--pad-token")


def _recorded(strategy: Strategy, options: PackArguments, pad_id: int) -> Options:
    """Return the options that the output depends on, in full, so that a manifest leaves no default to guess.

    An atom size that was not given is left out: atoms are rows. Mixing is left out if nothing is mixed, as in datasets
    written before there was a choice.
    """
    mixed = mixes(strategy, options)
    drawn = draws(strategy, mixed=mixed, reordered=options.epoch > 0)
    found = recorded(replace(options, pad_token=pad_id, mix_rows=mixed), strategy.name)
    if "extra_capacity" in found:
        found["extra_capacity"] = options.extra
    if not found.get("mix_rows"):
        found.pop("mix_rows", None)
    if not strategy.windowed:
        found.pop("window_tokens", None)
    found = {name.replace("pad_token", "pad_id"): value for name, value in found.items()}
    if options.epoch:
        found["epoch"] = options.epoch
    # A shuffle records its own seed. For unshuffled rows, record the seed for later epochs.
    if drawn or (not options.shuffle and options.seed != DEFAULT_SEED):
        found["seed"] = options.seed
    return found
