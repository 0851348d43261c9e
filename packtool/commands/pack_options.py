"""The options of `pack`: check them before anything is read, and describe them for the manifest."""

from __future__ import annotations

from fractions import Fraction

from packtool import packing
from packtool.commands.document_choice import check_choice
from packtool.errors import DataError, UsageError
from packtool.options.declare import names_recorded
from packtool.options.pack import PackArguments
from packtool.packing import Strategy
from packtool.packing.bins.optimize import load_solver
from packtool.packing.strategy import check, mixes
from packtool.sizes import plural
from packtool.storage.schema import Options, TokenizerInfo
from packtool.storage.token_store import Corpus


def check_options(options: PackArguments) -> Strategy:
    """Check that options fit together; return the strategy.

    Raises:
        UsageError: they make no sense, do not fit together, or need a package that is not installed.
    """
    chosen = packing.strategy(options.strategy)
    check(chosen, options)
    check_choice(options)
    if options.index_only and not options.segments:
        what, remedy = "a dataset without tokens is its segment table", "leave one of the two out"
        raise UsageError("bad-option", what, remedy=remedy, where="--index-only")
    if options.optimize:
        load_solver()
    return chosen


def conversations_whole(corpus: Corpus, options: PackArguments, chosen: Strategy) -> int | None:
    """Return the length in tokens above which conversations are dropped; None to drop none.

    Raises:
        UsageError: the strategy would cut conversations, and that was not asked for; or there are none.
        DataError: one is too long for a row, and nothing says what to do with it.
    """
    stores = [store for store in corpus.stores if store.manifest.conversations]
    if options.too_long == "cut" or not stores:
        if options.too_long != "error" and not stores:
            remedy = "leave it out; --max-tokens leaves out texts"
            raise UsageError("bad-option", "no store holds conversations", remedy=remedy, where="--too-long")
        return None
    if not chosen.whole:
        what = f"{chosen.name} cuts documents that would fit a row, and {stores[0].place} holds conversations"
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
            what = (
                f"{plural(int(longer.sum()), 'conversation')} of {store.documents:,} do not fit a row of {row:,} tokens"
            )
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
    raise UsageError(
        "unknown-token",
        f"{token!r} is not an added token of the tokenizer (it has: {known})",
        remedy="give one of them, or an id",
        where="--pad-token",
    )


def describe(chosen: Strategy, options: PackArguments, pad_id: int) -> Options:
    """Describe the options that the output depends on for the manifest, in full, so that no default is left to guess.

    An atom size that was not given is left out: atoms are rows.
    """
    described: Options = {}
    for name in names_recorded(PackArguments, chosen.name):
        value = options.in_effect(name)
        if name == "pad_token":
            described["pad_id"] = pad_id
        elif name == "mix_rows":
            # As in datasets written before there was a choice, rows that are not mixed are not mentioned.
            described.update({name: True} if mixes(chosen, options) else {})
        elif name == "even_cost":
            described.update({name: True} if value else {})
        elif value is not None and (name != "window_tokens" or chosen.windowed):
            described[name] = str(value) if isinstance(value, Fraction) else value
    if options.epoch:
        described["epoch"] = options.epoch
    if chosen.random or "mix_rows" in described or options.epoch:
        described["seed"] = options.seed
    return described
