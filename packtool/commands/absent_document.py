"""Say of a document that a packed dataset does not have what the dataset records: its side, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from packtool.commands.holdout import bound_of
from packtool.commands.stored_document import StoredDocument, stored_document
from packtool.formats.schema import ChosenSource, Options
from packtool.formats.token_store import TokenStore
from packtool.planning.selecting.subsets import held_out

Side = Literal["train", "holdout"]


@dataclass(frozen=True)
class AbsentDocument:
    """A document of a store that a dataset was packed from, and does not have.

    Attributes:
        store: the name of its store.
        stored: what the store knows of it.
        holdout: the amount that was held out, as it was written; None if nothing was, or if the dataset does not
            say of which hash on.
        side: of the hold-out that the document is on; None without `holdout`.
        packed_side: the side that the dataset has; None without `holdout`.
        left_out: documents of the store that are not in the dataset, by reason.
    """

    store: str
    stored: StoredDocument
    holdout: str | None
    side: Side | None
    packed_side: Side | None
    left_out: dict[str, int]

    @property
    def on_other_side(self) -> bool:
        """Whether it is on the side that the dataset does not have."""
        return self.side != self.packed_side


def absent_document(store: TokenStore, number: int, source: ChosenSource, options: Options) -> AbsentDocument:
    """Say what is recorded of a document that is not in a dataset.

    Args:
        number: of the document in its store.
        source: what the dataset took of the store.
        options: how the documents of the dataset were chosen.
    """
    holdout: str | None = None
    side: Side | None = None
    packed_side: Side | None = None
    bound = bound_of(options)
    if bound is not None:
        [held] = held_out(
            np.array([store.text_hash(number)], np.uint64), seed=int(options["holdout_seed"]), bound=bound
        )
        holdout, packed_side = str(options["holdout"]), options["part"]
        side = "train"
        if held:
            side = "holdout"
    left_out = {reason: each.documents for reason, each in source.left_out.items()}
    return AbsentDocument(store.place.name, stored_document(store, number), holdout, side, packed_side, left_out)
