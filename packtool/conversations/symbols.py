"""Run a template on texts whose characters it can't see, and record what it does with them.

A template mostly copies what messages say, and asks little: is it empty, how does it begin. Rendered with a `Symbol` in
place of each text, it leaves behind these questions, with the answers, and a text with a character in place of each
symbol. Conversations with the same answers have the same text, but for what is said (`renderer.py`).

A symbol is no `str`. What is not foreseen here raises an error, and then nothing is said of the template.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

FIRST = 0xF0000
"""Symbols are written as characters of a private plane, from here on."""
_MOST = 0xFFFD
SYMBOL = re.compile(f"[{chr(FIRST)}-{chr(FIRST + _MOST)}]")
_REPEATED = 8
"""How often one thing may hold a symbol; `_ALL`, how often all that a rendering makes or looks through may. A rendering
may weigh as many times the characters that it is given (`template.py`), so one within these limits is never refused."""
_ALL = 64 * _REPEATED


class UnforeseenError(Exception):
    """Something is done with a text that can't be noted."""


def _unforeseen(*_: Any) -> Any:
    raise UnforeseenError


class Kind(Enum):
    """The kind of result of a step."""

    TEXT = 0
    ANSWER = 1
    """True or False."""
    LIST = 2
    """As many texts as expected."""


_METHODS = {
    Kind.TEXT: ["strip", "lstrip", "rstrip", "removeprefix", "removesuffix"],
    Kind.ANSWER: ["startswith", "endswith", "isspace", "isdigit", "isalpha", "isalnum", "islower", "isupper"],
    Kind.LIST: ["split", "rsplit", "partition", "rpartition", "splitlines"],
}
_KINDS = {name: kind for kind, names in _METHODS.items() for name in names}
"""The kind of each method of texts that is noted."""


class Step(NamedTuple):
    """An operation on texts: `function` of some slots. Slots below 0 are constants.

    Attributes:
        expected: an answer, or a number of texts.
        target: the first slot that it fills.
    """

    function: Callable[..., Any]
    inputs: tuple[int, ...]
    kind: Kind
    expected: Any
    target: int


class Trace:
    """The operations of a template on some texts.

    Args:
        texts: those that a conversation holds, in slots 0, 1, …

    Attributes:
        steps: in their order.
        constants: in slots -1, -2, …
        values: the texts in slots 0, 1, …
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.steps: list[Step] = []
        self.constants: list[Any] = []
        self.values: list[str] = []
        self._measures: list[tuple[int, Counter[int]]] = []
        self._known: dict[Any, Any] = {}
        self._weigh: Callable[[int], None] = lambda characters: None
        self._touched = Counter[int]()
        for number, text in enumerate(texts):
            self._symbol(text, (0, Counter({number: 1})))

    def symbols(self) -> list[Symbol]:
        """Make a symbol for each text of the conversation; to be called first."""
        return [Symbol(self, chr(FIRST + number)) for number in range(len(self.values))]

    def begin(self, weigh: Callable[[int], None]) -> None:
        """Begin a rendering, with a meter for characters that come from no text of the conversation."""
        self._weigh = weigh
        self._touched = Counter()

    def touch(self, expression: str, times: int = 1) -> None:
        """Charge for scanning a text this many times."""
        characters, held = self._measured(expression)
        self._weigh(characters * times)
        for number, count in held.items():
            self._touched[number] += count * times
            if count * times > _REPEATED or self._touched[number] > _ALL:
                raise UnforeseenError

    def do(self, kind: Kind, function: Callable[..., Any], *values: Any) -> Any:
        """Do something with symbols and constants, and note it, unless it is done already."""
        return self._step(kind, function, tuple(map(self._slot, values)))

    def _step(self, kind: Kind, function: Callable[..., Any], inputs: tuple[int, ...]) -> Any:
        if (function, inputs) in self._known:
            return self._known[function, inputs]
        output = function(*map(self._value, inputs))
        made: Any = output
        if kind is Kind.ANSWER:
            self.steps.append(Step(function, inputs, kind, output, 0))
        else:
            texts = [output] if kind is Kind.TEXT else list(output)
            self.steps.append(Step(function, inputs, kind, len(texts), len(self.values)))
            measured = self._measured("".join(chr(FIRST + slot) for slot in inputs if slot >= 0))
            symbols = [self._symbol(text, measured) for text in texts]
            made = symbols[0] if kind is Kind.TEXT else type(output)(symbols)
        self._known[function, inputs] = made
        return made

    def slots_of(self, expression: str) -> tuple[int, ...]:
        """List the slots that spell an expression, one after another."""
        parts = re.split(f"({SYMBOL.pattern})", expression)
        return tuple(ord(part) - FIRST if SYMBOL.match(part) else self._slot(part) for part in parts if part)

    def _slot(self, value: Any) -> int:
        """Return the slot of a symbol or a constant."""
        if isinstance(value, Symbol):
            parts = self.slots_of(value._expression)
            joined = value if len(parts) == 1 else self._step(Kind.TEXT, _together, parts)
            return ord(joined._expression) - FIRST
        if not (value is None or isinstance(value, str | int | slice | tuple)):
            raise UnforeseenError
        if isinstance(value, tuple) and not all(isinstance(each, str) for each in value):
            raise UnforeseenError
        for number, constant in enumerate(self.constants):
            if type(constant) is type(value) and constant == value:
                return -1 - number
        self.constants.append(value)
        return -len(self.constants)

    def _value(self, slot: int) -> Any:
        return self.values[slot] if slot >= 0 else self.constants[-1 - slot]

    def _symbol(self, text: str, measured: tuple[int, Counter[int]]) -> Symbol:
        if len(self.values) >= _MOST:
            raise UnforeseenError
        self.values.append(text)
        self._measures.append(measured)
        return Symbol(self, chr(FIRST + len(self.values) - 1))

    def _measured(self, expression: str) -> tuple[int, Counter[int]]:
        """Count the characters of an expression, and how often it holds each text of the conversation; at most."""
        symbols = SYMBOL.findall(expression)
        characters = len(expression) - len(symbols)
        held = Counter[int]()
        for each in symbols:
            more, parts = self._measures[ord(each) - FIRST]
            characters += more
            held += parts
        return characters, held


def _together(*parts: str) -> str:
    return "".join(parts)


class Symbol:
    """A text of a trace. Names that do not begin with an underscore are those of `str`: templates may see them.

    Args:
        trace: where it is noted.
        expression: the symbol's own character, or what it is made of.
    """

    __slots__ = ("_expression", "_trace")

    def __init__(self, trace: Trace, expression: str) -> None:
        self._trace = trace
        self._expression = expression

    def __getattr__(self, name: str) -> Any:
        if (kind := _KINDS.get(name)) is not None:

            def method(*args: Any) -> Any:
                if kind is Kind.LIST and any(isinstance(each, Symbol) for each in args):
                    raise UnforeseenError  # an empty separator is an error
                return self._do(kind, getattr(str, name), *args)

            return method
        if hasattr(str, name):
            raise UnforeseenError
        raise AttributeError(name)

    def _do(self, kind: Kind, function: Callable[..., Any], *args: Any) -> Any:
        self._trace.touch(self._expression)
        for each in args:
            if isinstance(each, Symbol):
                self._trace.touch(each._expression)
        return self._trace.do(kind, function, self, *args)

    def __bool__(self) -> bool:
        return bool(self._trace.do(Kind.ANSWER, bool, self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str | Symbol):
            return False
        return bool(self._do(Kind.ANSWER, operator.eq, other))

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, item: Any) -> bool:
        return bool(self._do(Kind.ANSWER, str.__contains__, item))

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, str):
            raise TypeError  # as a text does
        if not isinstance(place, slice):
            if place not in (0, -1):
                raise UnforeseenError
            if not self:
                raise IndexError
        return self._do(Kind.TEXT, str.__getitem__, place)

    __str__ = __repr__ = __format__ = __len__ = __iter__ = _unforeseen
    __lt__ = __le__ = __gt__ = __ge__ = _unforeseen


class Length:
    """The length of a symbol, of which only is known whether it is 0."""

    __slots__ = ("_symbol",)

    def __init__(self, symbol: Symbol) -> None:
        touch(symbol)
        self._symbol = symbol

    def __bool__(self) -> bool:
        return bool(self._symbol)

    def __eq__(self, other: object) -> bool:
        return not self._than(other)

    __hash__ = None  # type: ignore[assignment]

    def _than(self, other: object) -> bool:
        if isinstance(other, bool) or other != 0:
            raise UnforeseenError
        return bool(self._symbol)

    __gt__ = _than
    __lt__ = __le__ = __ge__ = __str__ = __repr__ = __format__ = _unforeseen


def touch(symbol: Symbol, times: int = 1) -> None:
    """Charge for scanning a text this many times."""
    symbol._trace.touch(symbol._expression, times)


def written(value: Any) -> str:
    """Write a symbol, or a text without symbols, into the rendering."""
    if isinstance(value, Symbol):
        touch(value)
        return value._expression
    text = str(value)  # which a length refuses
    if SYMBOL.search(text):
        raise UnforeseenError
    return text


def symbol_of(trace: Trace, expression: str) -> Any:
    """Return the output as a symbol if it contains one."""
    return Symbol(trace, expression) if SYMBOL.search(expression) else expression
