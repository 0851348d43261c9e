"""`pack`: token stores to a packed dataset. Lengths → plan → permutation → rows → tokens, which move once."""

from __future__ import annotations

import logging
from fractions import Fraction
from typing import Any

from packtool import packing
from packtool.commands.dataset_job import DatasetResult, dataset_job, index_names, write_corpus
from packtool.commands.document_choice import check_choice, choose, require_distinct
from packtool.commands.places import warn_of_scatter
from packtool.errors import DataError, UsageError
from packtool.options.declare import names_recorded
from packtool.options.pack import PackArguments
from packtool.options.shared import DEFAULT_SEED
from packtool.options.signature import takes
from packtool.packing import Strategy
from packtool.packing.strategy import check, draws, mixes
from packtool.shuffling.atom import atom_shuffles
from packtool.sizes import plural
from packtool.storage.schema import Options, Shuffle, TokenizerInfo
from packtool.storage.token_store import Corpus
from packtool.temporary import temporary_directory
from packtool.writing.planning import planned

log = logging.getLogger(__name__)


@takes(PackArguments)
def pack(options: PackArguments) -> DatasetResult:
    """Pack token stores into rows.

    Raises:
        UsageError: options that make no sense, or do not fit together.
        DataError: a store is missing, unfinished or damaged, or the disk is full.
    """

    strategy = check_options(options)
    with dataset_job("pack", options, options.stores) as job:
        require_distinct(job.inputs)
        if options.index_only:
            index_names(job.inputs, options.output)
        corpus = Corpus(job.inputs)
        described = _describe(strategy, options, padding_id(options.pad_token, corpus.tokenizer))
        order = None
        if options.shuffle:
            order = Shuffle(method="atom", atom_size=options.atom_size, seed=options.seed, epoch=options.epoch)
        whole = _most_of_conversation(corpus, options, strategy)
        row_length = options.sequence_length or max(options.buckets)
        with temporary_directory() as work, job.budget.arrays_for(corpus.documents, work) as arrays:
            chosen = choose(corpus, options, row_length, arrays, whole)
            output = job.begin(
                strategy.name,
                described,
                order,
                *chosen.options,
                known={"documents": corpus.documents, "tokens": corpus.tokens},
            )
            if isinstance(output, DatasetResult):
                return output
            with planned(
                strategy.name, corpus, options, job.budget, output.scratch, chosen.passes, options.epoch
            ) as plans:
                if job.budget.in_order and not options.index_only:
                    warn_of_scatter(corpus, plans)
                seconds = job.clock.seconds()
                log.info("%s: %d documents planned in %.1f s", strategy.name, corpus.documents, seconds["wall"])
                facts: dict[str, Any] = {"planned": seconds}
                return write_corpus(
                    job,
                    output,
                    corpus,
                    plans,
                    atom_shuffles(plans, seed=options.seed, epoch=options.epoch) if order else [None] * len(plans),
                    strategy=strategy.name,
                    options=described,
                    order=order,
                    choice=chosen.choice,
                    facts=facts,
                )


def check_options(options: PackArguments) -> Strategy:
    """Check that options make sense together, and that what they need is installed; return the strategy."""
    strategy = packing.strategy(options.strategy)
    check(strategy, options)
    check_choice(options)
    if options.index_only and not options.segments:
        what, remedy = "a dataset without tokens is its segment table", "leave one of the two out"
        raise UsageError("bad-option", what, remedy=remedy, where="--index-only")
    return strategy


def _most_of_conversation(corpus: Corpus, options: PackArguments, strategy: Strategy) -> int | None:
    """Return the length in tokens above which conversations are dropped; None to drop none.

    Raises:
        UsageError: the strategy would cut conversations without `--too-long cut`; or there are none.
        DataError: one is too long for a row, and `--too-long` is not given.
    """
    stores = [store for store in corpus.stores if store.manifest.conversations]
    if not stores and options.too_long != "error":
        remedy = "leave it out; --max-tokens leaves out texts"
        raise UsageError("bad-option", "no store holds conversations", remedy=remedy, where="--too-long")
    if not stores or options.too_long == "cut":
        return None
    if not strategy.whole:
        what = f"{strategy.name} cuts documents that would fit a row, and {stores[0].place} holds conversations"
        remedy = "give bfd, ffd, first-fit-shuffle or padding, or --too-long cut"
        raise UsageError("conversations-cut", what, remedy=remedy, where="--strategy")
    row = min(options.atom, options.row_length)
    if options.too_long == "drop":
        return row
    for store in stores:
        lengths = store.lengths()
        longer = lengths > row
        if options.max_tokens is not None:
            longer &= lengths <= options.max_tokens
        if longer.any():
            count = plural(int(longer.sum()), "conversation")
            what = f"{count} of {store.documents:,} do not fit a row of {row:,} tokens"
            remedy = f"give --too-long drop or cut, or longer rows: the longest has {int(lengths.max()):,} tokens"
            raise DataError("conversations-too-long", what, remedy=remedy, where=str(store.place))
    return None


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


def _describe(strategy: Strategy, options: PackArguments, pad_id: int) -> Options:
    """Describe the options that the output depends on for the manifest, in full, so that no default is left to guess.

    An atom size that was not given is left out: atoms are rows.
    """
    described: Options = {}
    for name in names_recorded(PackArguments, strategy.name):
        value = mixes(strategy, options) if name == "mix_rows" else options.in_effect(name)
        if name == "pad_token":
            described["pad_id"] = pad_id
        elif name == "mix_rows":
            if value:  # not mentioned otherwise, as in datasets written before there was a choice
                described[name] = True
        elif value is not None and (name != "window_tokens" or strategy.windowed):
            described[name] = str(value) if isinstance(value, Fraction) else value
    if options.epoch:
        described["epoch"] = options.epoch
    # The seed of a shuffle is recorded with it. Of rows in corpus order it is that of the epochs to come.
    if draws(strategy, described) or (not options.shuffle and options.seed != DEFAULT_SEED):
        described["seed"] = options.seed
    return described
