"""Count what a block held and what became of it, span by span, so that the sums balance."""

from __future__ import annotations

import functools

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.text.corpus.filters import DocumentCounts
from packtool.text.corpus.read_fields import LayoutCounts


class SpanCounts(msgspec.Struct):
    """Counts of one span, or of several together."""

    file: int  # number of the file
    documents: int = 0  # documents that went to the store
    tokens: int = 0  # tokens that went to the store; EOS and BOS included
    empty: int = 0  # documents without a token
    records: int = 0  # lines, rows or files read
    bytes: int = 0  # bytes read, uncompressed
    filtered: DocumentCounts = msgspec.field(default_factory=DocumentCounts)  # left out by filters
    rejected: dict[str, int] = msgspec.field(default_factory=dict)  # bad records, by reason
    special: dict[str, int] = msgspec.field(default_factory=dict)  # special tokens in texts, by id
    lost: int = 0  # bytes of files that can't be read to their end, or at all, whose records nobody counted
    digest: str = ""  # digest of the file, in the span that begins it
    read: int = 0  # documents that were read, whatever became of them
    encoded: int = 0  # ids that documents have, EOS and BOS not included
    trained: int = 0  # tokens that went to the store and train, if the store has a loss
    conversations: int = 0  # conversations that documents were made of
    context: int = 0  # tokens before the first that trains, but for the first document of each conversation
    fim: dict[str, int] = msgspec.field(default_factory=dict)  # documents that were rearranged, and their parts
    sentinels: int = 0  # sentinels of all documents that were encoded
    ends: dict[str, int] = msgspec.field(default_factory=dict)  # by the token that ends the last turn
    open_turns: int = 0  # turns that train without a token that ends them
    reasoning: int = 0  # conversations with reasoning of the assistant
    calls: int = 0  # conversations with calls of tools
    hidden: int = 0  # messages whose reasoning the template does not show
    empty_answers: int = 0  # answers that may train, without text, calls and reasoning
    layouts: dict[str, LayoutCounts] = msgspec.field(default_factory=dict)  # of conversations, as options
    found: dict[str, int] = msgspec.field(default_factory=dict)  # 1 by each optional field that a record has
    own_eos: int = 0  # texts that end with EOS, and get no second one
    own_bos: int = 0  # texts that begin with the BOS that documents get, and get no second one
    unknown: int = 0  # tokens of the unknown, in place of text that the tokenizer has no token for
    vanished: int = 0  # characters of stored texts that the tokenizer has no token for, and drops
    filled: dict[str, int] = msgspec.field(default_factory=dict)  # documents by kept column

    @property
    def rejects(self) -> int:
        """Records that can't be used, whatever the reason."""
        return sum(self.rejected.values())

    def add(self, other: SpanCounts) -> None:
        """Add another span's counts to these; it follows them in its file."""
        for name, kind in SpanCounts.__annotations__.items():
            mine, others = getattr(self, name), getattr(other, name)
            if kind == "int" and name != "file":
                setattr(self, name, mine + others)
            elif kind == "dict[str, int]":
                mine |= {key: mine.get(key, 0) + count for key, count in others.items()}
        for name in DocumentCounts.__annotations__:
            setattr(self.filtered, name, getattr(self.filtered, name) + getattr(other.filtered, name))
        for name, layout in other.layouts.items():
            self.layouts.setdefault(name, LayoutCounts(layout.read)).add(layout)
        self.digest = self.digest or other.digest

    def count_special(self, ids: npt.NDArray[np.uint32], wanted: tuple[int, ...], vocab_size: int) -> None:
        """Count the wanted ids, ascending and below `vocab_size`, as they occur in texts."""
        if not wanted:
            return
        begin, size = _widest_gap(wanted, vocab_size)
        distances = ids
        if begin > 0:
            distances = ids - begin  # those below the gap wrap round to large numbers
        # Nearly all ids of a text are inside, and looked at no further.
        outside = ids[distances >= size]
        if not len(outside):
            return
        numbers, often = np.unique(outside[np.isin(outside, wanted)], return_counts=True)
        for number, times in zip(numbers.tolist(), often.tolist(), strict=True):
            self.special[str(number)] = self.special.get(str(number), 0) + times

    def require_balance(self, added: int) -> None:
        """Require that documents read are stored, empty or filtered, and documents encoded stored or filtered.

        Args:
            added: tokens that every stored document has in addition to its own: EOS, and BOS if there is one.

        Raises:
            DataError: it does not add up, which means a defect in packtool.
        """
        gone = self.filtered
        filtered = gone.tokens - added * (gone.documents - gone.unencoded)
        encoded = self.encoded + self.sentinels
        for equation, left, right in (
            ("documents read = stored + empty + filtered", self.read, self.documents + self.empty + gone.documents),
            ("text tokens = stored + filtered", encoded, self.tokens - added * self.documents + filtered),
        ):
            if left != right:
                what = f"the ledger does not balance: {equation}, but {left} is not {right}"
                remedy = "do not use this output; report it with the command line"
                raise DataError("ledger-unbalanced", what, remedy=remedy)

    def flat(self) -> dict[str, int]:
        """Return the counts as a manifest has them."""
        return {
            "documents": self.documents,
            "tokens": self.tokens,
            "empty": self.empty,
            "filtered": self.filtered.documents,
            "filtered_words": self.filtered.words,
            "filtered_characters": self.filtered.characters,
            "filtered_tokens": self.filtered.tokens,
            "rejected": self.rejects,
            **{f"rejected_{code.replace('-', '_')}": self.rejected[code] for code in sorted(self.rejected)},
            **({"special_tokens": sum(self.special.values())} if self.special else {}),
            **({"lost_bytes": self.lost} if self.lost else {}),
            **self.fim,
        }


@functools.cache
def _widest_gap(wanted: tuple[int, ...], vocab_size: int) -> tuple[int, int]:
    """Return the begin and size of the longest range of ids without a wanted id.

    A vocabulary has its special tokens at its beginning, at its end, or at both.

    >>> _widest_gap((50256,), 50257), _widest_gap((0, 1, 2), 32000), _widest_gap((0, 1, 128000, 128001), 128002)
    ((0, 50256), (3, 31997), (2, 127998))
    """
    bounds = np.array([-1, *wanted, vocab_size])
    sizes = np.diff(bounds) - 1
    widest = np.argmax(sizes)
    return int(bounds[widest]) + 1, int(sizes[widest])
