"""Find runs of tokens that documents share with others: by hashes of all runs of the others, checked token by token."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.planning.plan import I64, Ints, offsets_of

U64 = npt.NDArray[np.uint64]
TokenArray = npt.NDArray[Any]

BYTES_A_TOKEN = 64
"""Memory that the runs of a token take, at most, while they are sorted."""
_MULTIPLIER = 0x9E3779B97F4A7C15
_SPREAD = np.uint64(0xBF58476D1CE4E5B9)
_PLACES_A_RUN = 8
"""Places of the filter for each run at the least; a run marks two, so 1 in 20 others passes at the most."""
_BLOCK = 1 << 16  # runs that are looked up at a time: their hashes stay in a core's cache


class SharedRun(NamedTuple):
    """A run that a document shares with another one.

    Attributes:
        document: number of the document.
        start: of the run in it, in tokens from its first.
        other: number of the other document.
        other_start: where the run begins in the other document.
    """

    document: int
    start: int
    other: int
    other_start: int


class TextRuns:
    """All runs of a number of tokens in the texts of some documents.

    A run lies in the text of one document, so it holds neither EOS nor the BOS that begins every document.

    Args:
        tokens: of all documents, one after the other, EOS last in each.
        lengths: of the documents, EOS included.
        size: tokens of a run.
        skipped: tokens at the begin of each document that are not of its text: 1 where there is a BOS, else 0.
        multiplier: of the hash; an even one makes different runs collide.

    >>> runs = TextRuns(np.array([5, 6, 7, 0]), np.array([4]), size=2, skipped=0)
    >>> runs.shared(np.array([6, 7, 0, 9, 6, 7, 0]), np.array([3, 4]))
    [SharedRun(document=0, start=0, other=0, other_start=1), SharedRun(document=1, start=1, other=0, other_start=1)]
    """

    def __init__(
        self, tokens: TokenArray, lengths: Ints, *, size: int, skipped: int, multiplier: int = _MULTIPLIER
    ) -> None:
        self._tokens = tokens
        self._size = size
        self._skipped = skipped
        self._multiplier = np.uint64(multiplier)
        self._offsets = offsets_of(lengths.astype(np.int64))
        starts = _starts(self._offsets, size, skipped)
        hashes = self._hashes(tokens)[starts]
        order = np.argsort(hashes, kind="stable")  # of equal runs, the first comes first
        self._known: U64 = hashes[order]
        self._starts: I64 = starts[order]
        bits = max(10, (_PLACES_A_RUN * len(starts)).bit_length())
        self._shifts = [np.uint64(64 - bits), np.uint64(max(0, 64 - 2 * bits))]
        self._filter = np.zeros(1 << bits, np.bool_)
        for shift in self._shifts:
            self._filter[self._marks(self._known, shift)] = True

    def __len__(self) -> int:
        return len(self._known)

    def shared(self, tokens: TokenArray, lengths: Ints) -> list[SharedRun]:
        """Find the first run that each of these documents shares, with its first place in the others.

        Args:
            tokens: of the documents, one after the other, EOS last in each.
            lengths: of the documents, EOS included.
        """
        offsets = offsets_of(lengths.astype(np.int64))
        found: list[SharedRun] = []
        for begin in range(0, len(tokens) - self._size + 1, _BLOCK):
            starts, places = self._in_block(tokens, offsets, begin)
            documents, firsts = np.unique(_holding(offsets, starts), return_index=True)
            for document, first in zip(documents.tolist(), firsts.tolist(), strict=True):
                # A document that goes on from the block before may have shared a run there.
                if not found or found[-1].document < document:
                    found.append(self._found(document, int(starts[first] - offsets[document]), int(places[first])))
        return found

    def _in_block(self, tokens: TokenArray, offsets: I64, begin: int) -> tuple[I64, I64]:
        """Return where the shared runs that begin in one block begin, and where their equals are among the others."""
        hashes = self._hashes(tokens[begin : begin + _BLOCK + self._size - 1])
        hits = np.arange(len(hashes))
        for shift in self._shifts:
            hits = hits[self._filter[self._marks(hashes[hits], shift)]]
        starts = begin + hits
        documents = _holding(offsets, starts)
        in_text = starts >= offsets[documents] + self._skipped
        in_text &= starts + self._size < offsets[documents + 1]
        starts, hashes = starts[in_text], hashes[hits[in_text]]
        places = self._places(tokens, starts, hashes)
        shared = places >= 0
        return starts[shared], places[shared]

    def _marks(self, hashes: U64, shift: np.uint64) -> U64:
        """Return one of the places that runs of these hashes mark in the filter."""
        return (hashes >> shift) & np.uint64(len(self._filter) - 1)

    def _places(self, tokens: TokenArray, starts: I64, hashes: U64) -> I64:
        """Find for each of these runs the first equal run of the others; -1 if no run is equal."""
        places = np.full(len(starts), -1, np.int64)
        at = np.searchsorted(self._known, hashes)
        left = np.arange(len(starts))
        while len(left):
            left = left[at[left] < len(self._known)]
            left = left[self._known[at[left]] == hashes[left]]
            others = self._starts[at[left]]
            equal = self._equal(tokens, starts[left], others)
            places[left[equal]] = others[equal]
            # Different runs of one hash are rare; the next of the same hash may be the one.
            left = left[~equal]
            at[left] += 1
        return places

    def _equal(self, tokens: TokenArray, starts: I64, others: I64) -> npt.NDArray[np.bool_]:
        """Return whether runs equal runs of the others."""
        equal = np.ones(len(starts), np.bool_)
        for place in range(self._size):
            equal &= tokens[starts + place] == self._tokens[others + place]
        return equal

    def _hashes(self, tokens: TokenArray) -> U64:
        """Hash the run that begins at each token, but for the last ones: a polynomial of the tokens, modulo 2^64."""
        runs = max(0, len(tokens) - self._size + 1)
        values = (tokens.astype(np.uint64) + np.uint64(1)) * _SPREAD
        hashes = np.zeros(runs, np.uint64)
        for place in range(self._size):
            hashes *= self._multiplier
            hashes += values[place : place + runs]
        return hashes

    def _found(self, document: int, start: int, place: int) -> SharedRun:
        [other] = _holding(self._offsets, np.array([place])).tolist()
        return SharedRun(document, start, other, place - int(self._offsets[other]))


def _starts(offsets: I64, size: int, skipped: int) -> I64:
    """List where runs begin, in the texts of documents."""
    firsts = offsets[:-1] + skipped
    counts = np.maximum(offsets[1:] - firsts - size, 0)  # the EOS is not of the text
    places = offsets_of(counts)
    return np.repeat(firsts - places[:-1], counts) + np.arange(places[-1])


def _holding(offsets: I64, starts: I64) -> I64:
    """Return the document that holds each token, from where documents begin."""
    return np.searchsorted(offsets, starts, side="right") - 1


def too_short(lengths: Ints, size: int, skipped: int) -> int:
    """Count the documents whose texts are shorter than a run, and so can't share one.

    >>> too_short(np.array([14, 13]), 13, 0)
    1
    """
    return int(np.count_nonzero(lengths.astype(np.int64) - 1 - skipped < size))
