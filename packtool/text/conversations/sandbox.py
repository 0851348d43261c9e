"""Jinja's sandbox, set up as Transformers does, with the marks of generated text and a limit of time.

A template is code that the user chose to run, as with Transformers. The sandbox keeps it from files, modules and the
internals of Python. A limit of seconds stops a template that does not end, but no single huge operation: Python does
``9 ** 999999999`` in one step.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes, pass_context
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from packtool.text.faults import unsuited

_TICK = "the time"
"""A filter. Its name has a space, so that no template uses it by mistake."""
_OF_DICTS = frozenset(dir(dict))


class LateError(Exception):
    """The conversation's time is up."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, set up as by Transformers.

    Args:
        now: the time that `strftime_now` tells.

    Attributes:
        marks: whether the template marks what is generated.
        key: the text that marks are made of. It is random, so a message contains it only by chance, and
            `render_messages` checks that; it is digits between characters that Unicode reserves for programs, which
            text filters leave alone.
        deadline: the `time.thread_time` until which a template may run. That is CPU time of this thread, so other work
            on the machine does not shorten it.
    """

    def __init__(self, now: datetime | None) -> None:
        self.marks = False
        self.key = f"\ufdd0{secrets.randbelow(10**18):018}\ufdd1"
        self.deadline = 0.0
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
        self.filters |= {"tojson": _tojson, _TICK: pass_context(lambda context, nothing: self.tick())}
        self.globals |= {"raise_exception": _raise_exception, "strftime_now": _clock(now)}
        # The same conversation must give the same text.
        del self.filters["random"]
        del self.globals["lipsum"]

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        # Jinja compiles what this returns, so every template gets its ticks here.
        parsed: nodes.Template = _Ticking().visit(super()._parse(source, name, filename))
        return parsed

    def tick(self) -> None:
        """Raise an error once the time is up. Compiled templates call this, see `_Ticking`."""
        if time.thread_time() > self.deadline:
            raise LateError

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return the value behind a dot, as Jinja's sandbox does: an attribute, or else an item.

        Most of them are fields of messages, which are dictionaries. Their items are read at once: the sandbox would try
        an attribute first, and the error that Python makes of a missing one takes most of the time of rendering.
        """
        if type(obj) is dict and attribute not in _OF_DICTS:
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)


class _Ticking(NodeTransformer):
    """Insert a look at the time into every loop and macro: a template without loops and macros can't run for long."""

    def _tick(self, node: Any) -> Any:
        self.generic_visit(node)
        look = nodes.Filter(nodes.Const(None), _TICK, [], [], None, None)  # filters are called without the sandbox
        node.body.insert(0, nodes.ExprStmt(look, lineno=node.lineno))
        return node

    visit_For = visit_Macro = visit_Block = visit_CallBlock = _tick  # noqa: N815 - Jinja's


class _Generation(Extension):
    """`{% generation %}`: marks the assistant's text, wherever the template puts it."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        environment: Any = self.environment
        environment.marks = True
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    def _marked(self, caller: Callable[[], str]) -> str:
        environment: Any = self.environment
        return f"{environment.key}({caller()}{environment.key})"


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """Write JSON as it stands: Jinja's own filter escapes what HTML would take for a tag."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    """Refuse a conversation: templates call this by the name `raise_exception`."""
    raise TemplateError(message)


def _clock(now: datetime | None) -> Callable[[str], str]:
    """Return the function that tells a template the time."""

    def strftime_now(format: str) -> str:
        if now is None:
            raise unsuited("the chat template asks for today's date", "give --template-date")
        return now.strftime(format)

    return strftime_now
