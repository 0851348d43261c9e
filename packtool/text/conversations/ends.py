"""The ends of turns: the token at which generation stops trains together with the turn that it ends.

Templates write that token in one of three ways, here `<end>`:

    <user>Hi<assistant>Ho<end>         behind the message: it trains as it is
    <user>Hi<assistant>Ho<end><user>…  only if another message follows, which may begin with that token: `with_stop`
    <user>Hi<assistant>Ho              not at all: the EOS that ends the document trains, `takes_eos`

Nothing else behind a message trains: generation would not stop at a token that only begins the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from packtool.text.conversations.chat import any_of
from packtool.text.conversations.template import Rendered

TextSpan = tuple[int, int]
"""(begin, end) in characters of a rendering."""


def merged_spans(spans: Iterable[TextSpan]) -> list[TextSpan]:
    """Leave out empty spans, and join spans that touch or overlap.

    >>> merged_spans([(0, 2), (2, 5), (6, 6), (7, 9)])
    [(0, 5), (7, 9)]
    """
    out: list[TextSpan] = []
    for begin, end in spans:
        if begin >= end:
            continue
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((begin, end))
    return out


class Ended(NamedTuple):
    """The turns of a rendering that train, with their ends."""

    turns: list[TextSpan]  # spans of the turns, with the tokens that end them
    eos: bool  # whether the EOS that the store adds trains, because the text has no token that ends the last turn
    token: str  # the text of the token that ends the last turn; empty if it has no end
    open: int  # number of turns without an end


class Ends:
    """The tokens that end a turn of the assistant.

    Args:
        special: texts of all special tokens; a turn that ends with one has its end.
        stops: texts of the tokens that generation stops at, the EOS of the store first.

    >>> text, ends = "Hi<end>\\n<user>Ho", Ends(["<user>"], ["<end>", "<user>"])
    >>> ends.own(text, (0, 8)), ends.with_stop(text, (0, 2)), ends.with_stop(text, (0, 7))
    ('<end>', (0, 7), (0, 7))
    """

    def __init__(self, special: Iterable[str], stops: Sequence[str]) -> None:
        self._eos = stops[0]
        self._tokens = frozenset((*special, *stops))
        self._sizes = sorted({len(token) for token in self._tokens}, reverse=True)
        self._stop_follows = re.compile(rf"\s*({any_of(stops).pattern})")

    def ended(self, rendering: Rendered, turns: Iterable[TextSpan], *, marked: bool) -> Ended:
        """Extend the turns by the tokens that end them.

        Args:
            turns: (begin, end) of the messages that train; empty turns train nothing, and get no end.
            marked: the template marks exactly what is generated, so no stop is added to it.
        """
        text, apart = rendering.text, rendering.apart
        spoken = merged_spans(turns)  # a template may mark a text and its end as two spans: they are one turn
        if not marked:
            spoken = [self.with_stop(text, turn, apart) for turn in spoken]
        tokens = [self.own(text, turn, apart) for turn in spoken]
        eos = bool(spoken) and not tokens[-1] and self.takes_eos(text, spoken[-1])
        if eos:
            tokens[-1] = self._eos
        return Ended(spoken, eos, tokens[-1] if tokens else "", tokens.count(""))

    def own(self, text: str, turn: TextSpan, apart: Iterable[TextSpan] = ()) -> str:
        """Return the token that a turn ends with, blanks aside; "" if it has no end.

        Args:
            apart: see `Rendered`: a token that the conversation only spells ends nothing.
        """
        begin, end = turn
        end = begin + len(text[begin:end].rstrip())
        for size in self._sizes:  # the longest first: a token may end with the text of another
            token = text[max(begin, end - size) : end]
            if token in self._tokens and (end - size, end) not in apart:
                return token
        return ""

    def with_stop(self, text: str, turn: TextSpan, apart: Iterable[TextSpan] = ()) -> TextSpan:
        """Return a turn with the stop that directly follows it, blanks aside, if it has no end of its own."""
        stop = self._stop_follows.match(text, turn[1])
        if stop is None or stop.span(1) in apart or self.own(text, turn, apart):
            return turn
        return turn[0], stop.end()

    def takes_eos(self, text: str, turn: TextSpan) -> bool:
        """Return whether the EOS that the store adds ends a turn: if the turn is the last text of its document."""
        return turn[1] == len(text)
