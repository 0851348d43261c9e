"""The options of `pack`: checked before anything is read, and as the manifest describes them."""

from __future__ import annotations

from fractions import Fraction

from packtool import packing
from packtool.commands.choose import check_choice
from packtool.errors import UsageError
from packtool.options.declare import names_recorded
from packtool.options.pack import PackArguments
from packtool.packing import Strategy
from packtool.packing.bins.optimize import load_solver
from packtool.packing.options import check, mixes
from packtool.storage.manifest import Options, TokenizerInfo


def check_options(options: PackArguments) -> Strategy:
    """The strategy, after a look at whether its options fit together.

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


def padding_id(token: str | int | None, tokenizer: TokenizerInfo) -> int:
    """The id of the padding token: EOS unless one is given by id or by the text of an added token."""
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
    """The options that the output depends on, as the manifest has them: in full, so that no default is left to guess.

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
