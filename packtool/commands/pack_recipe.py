"""What `pack` is asked for, checked and read once, before a store is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from packtool.choosing.asked import Asked
from packtool.commands.corpus_rows import RowRecipe
from packtool.errors import UsageError
from packtool.formats.schema import Shuffle, TokenizerInfo
from packtool.options.kinds import KeptField, parse_kept
from packtool.options.names import FIRST, any_of
from packtool.options.order import OrderKey, order_keys
from packtool.options.pack import PackArguments
from packtool.options.record import recorded
from packtool.options.shared import DEFAULT_SEED
from packtool.planning import packing
from packtool.planning.packing import STRATEGIES, Strategy
from packtool.planning.packing.strategy import draws, mixes
from packtool.warnings import warn


@dataclass(frozen=True)
class PackRecipe:
    """How documents become rows."""

    options: PackArguments  # options, written in one way
    strategy: Strategy  # plans the rows
    asked: Asked  # documents that are packed, as far as that is known without the stores
    shuffle: Shuffle | None  # shuffle of the atoms, as the manifest records it; None for the order of the plan
    kept: Sequence[KeptField]  # columns of the stores that travel with the rows
    ordered_by: Sequence[OrderKey]  # fields that order documents before they are planned; empty for corpus order

    @classmethod
    def of(cls, options: PackArguments) -> PackRecipe:
        """Read options.

        Raises:
            UsageError: they make no sense, alone or together.
        """
        strategy = packing.strategy(options.strategy)
        packing.check(strategy, options)
        options = options.normalized()
        asked = Asked.of(options, options.longest_row)
        _check_segments(options)
        shuffle = None
        if options.shuffle:
            shuffle = Shuffle(method="atom", atom_size=options.atom_size, seed=options.seed, epoch=options.epoch)
        ordered_by = order_keys(options.order_by or ())
        return cls(options, strategy, asked, shuffle, parse_kept(options.keep), ordered_by)

    def row_recipe(self, tokenizer: TokenizerInfo) -> RowRecipe:
        """Return what is recorded, with the options in full: a manifest leaves no default to guess.

        An atom size that was not given is left out: atoms are rows. Mixing is left out if nothing is mixed, as in
        datasets written before there was a choice.

        Args:
            tokenizer: of the stores, which knows the padding token.

        Raises:
            UsageError: it has no such token.
        """
        options, strategy = self.options, self.strategy
        pad_id = padding_id(options.pad_token, tokenizer)
        mixed = mixes(strategy, options)
        record = recorded(replace(options, pad_token=pad_id, mix_rows=mixed), strategy.name)
        if "extra_capacity" in record:
            record["extra_capacity"] = options.extra
        if not mixed:
            record.pop("mix_rows", None)
        if not strategy.windowed:
            record.pop("window_tokens", None)
        record = {name.replace("pad_token", "pad_id"): value for name, value in record.items()}
        most: int | None = None
        if options.too_long == FIRST:
            record["too_long"] = FIRST
            most = options.longest_row
        if options.epoch:
            record["epoch"] = options.epoch
        # A shuffle records its own seed. For unshuffled rows, record the seed for later epochs.
        drawn = draws(strategy, mixed=mixed, reordered=options.epoch > 0)
        if drawn or (not options.shuffle and options.seed != DEFAULT_SEED):
            record["seed"] = options.seed
        return RowRecipe(strategy=strategy, options=record, order=self.shuffle, kept=self.kept, most=most)

    def warn_of_order(self) -> None:
        """Warn where an order of documents has no effect on which of them share rows."""
        if not self.ordered_by or self.strategy.neighbours:
            return
        what = f"{self.strategy.name} does not keep neighbours together, so that the order changes little"
        keeping = tuple(name for name, each in STRATEGIES.items() if each.neighbours)
        remedy = f"take {any_of(keeping)} to keep neighbours together, or leave it out"
        warn("order-without-effect", what, remedy=remedy, where="--order-by")


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
    names = ", ".join(tokenizer.added_tokens) or "none"
    what = f"{token!r} is not an added token of the tokenizer (it has: {names})"
    raise UsageError("unknown-token", what, remedy="give one of them, or an id", where="--pad-token")


def _check_segments(options: PackArguments) -> None:
    """Refuse to leave out the segment table where something needs it."""
    if options.segments:
        return
    remedy = "leave one of the two out"
    if options.index_only:
        what = "a dataset without tokens needs its segment table"
        raise UsageError("bad-option", what, remedy=remedy, where="--index-only")
    if options.keep:
        what = "columns are looked up by the segment table"
        raise UsageError("bad-option", what, remedy=remedy, where="--keep")
