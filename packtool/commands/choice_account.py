"""Account for a choice of documents: each document of a store is packed, or left out for one reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from packtool.commands.left_out import REASONS, Codes
from packtool.errors import UsageError
from packtool.formats.schema import NOT_DRAWN, ChosenSource, LeftOut
from packtool.formats.token_store import TokenStore
from packtool.options.documents import DocumentOptions
from packtool.planning.arrays import blocks
from packtool.planning.plan import I64, Ints
from packtool.planning.selecting.mixture import Passes


def counts_of(codes: Codes, lengths: Ints) -> I64:
    """Count the documents of each code, and their tokens: (2, codes)."""
    out = np.zeros((2, 1 + len(REASONS)), np.int64)
    for a, b in blocks(len(codes)):
        out[0] += np.bincount(codes[a:b], minlength=out.shape[1])
        out[1] += np.bincount(codes[a:b], weights=lengths[a:b], minlength=out.shape[1]).astype(np.int64)
    return out


def source_of(
    store: TokenStore, lengths: Ints, chosen: Passes, counts: I64, asked: str, epochs: Fraction
) -> ChosenSource:
    """Account for one store: each of its documents is packed, or left out for one reason."""
    kept, part = counts[:, 0], counts_of(chosen.part.view(np.uint8), lengths)[:, 1]
    different = kept if chosen.whole else part
    packed = chosen.whole * kept + part
    left_out = {}
    for reason, removed in [*zip(REASONS, counts[:, 1:].T, strict=True), (NOT_DRAWN, kept - different)]:
        if removed[0]:
            left_out[reason] = LeftOut(*removed.tolist())
    return ChosenSource(
        documents=store.documents,
        tokens=store.tokens,
        left_out=left_out,
        asked=asked,
        epochs=str(epochs),
        chosen_documents=int(packed[0]),
        chosen_tokens=int(packed[1]),
        repeated_documents=int((packed - different)[0]),
        repeated_tokens=int((packed - different)[1]),
    )


def nothing_left(sources: Sequence[ChosenSource], options: DocumentOptions) -> UsageError:
    """Return the error for a choice that leaves nothing; it names the option that took the most."""
    total = sum(source.documents for source in sources)
    taken = Counter({NOT_DRAWN: 0})
    for source in sources:
        taken.update({reason: left_out.documents for reason, left_out in source.left_out.items()})
    [(worst, most)] = taken.most_common(1)
    if worst == "other_side" and options.part == "holdout":
        what = f"{options.holdout} holds out none of the {total:,} documents"
        return UsageError("nothing-chosen", what, remedy="hold out more, or a number of documents", where="--holdout")
    what = f"leaves out {most:,} of {total:,} documents, so none is left"
    return UsageError("nothing-chosen", what, remedy="loosen it", where={**REASONS, NOT_DRAWN: "--mix"}[worst])
