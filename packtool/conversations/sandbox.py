"""Limit what a chat template may do: Jinja's immutable sandbox, with each step and each new text metered.

Templates come with tokenizers and may be hostile. A limit of seconds would let the machine decide which conversations
are refused, so what is limited is work: the same template and messages are refused always, or never.

- Each turn of a loop, and each call of a macro or block, is a step.
- What makes a text or a list, or looks through one, weighs as many characters, those of all that a list holds as often
  as it holds them. What one thing may weigh is limited, and what all of them do in a rendering.
- What can't be weighed before it is done is refused: numbers of more than 64 bits, wide fields in formats.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from packtool.conversations.record import ConversationError
from packtool.conversations.symbols import (
    SYMBOL,
    Length,
    Symbol,
    Trace,
    UnforeseenError,
    symbol_of,
    touch,
    written,
)

BEGIN, END = "\ufdd0", "\ufdd1"
"""Around what is generated, in what is rendered. Unicode keeps them for use inside programs: no text has them."""
STEPS = 100_000
LARGEST = 1 << 20
"""Characters of one thing; all together may weigh 64 times as many."""
_ITEM = 16
"""What an item of a list weighs beside what it holds, in characters."""
_NUMBER = 1 << 64
_WIDTH = 1 << 8
_FORMAT = 1 << 12
_SMALL = 1 << 10
"""Characters that are not weighed where they are looked through."""


class Meter:
    """The budget of one rendering.

    Args:
        steps: turns of loops, and calls of macros and blocks.
        largest: characters of one thing.
    """

    def __init__(self, steps: int = STEPS, largest: int = LARGEST) -> None:
        self._steps = steps
        self._largest = largest
        self._left = 64 * largest

    def step(self, characters: int) -> None:
        """Charge a step in which the template itself writes this many characters."""
        self._steps -= 1
        self._left -= characters
        if self._steps < 0:
            raise ConversationError("the chat template goes on for too long")

    def weigh(self, characters: int) -> None:
        """Charge for making or scanning this many characters."""
        self._left -= characters
        if characters > self._largest:
            raise ConversationError(f"the chat template makes more than {self._largest:,} characters")
        if self._left < 0:
            raise ConversationError("the chat template goes on for too long")

    def weigh_all(self, *values: Any) -> int:
        """Charge for scanning values and all they contain; return their total size."""
        weight = 0
        waiting = list(values)
        while waiting and weight <= self._largest:
            value = waiting.pop()
            if isinstance(value, str | bytes):
                weight += len(value)
            elif value is None or isinstance(value, int | float):
                pass
            elif isinstance(value, Mapping):
                weight += _ITEM * len(value)
                waiting += [*value, *value.values()]
            elif isinstance(value, list | tuple):
                weight += _ITEM * len(value)
                waiting += value
            elif isinstance(value, Symbol):
                touch(value)
        self.weigh(weight)
        return weight

    def weigh_copies(self, value: str | bytes, part: str | bytes, times: int) -> None:
        """Charge for appending this many copies of a text to another."""
        self.weigh(len(value) + len(part) * times)


class Environment(ImmutableSandboxedEnvironment):
    """The environment of a template, which limits what it may do.

    Args:
        now: what `strftime_now` tells.

    Attributes:
        meter: of the rendering that is at work.
        trace: where what is done with symbols is noted, while there are any.
        marks: the template marks what is generated.
        traceable: it has no characters of symbols itself.
    """

    intercepted_binops = frozenset(["*", "**", "+", "-", "%", "//"])

    def __init__(self, now: datetime | None) -> None:
        self.meter = Meter()
        self.trace: Trace | None = None
        self.marks = False
        self.traceable = True
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols], finalize=self._written
        )
        self.filters["tojson"] = self._tojson
        for name in ("random", "urlize", "xmlattr", "striptags"):  # not for chats, and not to be weighed
            del self.filters[name]
        del self.globals["lipsum"]
        self.filters = {name: self._metered(name, function) for name, function in self.filters.items()}
        tests: dict[str, Any] = dict(self.tests)
        self.tests |= {name: self._weighing(tests[name]) for name in _COMPARE}
        self.tests |= {name: _also(Symbol, tests[name]) for name in ("string", "iterable", "sequence")}
        self.tests |= {name: _also(Length, tests[name]) for name in ("number", "integer")}
        self.tests["sameas"] = _same
        self.globals |= {
            "raise_exception": _raise_exception,
            "strftime_now": _clock(now),
            "dict": _Dict(),
            "namespace": _Namespace,
        }

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed: nodes.Template = _Metering().visit(super()._parse(source, name, filename))
        texts = [str(node.value) for node in parsed.find_all(nodes.Const)]
        texts += [node.data for node in parsed.find_all(nodes.TemplateData)]
        self.traceable = not any(map(SYMBOL.search, texts))
        return parsed

    def concat(self, parts: Iterable[Any]) -> Any:
        """Join the output of a macro or block."""
        if self.trace is None:
            return "".join(parts)
        return symbol_of(self.trace, "".join(parts))

    def take_step(self, characters: int) -> str:
        """Count a step. The code that templates become calls it."""
        self.meter.step(characters)
        return ""

    def weighed(self, value: Any) -> Any:
        """Weigh a value that is looked through. Called by that code, too."""
        if isinstance(value, str):
            if len(value) > _SMALL:
                self.meter.weigh(len(value))
        elif isinstance(value, list | tuple | Mapping):
            self.meter.weigh_all(value)
        return value

    def cut(self, value: Any) -> Any:
        """Weigh a value of which a part is taken, without a look into its items. Called by that code, too."""
        if isinstance(value, str | list | tuple):
            self.meter.weigh(_flat(value))
        return value

    def contains(self, item: Any, held: Any) -> bool:
        """Weigh and answer `item in held`. Called by that code, too."""
        if isinstance(held, str):
            self.weighed(held)
        elif isinstance(held, list | tuple) and isinstance(item, Symbol):
            touch(item, len(held))
        elif isinstance(held, list | tuple):  # it is compared with each
            self.meter.weigh(len(held) * (_ITEM + (len(item) if isinstance(item, str) else self.meter.weigh_all(item))))
        return item in held

    def joined(self, *parts: Any) -> Any:
        """Weigh and join `a ~ b`. Called by that code, too."""
        self.meter.weigh_all(*parts)
        if self.trace is not None:
            return symbol_of(self.trace, "".join(map(written, parts)))
        return "".join(map(str, parts))

    def _written(self, value: Any) -> Any:
        """Charge for a value written into the text, and return it."""
        if isinstance(value, str):
            self.meter.weigh(len(value))
        elif isinstance(value, list | tuple | Mapping):
            self.meter.weigh_all(value)
        return value if self.trace is None else written(value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Weigh what operators make."""
        if operator == "+" and type(left) is str and type(right) is str:  # nearly all there is
            self.meter.weigh(len(left) + len(right))
            return left + right
        if isinstance(left, Symbol) or isinstance(right, Symbol):
            if operator != "+" or not (isinstance(left, str | Symbol) and isinstance(right, str | Symbol)):
                raise UnforeseenError
            return self.joined(left, right)
        for number, other in ((left, right), (right, left)):
            if isinstance(number, int):
                _require_small(number, 64 if operator == "**" and number is right else _NUMBER)
                if operator == "*" and isinstance(other, str | bytes | list | tuple):
                    self.meter.weigh(_flat(other) * abs(number))
        if operator == "+" and isinstance(left, str | list | tuple):
            self.meter.weigh(sum(_flat(each) for each in (left, right) if isinstance(each, str | list | tuple)))
        if operator == "%" and isinstance(left, str | bytes):
            self._weigh_format(str(left), _WIDE, "%", right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Weigh what methods make."""
        if isinstance(function, Macro):
            return super().call(context, function, *args, **kwargs)
        owner = getattr(function, "__self__", None)
        if owner is self:  # what `_Metering` asks: no template has the environment
            return function(*args)
        if isinstance(owner, str | bytes):
            args = self._text_arguments(owner, function.__name__, args, kwargs)
        elif isinstance(owner, int):
            raise ConversationError(f"the chat template calls {function.__name__} of a number")
        elif not isinstance(owner, dict | list):  # whose methods look at items, but not into them
            self.meter.weigh_all(*args, *kwargs.values())
        made = super().call(context, function, *args, **kwargs)
        if isinstance(made, list):
            self.meter.weigh(_ITEM * len(made))
        return made

    def _text_arguments(
        self, owner: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Charge for the result of a text method; return its arguments."""
        if name in ("translate", "maketrans", "striptags"):
            raise ConversationError(f"the chat template calls {name}, which it may not")
        for each in (*args, *kwargs.values()):
            if isinstance(each, int):
                _require_small(each, _WIDTH if name in ("center", "ljust", "rjust", "zfill", "expandtabs") else _NUMBER)
        if name == "join" and args:
            items = list(args[0])
            self.meter.weigh_all(items)
            self.meter.weigh_copies(owner, owner, len(items))
            return (items, *args[1:])
        if name == "replace" and len(args) > 1 and all(isinstance(each, type(owner)) for each in args[:2]):
            self.meter.weigh_copies(owner, args[1], owner.count(args[0]))
        elif name == "expandtabs":
            self.meter.weigh_copies(owner, " " * _WIDTH, owner.count("\t" if isinstance(owner, str) else b"\t"))
        elif len(owner) > _SMALL:
            self.meter.weigh(len(owner))
        return args

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Weigh what `format` makes."""
        formatting = super().wrap_str_format(value)
        if formatting is None:
            return None

        def weighed(*args: Any, **kwargs: Any) -> str:
            self._weigh_format(value.__self__, _WIDE_FIELD, "{", args, kwargs)
            return formatting(*args, **kwargs)

        return weighed

    def _weigh_format(self, text: str, wide: re.Pattern[str], field: str, *values: Any) -> None:
        """Charge for the result of a format as if each of its fields held all values."""
        if len(text) > _FORMAT or wide.search(text):
            raise ConversationError("the chat template formats wide fields")
        self.meter.weigh(len(text) + text.count(field) * (_WIDTH + self.meter.weigh_all(*values)))

    def _tojson(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        """Write JSON as it stands: Jinja's own filter escapes what HTML would take for a tag."""
        encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        if indent is None:
            return encoder.encode(value)
        parts = []
        for part in encoder.iterencode(value):
            self.meter.weigh(len(part))
            parts.append(part)
        return "".join(parts)

    def _metered(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a filter so that its input and output are charged."""

        @functools.wraps(function)
        def metered(*args: Any, **kwargs: Any) -> Any:
            given = [*args, *kwargs.values()]
            if self.trace is not None and any(isinstance(each, Symbol) for each in given):
                return _filtered(name, function, *args, **kwargs)
            for each in given if name in _WIDE_FILTERS else ():
                if isinstance(each, int):
                    _require_small(each, _WIDTH)
            if name == "join" and len(args) > 1:  # after what Jinja passes
                args = (args[0], items := list(args[1]), *args[2:])
                separators = [each for each in (*args[2:], *kwargs.values()) if isinstance(each, str)]
                self.meter.weigh(len(items) * max(map(len, separators), default=0))
                given = [items]
            if name == "replace":
                texts = [str(each) for each in given if isinstance(each, str)]
                if len(texts) > 2:
                    self.meter.weigh_copies(texts[0], texts[2], texts[0].count(texts[1]))
            if name == "indent":
                texts = [each for each in given if isinstance(each, str)]
                self.meter.weigh(sum(map(len, texts[1:])) * (1 + texts[0].count("\n")) if texts else 0)
            if name == "format":
                self._weigh_format(str(given[0]), _WIDE, "%", given[1:])
            if name == "sum" and not isinstance(kwargs.get("start", (args[3:] or (0,))[0]), int | float):
                raise ConversationError("the chat template sums lists")
            if name not in _BY_ITEM:
                self.meter.weigh_all(*given)
            made = function(*args, **kwargs)
            if isinstance(made, str):
                self.meter.weigh(len(made))
            elif isinstance(made, list):
                self.meter.weigh(_ITEM * len(made))
            return made

        return metered

    def _weighing(self, test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def weighing(*args: Any) -> Any:
            self.meter.weigh_all(*args)
            return test(*args)

        return weighing


_COMPARE = frozenset(
    ["in", "==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", "ge", ">=", "<", "lt", "lessthan", "<=", "le"]
)
"""Tests that look through what they are given."""
_BY_ITEM = frozenset(
    ["length", "count", "list", "first", "last", "map", "select", "selectattr", "reject", "rejectattr", "items"]
)
_BY_ITEM |= {"default", "d", "attr", "reverse", "safe"}
"""Filters that do not look into the items of a list."""
_WIDE_FILTERS = ("center", "indent", "wordwrap", "truncate", "round", "batch", "slice", "tojson")
"""Those that make as much as a number says."""
_WIDE = re.compile(r"%(?:\([^)]*\))?[-+ #0]*(?:\d{4}|\d*\.\d{4}|\d*\.?\*)")
_WIDE_FIELD = re.compile(r"\{[^{}]*(?:\d{4}|\{)")
"""Fields of formats that are wide, or as wide as an argument says."""


def _filtered(name: str, function: Callable[..., Any], value: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a filter to a symbol."""
    if name in ("trim", "string") and isinstance(value, Symbol) and not kwargs:
        return value.strip(*args) if name == "trim" else value
    if name in ("length", "count") and not args:
        return Length(value)
    if name in ("default", "d"):
        return function(value, *args, **kwargs)
    raise UnforeseenError


def _also(kind: type, test: Callable[..., Any]) -> Callable[..., Any]:
    """Let a test of texts be true of symbols, one of numbers of lengths."""
    return lambda value: isinstance(value, kind) or test(value)


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, Symbol | Length) and not (other is None or isinstance(other, bool)):
        raise UnforeseenError
    return value is other


def _flat(value: str | bytes | list[Any] | tuple[Any, ...]) -> int:
    """Return what a text or a list weighs, without a look into its items."""
    return len(value) * (1 if isinstance(value, str | bytes) else _ITEM)


def _require_small(number: int, limit: int) -> None:
    if abs(number) > limit:
        raise ConversationError("the chat template works with large numbers")


class _Generation(Extension):
    """`{% generation %}`: marks the assistant's text, wherever the template puts it."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        environment: Any = self.environment
        environment.marks = True
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    def _marked(self, caller: Callable[[], Any]) -> str:
        said = caller()
        return f"{BEGIN}{written(said) if isinstance(said, Symbol) else said}{END}"


class _Metering(NodeTransformer):
    """Have steps taken, and texts weighed, wherever Jinja does not ask its environment."""

    def _stepping(self, node: Any) -> Any:
        self.generic_visit(node)
        written = nodes.Const(_own_text(node.body))
        step = nodes.Call(nodes.EnvironmentAttribute("take_step"), [written], [], None, None)
        node.body.insert(0, nodes.ExprStmt(step, lineno=node.lineno))
        return node

    visit_For = visit_Macro = visit_Block = visit_CallBlock = _stepping  # noqa: N815 - Jinja's

    def visit_Concat(self, node: nodes.Concat) -> Any:  # noqa: N802 - Jinja's
        self.generic_visit(node)
        return _asked("joined", *node.nodes)

    def visit_Getitem(self, node: nodes.Getitem) -> Any:  # noqa: N802 - Jinja's
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _asked("cut", node.node)
        return node

    def visit_Compare(self, node: nodes.Compare) -> Any:  # noqa: N802 - Jinja's
        self.generic_visit(node)
        if len(node.ops) == 1 and node.ops[0].op in ("in", "notin") and not isinstance(node.ops[0].expr, nodes.Literal):
            held = _asked("contains", node.expr, node.ops[0].expr)
            return held if node.ops[0].op == "in" else nodes.Not(held, lineno=node.lineno)
        alike = all(operand.op in ("eq", "ne") for operand in node.ops)
        if not (alike and any(isinstance(each, nodes.Const) for each in (node.expr, *(op.expr for op in node.ops)))):
            for operand in node.ops:
                operand.expr = _asked("weighed", operand.expr)
            node.expr = _asked("weighed", node.expr)
        return node


def _own_text(body: Iterable[nodes.Node]) -> int:
    """Count the characters that a body writes each time, but for what takes steps of its own."""
    size = 0
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.TemplateData):
            size += len(node.data)
        elif not isinstance(node, nodes.For | nodes.Macro | nodes.Block | nodes.CallBlock):
            waiting += node.iter_child_nodes()
    return size


def _asked(name: str, *values: nodes.Expr) -> nodes.Expr:
    """Make the node of a call to a method of the environment."""
    return nodes.Call(nodes.EnvironmentAttribute(name), list(values), [], None, None, lineno=values[0].lineno)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _clock(now: datetime | None) -> Callable[[str], str]:
    def strftime_now(format: str) -> str:
        if now is None:
            raise ConversationError("the chat template asks for today's date: give --template-date")
        if len(format) > _FORMAT or re.search(r"\d{4}", format):
            raise ConversationError("the chat template formats wide fields")
        return now.strftime(format)

    return strftime_now


class _Dict:
    """`dict` without the methods of the type."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _Namespace(Namespace):
    """A namespace without names that begin with an underscore, which reach into Python."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, given = args[0], dict(*args[1:], **kwargs)
        for name in given:
            _require_plain(name)
        Namespace.__init__(self, given)

    def __setitem__(self, name: str, value: Any) -> None:
        _require_plain(name)
        super().__setitem__(name, value)


def _require_plain(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace of a chat template has no {name!r}")
