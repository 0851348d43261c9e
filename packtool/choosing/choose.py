"""Choose which documents of the stores to pack, and how often, before anything is planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from packtool.choosing.asked import NOTHING_ASKED, Asked
from packtool.choosing.chosen import EVERYTHING, Chosen
from packtool.choosing.documents import Codes, StoredDocuments
from packtool.choosing.rules import RULES, leave_out, with_bound
from packtool.choosing.weights import ONCE, epochs_of, epochs_of_shares, shares_by_temperature, shares_of
from packtool.errors import UsageError
from packtool.formats.schema import NOT_DRAWN, Choice, ChosenSource, LeftOut
from packtool.formats.token_store import Corpus, TokenStore
from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.plan import I64, Ints, Mask
from packtool.planning.selecting.mixture import Passes, passes
from packtool.support.sizes import plural


def choose_documents(corpus: Corpus, asked: Asked, arrays: Arrays = IN_MEMORY) -> Chosen:
    """Choose documents of the corpus.

    Args:
        asked: of these stores, settled.
        arrays: makes arrays as long as the corpus.

    Raises:
        UsageError: options that leave no document.
        DataError: a list names a document that no store has.
    """
    asked = asked.with_contents()
    if asked == NOTHING_ASKED:
        return EVERYTHING
    corpus.work_in(arrays)
    documents = StoredDocuments(corpus, arrays)
    asked = with_bound(asked, documents)
    # First, which documents may be packed; then, how often those of each store are.
    leave_out(asked, documents)
    counts: list[I64] = []
    for number in range(len(corpus.stores)):
        here = documents.of_store(number)
        counts.append(_counts_of(documents.codes[here], documents.lengths[here]))
    mixture = _mixture(asked, counts)
    if asked.mix is not None:
        asked = replace(asked, mix=[store.asked for store in mixture])
    chosen: list[Passes] = []
    sources: list[ChosenSource] = []
    for number, store in enumerate(corpus.stores):
        here = documents.of_store(number)
        lengths, codes = documents.lengths[here], documents.codes[here]
        weighed, epochs = mixture[number].counted(lengths), mixture[number].epochs
        taken = passes(weighed, _kept(codes, arrays), epochs, asked.seed or 0, arrays)
        chosen.append(taken)
        sources.append(_source_of(store, lengths, taken, counts[number], mixture[number]))
    if not sum(source.chosen_documents for source in sources):
        raise _nothing_left(documents, asked)
    return Chosen(Choice(options=asked.recorded(), sources=sources, documents=None), chosen)


def _mixture(asked: Asked, counts: Sequence[I64]) -> list[_StoreEpochs]:
    """Compute how often each store is packed.

    Args:
        counts: of the documents of each store, as `_counts_of` returns them.
    """
    most = asked.max_epochs
    if asked.tokens is None:
        mixed: list[_StoreEpochs] = []
        for (name, weight), count in zip(asked.weights, counts, strict=True):
            epochs = epochs_of(weight, int(count[0, 0]), int(count[1, 0]), name, most)
            mixed.append(_StoreEpochs(str(weight), epochs, by_documents=weight.unit == "documents"))
        return mixed
    left = np.stack(counts)[:, 1, 0].tolist()  # tokens of each store
    if asked.temperature is not None:
        shares = shares_by_temperature(left, asked.temperature)
    elif asked.weights[0][1] is ONCE:  # nothing is asked of any store
        shares = shares_of(left)
    else:
        shares = shares_of([weight.number for _, weight in asked.weights])
    names = [name for name, _ in asked.weights]
    of_stores = epochs_of_shares(shares, left, names, asked.tokens, most or 1, stop=asked.stop)
    return list(map(_StoreEpochs, map(str, shares), of_stores))


def _kept(codes: Codes, arrays: Arrays) -> Mask:
    """Mark the documents that no rule leaves out."""
    return arrays.filled(len(codes), np.bool_, lambda a, b: codes[a:b] == 0)


def _counts_of(codes: Codes, lengths: Ints) -> I64:
    """Count the documents of each code, and their tokens: (2, codes)."""
    out = np.zeros((2, 1 + len(RULES)), np.int64)
    for a, b in blocks(len(codes)):
        out[0] += np.bincount(codes[a:b], minlength=out.shape[1])
        out[1] += np.bincount(codes[a:b], weights=lengths[a:b], minlength=out.shape[1]).astype(np.int64)
    return out


@dataclass(frozen=True)
class _StoreEpochs:
    """How often a store is packed."""

    asked: str  # epochs, a share or an amount, as the manifest records it
    epochs: Fraction  # the epochs that follow from it
    by_documents: bool = False  # a part of an epoch is measured in documents, else in tokens

    def counted(self, lengths: Ints) -> Ints:
        """Return the weight of each document in a part of an epoch: its tokens, or 1."""
        if self.by_documents:
            return np.broadcast_to(np.uint32(1), lengths.shape)
        return lengths


def _source_of(store: TokenStore, lengths: Ints, chosen: Passes, counts: I64, mixed: _StoreEpochs) -> ChosenSource:
    """Account for one store: each of its documents is packed, or left out for one reason."""
    kept, part = counts[:, 0], _counts_of(chosen.part.view(np.uint8), lengths)[:, 1]
    different = part
    if chosen.whole:
        different = kept
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


def _nothing_left(documents: StoredDocuments, asked: Asked) -> UsageError:
    """Return the error for a choice that leaves nothing; it names the option that took the most."""
    total = len(documents)
    if not total:
        return UsageError("nothing-chosen", "the stores hold no document", remedy="check the input of tokenize")
    counts = _counts_of(documents.codes, documents.lengths)[0].tolist()
    taking = "--tokens"
    if asked.tokens is None:
        taking = "--mix"
    flags = Counter({taking: counts[0]})
    for rule, count in zip(RULES, counts[1:], strict=True):
        flags[rule.flag] = count
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
