"""Check whether another tokenizer gives the ids of a store: by documents of which the text is known from the ids.

A store has no texts. Those of its documents are what its own tokenizer decodes, where encoding that gives the same ids
back; other documents can't be told, and do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from packtool.errors import DataError, UsageError
from packtool.formats.names import TOKENIZER
from packtool.formats.token_store import TokenStore
from packtool.outputs.tokenizer_files import read_tokenizer
from packtool.planning.plan import I64
from packtool.support.sizes import plural
from packtool.text.encoding.added import with_special
from packtool.text.encoding.encoders import ReferenceEncoder
from packtool.text.encoding.load import FoundTokenizer, find_tokenizer

SAMPLE = 1000
"""Documents to draw from a store, besides one of each file."""
_FILES = 9000  # most files of which one document each is drawn
_MOST_TOKENS = 1 << 16  # of a longer document, so many tokens from its first are compared
_SHOWN = 8  # ids that a message shows from the first that differs
_SEED = 0


@dataclass(frozen=True)
class TokenizerCheck:
    """How a tokenizer agrees with a store.

    Attributes:
        tokenizer: as it was given.
        drawn: documents of the sample.
        told: documents whose text is known.
        equal: documents among them for which the tokenizer gives the ids of the store.
        problem: the first document that differs; None if no document does.
    """

    tokenizer: str
    drawn: int
    told: int
    equal: int
    problem: DataError | None

    @property
    def summary(self) -> str:
        """The figures in words.

        >>> TokenizerCheck("new", 1000, 990, 989, None).summary
        'equal in 989 of 990 documents (10 of 1,000 could not be told)'
        """
        untold = f"{self.drawn - self.told:,} of {self.drawn:,} could not be told"
        return f"equal in {self.equal:,} of {plural(self.told, 'document')} ({untold})"


def check_tokenizer(store: TokenStore, source: str | Path) -> TokenizerCheck:
    """Compare what a tokenizer makes of a seeded sample of a store's documents with their ids.

    Args:
        source: the tokenizer: a file, a directory or a hub id.

    Raises:
        UsageError: the store does not hold its own tokenizer, or the text of no document can be told.
        DataError: the tokenizer can't be found or loaded; the store is damaged.
    """
    where = str(store.place)
    kept = read_tokenizer(store.place, store.manifest.tokenizer_files)
    if TOKENIZER not in kept:
        what, remedy = f"{where} does not hold its own tokenizer, so no text is known", "tokenize again"
        raise UsageError("texts-not-known", what, remedy=remedy, where="--tokenizer")
    own, other = _encoder(store, FoundTokenizer(kept, where)), _encoder(store, find_tokenizer(source))
    drawn = _sample(store)
    told = equal = 0
    problem = None
    for number in drawn.tolist():
        ids = _ids(store, number)
        text = own.tokenizer.decode(ids, skip_special_tokens=False)
        if own.spell(text).tolist() != ids:
            continue
        told += 1
        found = other.spell(text).tolist()
        if found == ids:
            equal += 1
        elif problem is None:
            problem = _problem(store, number, ids, found)
    if not told:
        what = f"the text of none of {plural(len(drawn), 'document')} can be told from its ids"
        raise UsageError("texts-not-known", what, remedy="compare the texts that it was made of", where="--tokenizer")
    return TokenizerCheck(str(source), len(drawn), told, equal, problem)


def _encoder(store: TokenStore, found: FoundTokenizer) -> ReferenceEncoder:
    """Load a tokenizer so that it encodes as the store was made."""
    manifest = store.manifest
    as_text = manifest.options.get("special_tokens") == "text" and not manifest.conversations
    encodes = found
    if as_text:
        special = sorted({*found.special, manifest.tokenizer.eos_token} & {*found.added})
        encodes = replace(found, files={**found.files, TOKENIZER: with_special(found.data, special)})
    return ReferenceEncoder(encodes.data, special_as_text=as_text)


def _sample(store: TokenStore) -> I64:
    """Draw documents: all of a small store, else some of all and one of each file; ascending."""
    if store.documents <= SAMPLE:
        return np.arange(store.documents)
    draw = np.random.default_rng(_SEED)
    drawn = [draw.choice(store.documents, SAMPLE, replace=False)]
    if store.has_origins:
        files, firsts, counts = np.unique(store.origins()["file"], return_index=True, return_counts=True)
        chosen = draw.permutation(len(files))[:_FILES]
        drawn.append(firsts[chosen] + draw.integers(counts[chosen]))  # documents of a file follow each other
    return np.unique(np.concatenate(drawn))


def _ids(store: TokenStore, number: int) -> list[int]:
    """Return the first ids of a document, without BOS and EOS."""
    info = store.manifest.tokenizer
    tokens = store.document(number)[int(info.bos_id is not None) : -1]
    ids: list[int] = tokens[:_MOST_TOKENS].tolist()
    return ids


def _problem(store: TokenStore, number: int, ids: Sequence[int], found: Sequence[int]) -> DataError:
    """Return the error for a document that the other tokenizer gives other ids."""
    place = 0
    while place < min(len(ids), len(found)) and ids[place] == found[place]:
        place += 1
    here, there = (list(each[place : place + _SHOWN]) for each in (ids, found))
    document = f"document {number}"
    if store.has_origins:
        document = f"{document} ({store.origin(number)})"
    what = f"{document} has other ids from token {place:,} on: {here} in the store, {there}"
    remedy = "use the tokenizer that the store holds, or tokenize again"
    return DataError("tokenizer-differs", f"{what} from this tokenizer", remedy=remedy, where="--tokenizer")
