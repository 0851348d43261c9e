"""Account for a choice of documents: each document of a store is packed, or left out for one reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from packtool.choosing.asked import Asked
from packtool.choosing.documents import Codes, StoredDocuments
from packtool.choosing.rules import RULES
from packtool.errors import UsageError
from packtool.formats.schema import NOT_DRAWN, ChosenSource, LeftOut
from packtool.formats.token_store import TokenStore
from packtool.planning.arrays import blocks
from packtool.planning.plan import I64, Ints
from packtool.planning.selecting.mixture import Passes
from packtool.support.sizes import plural


def counts_of(codes: Codes, lengths: Ints) -> I64:
    """Count the documents of each code, and their tokens: (2, codes)."""
    out = np.zeros((2, 1 + len(RULES)), np.int64)
    for a, b in blocks(len(codes)):
        out[0] += np.bincount(codes[a:b], minlength=out.shape[1])
        out[1] += np.bincount(codes[a:b], weights=lengths[a:b], minlength=out.shape[1]).astype(np.int64)
    return out


@dataclass(frozen=True)
class StoreEpochs:
    """How often a store is packed."""

    asked: str  # epochs, a share or an amount, as the manifest records it
    epochs: Fraction  # the epochs that follow from it
    by_documents: bool = False  # a part of an epoch is measured in documents, else in tokens

    def counted(self, lengths: Ints) -> Ints:
        """Return the weight of each document in a part of an epoch: its tokens, or 1."""
        if self.by_documents:
            return np.broadcast_to(np.uint32(1), lengths.shape)
        return lengths


def source_of(store: TokenStore, lengths: Ints, chosen: Passes, counts: I64, mixed: StoreEpochs) -> ChosenSource:
    """Account for one store: each of its documents is packed, or left out for one reason."""
    kept, part = counts[:, 0], counts_of(chosen.part.view(np.uint8), lengths)[:, 1]
    different = kept if chosen.whole else part
    packed = chosen.whole * kept + part
    removed: dict[str, I64] = {}
    for rule, count in zip(RULES, counts[:, 1:].T, strict=True):
        removed[rule.reason] = removed.get(rule.reason, 0) + count
    removed[NOT_DRAWN] = kept - different
    return ChosenSource(
        documents=store.documents,
        tokens=store.tokens,
        left_out={reason: LeftOut(*count.tolist()) for reason, count in removed.items() if count[0]},
        asked=mixed.asked,
        epochs=str(mixed.epochs),
        chosen_documents=int(packed[0]),
        chosen_tokens=int(packed[1]),
        repeated_documents=int((packed - different)[0]),
        repeated_tokens=int((packed - different)[1]),
    )


def nothing_left(documents: StoredDocuments, asked: Asked) -> UsageError:
    """Return the error for a choice that leaves nothing; it names the option that took the most."""
    total = len(documents)
    if not total:
        return UsageError("nothing-chosen", "the stores hold no document", remedy="check the input of tokenize")
    counts = counts_of(documents.codes, documents.lengths)[0].tolist()
    taking = "--mix" if asked.tokens is None else "--tokens"
    flags = Counter(dict(zip([taking, *(rule.flag for rule in RULES)], counts, strict=True)))
    [(flag, most), *others] = flags.most_common()
    if flag == "--holdout" and asked.part == "holdout":
        what = f"{asked.holdout} holds out none of the {plural(total, 'document')}"
        return UsageError("nothing-chosen", what, remedy="hold out more, or a number of documents", where=flag)
    what = f"leaves out {most:,} of {plural(total, 'document')}"
    for other, count in others:
        if count:
            what += f", {other} {count:,}"
    what += ", so none is left"
    return UsageError("nothing-chosen", what, remedy="loosen it", where=flag)
