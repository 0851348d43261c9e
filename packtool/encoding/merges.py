"""Find the merges of a BPE that ever apply; an encoder needs no others, which may be more than half.

A tokenizer.json that was converted from ranked entries, as those of Llama 3 and Gemma were, has a merge for every way
to split an entry in two. But BPE comes to an entry in one way, wherever it stands: as it does to the entry alone, since
nothing was merged over its bounds before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

_Merges = list[str | tuple[str, str]]
_BYTE = "<0x"
"""How an entry of SentencePiece begins that stands for a byte, not for these characters."""
_LONGEST = 1 << 10
"""Characters of an entry, above which its merges are kept unseen: each takes a step."""


def without_idle(model: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """Return a BPE with those of its merges alone that may apply, as pairs, which are read faster; all of them, as they
    are, where it has no more than entries."""
    try:
        vocab = msgspec.json.decode(model["vocab"], type=dict[str, int])
        merges = msgspec.json.decode(model["merges"], type=_Merges)
        if len(merges) <= len(vocab):
            return dict(model)
        pairs = [tuple(merge.split(" ")) if isinstance(merge, str) else merge for merge in merges]
        return {**model, "merges": list(compress(pairs, applying(vocab, pairs).tolist()))}
    except (KeyError, ValueError, msgspec.MsgspecError):  # an odd file, which the encoder may refuse
        return dict(model)


def applying(vocab: Collection[str], pairs: Sequence[tuple[str, ...]]) -> npt.NDArray[np.bool_]:
    """Mark the merges that may apply to a text.

    Args:
        vocab: all entries.
        pairs: the merges, best first.

    Raises:
        KeyError: a part, what a merge makes of two, or one of its characters is no entry.
        ValueError: a merge has another number of parts.

    >>> applying(["a", "b", "c", "ab", "bc", "abc"], [("a", "b"), ("b", "c"), ("a", "bc"), ("ab", "c")]).tolist()
    [True, True, False, True]
    """
    number = {text: place for place, text in enumerate(vocab)}.__getitem__
    texts = ["".join(pair) for pair in pairs]
    left, right = np.array([(number(first), number(second)) for first, second in pairs], np.int64).T
    made = np.fromiter(map(number, texts), np.int64, len(texts))
    keys = left * len(vocab) + right
    order = np.argsort(keys)
    keys = keys[order]
    odd = np.fromiter((_BYTE in text or len(text) > _LONGEST for text in texts), np.bool_, len(texts))
    several = (np.bincount(made)[made] > 1) & ~odd
    if not several.any() or (keys[1:] == keys[:-1]).any():  # which of two ranks a pair has is the library's affair
        return np.ones(len(pairs), np.bool_)

    # Every entry that several merges make, as symbols, one entry after another; each step merges one pair of each.
    entries, firsts = np.unique(made[several], return_index=True)
    spelled = [texts[place] for place in np.flatnonzero(several)[firsts]]
    sizes = np.fromiter(map(len, spelled), np.int64, len(spelled))
    symbols = np.fromiter(map(number, "".join(spelled)), np.int64, int(sizes.sum()))
    last = np.full(len(vocab), -1)
    while len(entries):
        ends = np.cumsum(sizes)
        wanted = symbols * len(vocab) + np.append(symbols[1:], 0)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        ranks = np.where(keys[at] == wanted, order[at], len(pairs))
        ranks[ends - 1] = len(pairs)
        best = np.minimum.reduceat(ranks, ends - sizes)
        whole = sizes == 2
        last[entries[whole]] = best[whole]
        going = ~whole & (best < len(pairs))
        merged = np.flatnonzero(ranks == np.repeat(np.where(going, best, -1), sizes))
        _, leftmost = np.unique(np.searchsorted(ends, merged, side="right"), return_index=True)
        merged = merged[leftmost]
        symbols[merged] = made[best[going]]
        kept = np.repeat(going, sizes)
        kept[merged + 1] = False
        symbols, sizes, entries = symbols[kept], sizes[going] - 1, entries[going]
    chosen: npt.NDArray[np.bool_] = ~several | (last[made] == np.arange(len(pairs)))
    return chosen
