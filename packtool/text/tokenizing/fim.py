"""Fill in the middle: rearrange texts as prefix, suffix, middle, so that a model learns to fill gaps.

Bavarian et al., "Efficient Training of Language Models to Fill in the Middle", 2022. A text is cut at two places, drawn
uniformly among its code points, into P, M and S, and written in one of two forms:

    PSM   <pre> P <suf> S <mid> M
    SPM   <pre> <suf> S <mid> P M

Code Llama has one more sentinel behind M, where a model is to stop. Two models know another form alone:

    Codestral    <suf> S <pre> P M
    Seed-Coder   <suf> S <pre> P <mid> M

The hash of seed and text decides whether, where and in which form, so neither order nor workers matter. What is between
two sentinels is encoded alone, so a cut is also a bound of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec
import xxhash

from packtool.errors import UsageError
from packtool.options.kinds import parse_share
from packtool.options.tokenize import FimOptions
from packtool.text.encoding.families import guard
from packtool.text.encoding.load import FoundTokenizer
from packtool.text.encoding.special import SENTINELS, Sentinels, sentinels
from packtool.text.encoding.special import named as named_token

_PURPOSE = int.from_bytes(b"fim")  # keeps what is drawn here apart from other hashes of the text by the same seed
_PLACES = 1 << 63  # keeps places apart from other draws


class FillInTheMiddle(msgspec.Struct, frozen=True, kw_only=True):
    """The way in which texts are rearranged."""

    rate: Fraction  # share of the texts that are rearranged
    spm_rate: Fraction  # share of the rearranged texts that are written suffix first
    seed: int  # below 2^63
    texts: tuple[str, ...]  # texts of the sentinels, in the order of `special.Sentinels`
    ids: tuple[int, ...]  # ids of these sentinels
    suffix_leads: bool = False  # see `special.Sentinels`
    split: str = ""  # separator of parts that are rearranged one by one; empty for no split
    guard: str = ""  # see `families.guard`; empty if the tokenizer puts no mark before a text

    def recorded(self) -> dict[str, Any]:
        """Return the options of filling in the middle, as the manifest has them."""
        return {
            "fim_rate": self.rate,
            "fim_spm_rate": self.spm_rate,
            "fim_seed": self.seed,
            "fim_tokens": self.texts,
            "fim_split": self.split or None,
        }


def choose_fim(options: FimOptions, tokenizer: FoundTokenizer) -> FillInTheMiddle | None:
    """Settle how texts are rearranged to fill in the middle; None if they are not.

    Raises:
        UsageError: the tokenizer has no sentinels, or not the named ones; or its sentinels allow only one form.
    """
    if options.fim_rate is None:
        return None
    if options.fim_split == "":
        raise UsageError("bad-option", "an empty separator", remedy="give a text", where="--fim-split")
    found = _named(options.fim_tokens, tokenizer) if options.fim_tokens else sentinels(tokenizer.vocab)
    if found is None:
        what, remedy = "the tokenizer has no known sentinels to fill in the middle", "name three of its tokens"
        raise UsageError("no-sentinels", what, remedy=f"{remedy} with --fim-tokens=PRE,SUF,MID", where="--fim-rate")
    if found.suffix_leads and options.fim_spm_rate != FimOptions.fim_spm_rate:
        what = f"with {' and '.join(found.texts)} there is one form alone, suffix first"
        raise UsageError("bad-option", what, remedy="leave it out", where="--fim-spm-rate")
    return FillInTheMiddle(
        rate=parse_share(options.fim_rate),
        spm_rate=parse_share(options.fim_spm_rate),
        seed=options.fim_seed,
        texts=found.texts,
        ids=tuple(tokenizer.vocab[text] for text in found.texts),
        suffix_leads=found.suffix_leads,
        split=options.fim_split or "",
        guard=guard(tokenizer.spec),
    )


def _named(wanted: Sequence[str | int], tokenizer: FoundTokenizer) -> Sentinels:
    """Return the sentinels that are named, in the form that a known model has with them; two have Codestral's."""
    texts = tuple(named_token("--fim-tokens", token, tokenizer.vocab)[1] for token in wanted)
    if not 2 <= len(texts) <= 4 or len(set(texts)) < len(texts):
        what = "two to four different tokens are needed"
        remedy = "name those of prefix and suffix, of the middle if there is one, and of its end"
        raise UsageError("bad-option", what, remedy=remedy, where="--fim-tokens")
    default = Sentinels(texts, suffix_leads=len(texts) == 2)
    return next((known for known in SENTINELS if known.texts == texts), default)


class TextPiece(NamedTuple):
    """A part of a document that is encoded alone."""

    text: str  # text of the part
    sentinels: tuple[int, ...] = ()  # ids of the sentinels before it
    begins: bool = True  # whether a tokenizer may put its mark before it; False for suffix and middle


class Cut(NamedTuple):
    """The begin and end of the middle of a text, and whether its suffix comes first."""

    begin: int
    end: int
    suffix_first: bool


def cut(text: str, fim: FillInTheMiddle) -> Cut | None:
    """Draw whether and where a text is cut; None to leave it as it is, as an empty one always is.

    >>> fim = FillInTheMiddle(rate=Fraction(1), spm_rate=Fraction(0), seed=31, texts=("P", "S", "M"), ids=(1, 2, 3))
    >>> cut("one two three", fim)
    Cut(begin=4, end=8, suffix_first=False)
    """
    data, seed = text.encode(), _PURPOSE ^ fim.seed
    chosen, form = divmod(xxhash.xxh3_128_intdigest(data, seed), 1 << 64)
    if not text or not _below(chosen, fim.rate):
        return None
    places = divmod(xxhash.xxh3_128_intdigest(data, seed ^ _PLACES), 1 << 64)
    begin, end = sorted(place * (len(text) + 1) >> 64 for place in places)
    return Cut(begin, end, fim.suffix_leads or _below(form, fim.spm_rate))


def _below(drawn: int, rate: Fraction) -> bool:
    """Return whether a number of 64 bits is in the first share `rate` of all."""
    return drawn * rate.denominator < rate.numerator << 64


def rearranged(text: str, fim: FillInTheMiddle) -> tuple[list[TextPiece], int, int]:
    """Rearrange a text, or its parts one by one.

    A text that spells a sentinel stays as it is: the model could not tell the two apart.

    Returns:
        Its pieces, in order; the number of parts with the prefix first, and with the suffix first.

    >>> fim = FillInTheMiddle(rate=Fraction(1), spm_rate=Fraction(0), seed=31, texts=("P", "S", "M"), ids=(1, 2, 3))
    >>> for piece in rearranged("one two three", fim)[0]:
    ...     print(piece.sentinels, repr(piece.text))
    (1,) 'one '
    (2,) 'three'
    (3,) 'two '
    """
    if any(sentinel in text for sentinel in fim.texts):
        return [TextPiece(text)], 0, 0
    pieces: list[TextPiece] = []
    prefix_first = suffix_first = 0
    as_it_is = ""
    for number, part in enumerate(text.split(fim.split) if fim.split else [text]):
        as_it_is += fim.split if number else ""
        found = cut(part, fim)
        if found is None:
            as_it_is += part
            continue
        if as_it_is:
            pieces.append(TextPiece(as_it_is, begins=not pieces))
            as_it_is = ""
        pieces += _pieces(part, found, fim)
        prefix_first += not found.suffix_first
        suffix_first += found.suffix_first
    if as_it_is or not pieces:
        pieces.append(TextPiece(as_it_is, begins=not pieces))
    return pieces, prefix_first, suffix_first


def _pieces(text: str, at: Cut, fim: FillInTheMiddle) -> list[TextPiece]:
    """Return the parts of a text in the order of its form."""
    before, after, *others = fim.ids
    middle, end = tuple(others[:1]), tuple(others[1:])
    prefix, inside, suffix = text[: at.begin], text[at.begin : at.end], text[at.end :]
    prefix_piece = TextPiece(prefix, (before,))
    suffix_piece = TextPiece(suffix, (after,), begins=False)
    middle_piece = TextPiece(inside, middle, begins=not prefix)
    if not at.suffix_first:
        pieces = [prefix_piece, suffix_piece, middle_piece]
    elif fim.suffix_leads and middle:
        pieces = [suffix_piece, prefix_piece, middle_piece]
    else:
        first: tuple[int, ...] = (before, after)
        second = middle
        if fim.suffix_leads:
            first, second = (after,), (before,)
        pieces = [TextPiece(suffix, first, begins=False)]
        # Prefix and middle follow each other. A tokenizer that marks the begin of a text was trained with both as one.
        if fim.guard:
            pieces.append(TextPiece(prefix + inside, second))
        else:
            pieces += [TextPiece(prefix, second), TextPiece(inside, begins=False)]
    if end:
        pieces.append(TextPiece("", end, begins=False))
    return pieces
