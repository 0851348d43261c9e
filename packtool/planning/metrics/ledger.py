"""The ledger: every token of the stores is left out, placed or dropped; every token of the output is accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from packtool.errors import DataError

if TYPE_CHECKING:
    # Readers of manifests need not load what plans and counts.
    from packtool.planning.metrics.tally import Tally
    from packtool.planning.plan import Plan

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Ledger(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where every token went. All figures are tokens but `rows`.

    ``stored + packed_again = left_out + input`` and ``input = placed + dropped + untrained`` count text tokens (BOS
    included, EOS not); ``output = placed + repeated + eos + padding`` counts what the shards hold.

    Attributes:
        stored: text tokens of the stores.
        left_out: text tokens of documents that filters, lists, hold-outs or weights below 1 removed.
        packed_again: text tokens of documents that an earlier pass of a mixture has packed, counted each time.
        input: text tokens of all packed documents, counted as often as they are packed.
        placed: text tokens in the rows, each once.
        dropped: text tokens in no row, those of `untrained` apart.
        untrained: text tokens of pieces of cut conversations that are in no row, since nothing in the pieces trains;
            absent where there are none.
        repeated: text tokens in the rows that an earlier row already has.
        eos: EOS tokens written, whether stored or inserted.
        eos_inserted: EOS tokens written that no stored document had.
        eos_omitted: stored EOS tokens that were not written.
        padding: tokens that only fill rows.
        output: all tokens of the rows.
        rows: the rows.
        rounding: padding that rounds pieces up to the document multiple; null if no pieces are rounded.
        trained_stored: of each store, tokens of the packed documents that train, EOS included. This and the rest are
            null where all tokens train.
        trained: tokens of the rows that train.
        masked: tokens of the rows that do not, padding apart: ``output = trained + masked + padding``.
        trained_again: trained tokens that an earlier row already has, or that are an EOS the strategy inserted.
        trained_dropped: tokens that would train but are in no row; so ``trained_stored + trained_again = trained +
            trained_dropped``.
    """

    stored: Count
    left_out: Count
    packed_again: Count
    input: Count
    placed: Count
    dropped: Count
    untrained: Count | msgspec.UnsetType = msgspec.UNSET
    repeated: Count
    eos: Count
    eos_inserted: Count
    eos_omitted: Count
    padding: Count
    output: Count
    rows: Count
    rounding: Count | None = None
    trained_stored: list[Count] | None = None
    trained: Count | None = None
    masked: Count | None = None
    trained_again: Count | None = None
    trained_dropped: Count | None = None

    def unbalanced(self, documents: int) -> str | None:
        """Find the first equation that does not hold, with its two sides; None if all hold."""
        equations = {
            "stored + packed again = left out + input": (self.stored + self.packed_again, self.left_out + self.input),
            "input = placed + dropped + untrained": (self.input, self.placed + self.dropped + (self.untrained or 0)),
            "output = placed + repeated + eos + padding": (
                self.output,
                self.placed + self.repeated + self.eos + self.padding,
            ),
            "eos = documents + inserted - omitted": (self.eos, documents + self.eos_inserted - self.eos_omitted),
            "padding that rounds is part of the padding": (min(self.rounding or 0, self.padding), self.rounding or 0),
        }
        for equation, (left, right) in (equations | self._of_loss()).items():
            if left != right:
                return f"the ledger does not balance: {equation}, but {left} is not {right}"
        return None

    def _of_loss(self) -> dict[str, tuple[int, int]]:
        """Return the equations of tokens that train, with their two sides; {} if all tokens train."""
        stored, trained, masked = self.trained_stored, self.trained, self.masked
        again, dropped = self.trained_again, self.trained_dropped
        if not isinstance(stored, list):
            known = sum(isinstance(value, int) for value in (trained, masked, again, dropped))
            return {"figures of what trains = 0": (known, 0)} if known else {}
        if not (isinstance(trained, int) and isinstance(masked, int)):
            return {"figures of tokens that train and that do not = 2": (0, 2)}
        if not (isinstance(again, int) and isinstance(dropped, int)):
            return {"figures of tokens that train again and that are dropped = 2": (0, 2)}
        gone = self.dropped + (self.untrained or 0) + self.eos_omitted
        return {
            "output = trained + masked + padding": (self.output, trained + masked + self.padding),
            "trained stored + again = trained + dropped": (sum(stored) + again, trained + dropped),
            "tokens dropped that train are among those dropped": (min(max(dropped, 0), gone), dropped),
            "tokens that train again are among those repeated or inserted": (
                min(again, self.output - self.placed - self.padding),
                again,
            ),
        }


class ChosenText(NamedTuple):
    """Text tokens of the stores, and what became of them before anything was planned; see `Ledger`."""

    stored: int
    left_out: int
    packed_again: int


def balance(
    tokens: int,
    documents: int,
    plans: Sequence[Plan],
    tallies: Sequence[Tally],
    chosen: ChosenText | None = None,
    trained_stored: list[int] | None = None,
) -> Ledger:
    """Draw up the ledger of a packing, and check it.

    The tokens that the strategy left out by its own account (`plans`) are compared with the tokens in the rows
    (`tallies`): the two are counted independently.

    Args:
        tokens, documents: number of packed tokens and documents; every document ends with one stored EOS.
        chosen: text that was left out or packed again; None if every document is packed once.
        trained_stored: number of tokens of each store that train, counted as often as they are packed; None if all
            tokens train.

    Raises:
        DataError: the ledger does not balance, which means a defect in packtool.
    """
    chosen = chosen or ChosenText(tokens - documents, 0, 0)
    ledger = Ledger(
        stored=chosen.stored,
        left_out=chosen.left_out,
        packed_again=chosen.packed_again,
        input=tokens - documents,
        placed=_total(tallies, "placed"),
        dropped=_total(plans, "dropped"),
        untrained=_total(plans, "untrained") or msgspec.UNSET,
        repeated=_total(tallies, "repeated"),
        eos=_total(tallies, "eos"),
        eos_inserted=_total(plans, "eos_inserted"),
        eos_omitted=_total(plans, "eos_omitted"),
        padding=_total(tallies, "padding"),
        output=sum(plan.rows * plan.sequence_length for plan in plans),
        rows=_total(plans, "rows"),
    )
    if any(tally.multiple > 1 for tally in tallies):
        ledger = msgspec.structs.replace(ledger, rounding=_total(tallies, "rounding"))
    if trained_stored is not None:
        trained, again = _total(tallies, "trained"), _total(tallies, "trained_again")
        ledger = msgspec.structs.replace(
            ledger,
            trained_stored=trained_stored,
            trained=trained,
            masked=ledger.output - ledger.padding - trained,
            trained_again=again,
            trained_dropped=sum(trained_stored) + again - trained,
        )
    what = ledger.unbalanced(documents)
    if what:
        remedy = "do not use this output; report it with the command line and the manifest"
        raise DataError("ledger-unbalanced", what, remedy=remedy)
    return ledger


def _total(parts: Sequence[Plan] | Sequence[Tally], account: str) -> int:
    """Add up an account of all plans, or of all tallies."""
    return sum(getattr(part, account) for part in parts)


def require_counted(ledger: Ledger, tallies: Sequence[Tally], *, has_loss: bool, remedy: str, where: str) -> None:
    """Require that the counts of rows agree with the ledger of their dataset.

    Args:
        has_loss: whether the dataset has a loss; then tokens that train are compared, too.
        remedy: what to do if they differ.
        where: location of the dataset.

    Raises:
        DataError: with the first account that differs.
    """
    of_loss = ("trained", "trained_again") if has_loss else ()
    for name in ("placed", "repeated", "eos", "eos_inserted", "padding", "rounding", "output", "rows", *of_loss):
        counted, expected = _total(tallies, name), getattr(ledger, name) or 0
        if counted != expected:
            what = f"the rows hold {counted} {name}, but the ledger says {expected}"
            raise DataError("ledger-unbalanced", what, remedy=remedy, where=where)
