"""Render a chat template as Transformers does, with the same filters and functions.

A template is code that the user chose to run, as with Transformers. Jinja's sandbox keeps it from files, modules and
Python's internals. A limit of seconds stops a template that does not end, but no single huge operation: Python does
``9 ** 999999999`` in one step.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes, pass_context
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from packtool.text.conversations.record import ConversationError, UnsuitedTemplateError, texts_of

SECONDS = 10.0
"""CPU time that all renderings of one conversation may take."""
CHARACTERS = 1 << 26
"""Most characters of a rendering."""
_CUT = "the chat template cuts what is marked in its text, as generated or as control tokens"
_REASON = 300
"""Most characters of a template's error message."""
_TICK = "the time"
"""A filter. Its name has a space, so that no template uses it by mistake."""
_OF_DICTS = frozenset(dir(dict))


@dataclass(frozen=True)
class Rendered:
    """A conversation as text.

    Attributes:
        text: what the template made.
        marked: (begin, end) of the parts that it marks as generated, in characters, ascending.
        apart: (begin, end) of control tokens that the conversation spells; two empty spans for one that was split.
    """

    text: str
    marked: tuple[tuple[int, int], ...]
    apart: tuple[tuple[int, int], ...] = ()


class ChatTemplate:
    """A compiled chat template, for one thread.

    Args:
        source: Jinja, as in `chat_template` of tokenizer_config.json or chat_template.jinja.
        tokens: texts of special tokens, by the names that templates have for them, such as bos_token.
        now: the time that `strftime_now` tells; None refuses a template that asks, since the same input must give the
            same text.
        control: texts of control tokens; where the conversation spells one, it is in `Rendered.apart`.
        seconds: CPU time for all renderings of one conversation.

    Attributes:
        marks: whether the template marks what is generated, with `{% generation %}`.

    Raises:
        ConversationError: it is not a valid template.

    >>> source = "{% for m in messages %}<{{ m.role }}>{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    >>> template = ChatTemplate(source)
    >>> template.render([{"role": "user", "content": "Hi"}])
    Rendered(text='<user>Hi', marked=((6, 8),), apart=())
    """

    def __init__(
        self,
        source: str,
        tokens: Mapping[str, str] | None = None,
        *,
        now: datetime | None = None,
        control: Iterable[str] = (),
        seconds: float = SECONDS,
    ) -> None:
        texts = tuple(control)
        self._control = any_of(texts) if texts else None
        self._seconds = seconds
        self._environment = _Environment(now)
        try:
            self._template = self._environment.from_string(source)
        except (TemplateError, SyntaxError, RecursionError, MemoryError) as error:
            # Python, too, refuses some: 20 nested blocks are the most it compiles.
            raise UnsuitedTemplateError(f"invalid chat template: {_said(error)}") from None
        self.marks = self._environment.marks
        self._names = {**self._environment.globals, "documents": None, **(tokens or {})}
        self.begin()

    def begin(self) -> None:
        """Begin a conversation: its renderings together may take the limit of seconds."""
        self._environment.deadline = time.thread_time() + self._seconds

    def render(
        self,
        messages: Sequence[dict[str, Any]],
        tools: list[Any] | None = None,
        *,
        prompt: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> Rendered:
        """Render messages.

        Args:
            messages, tools, arguments: see `Conversation`.
            prompt: add the generation prompt, which comes before the assistant's next message.

        Raises:
            ConversationError: the template refuses them, fails, or takes too long.
        """
        parts: list[str] = []
        size = 0
        given: dict[str, Any] = {"messages": messages, "tools": tools, **(arguments or {})}
        try:
            if self._control is not None:
                given = _replaced(given, self._apart)
            given["messages"] = list(given["messages"])  # templates add lists to it, which a tuple does not take
            self._environment.tick()
            names = {**self._names, **given, "add_generation_prompt": prompt}
            for part in self._template.root_render_func(self._template.new_context(names, shared=True)):
                parts.append(part)
                size += len(part)
                if size > CHARACTERS:
                    raise ConversationError(f"the chat template makes more than {CHARACTERS:,} characters")
        except ConversationError:
            raise
        except _LateError:
            raise ConversationError(
                f"the chat template takes more than {self._seconds:g} seconds for this conversation"
            ) from None
        except Exception as error:  # a template can raise whatever Python can
            raise UnsuitedTemplateError(f"the chat template failed: {_said(error)}") from None
        text = "".join(parts)
        if not self.marks and self._control is None:
            return Rendered(text, ())
        key = self._environment.key
        said = "".join(texts_of([messages, tools, arguments]))
        if key in said:
            raise ConversationError("a message spells the mark of generated text")
        rendered = _unmarked(text, key, self._control)
        # A part of the key that no message has is left of a mark that the template cut or escaped.
        if any(part in rendered.text and part not in said for part in (key[0], key[1:-1], key[-1])):
            raise UnsuitedTemplateError(_CUT)
        return rendered

    def _apart(self, text: str) -> str:
        """Put marks round the control tokens that a text spells."""
        assert self._control is not None
        key = self._environment.key
        return self._control.sub(f"{key}{{\\g<0>{key}}}", text)


class _LateError(Exception):
    """The conversation's time is up."""


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, set up as by Transformers.

    Args:
        now: the time that `strftime_now` tells.

    Attributes:
        marks: whether the template marks what is generated.
        key: the text that marks are made of. It is random, so a message contains it only by chance, and `render` checks
            that; it is digits between characters that Unicode reserves for programs, which text filters leave alone.
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
            raise _LateError

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


def any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of these texts, the longest first; without texts it finds nothing.

    >>> any_of(["<a", "<a>"]).findall("<a><a")
    ['<a>', '<a']
    """
    return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))) or "(?!)")


def literals(source: str) -> str:
    """Return the texts that a template may write, between zeros: outside of expressions, and constants inside them.

    >>> literals("<a>{{ m ~ '<b>' if x }}").split(chr(0))
    ['<a>', '<b>']

    Raises:
        ConversationError: it is not a valid template.
    """
    try:
        parsed = _Environment(None).parse(source)
    except TemplateError as error:
        raise ConversationError(f"invalid chat template: {_said(error)}") from None
    data = [node.data for node in parsed.find_all(nodes.TemplateData)]
    return "\0".join([*data, *(node.value for node in parsed.find_all(nodes.Const) if isinstance(node.value, str))])


def _replaced(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with a function applied to every text in it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _replaced(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item, change) for item in value]
    return value


def _unmarked(text: str, key: str, control: re.Pattern[str] | None) -> Rendered:
    """Return a text without its marks, and the spans that they enclose. A mark is the key, here *, and one character.

    *(Ho *(ho*)*)        generated, (0, 5): marks may be nested, and the outermost counts
    *{<end>*}            a control token that the conversation spells is kept apart, (0, 5)
    *{<en    d>*}        a control token that the template split: two empty spans keep its parts from joining again

    >>> _unmarked("Hi *(Ho *(ho*)*)", "*", None)
    Rendered(text='Hi Ho ho', marked=((3, 8),), apart=())
    >>> _unmarked("*{<end>*}*{<en    d>*}", "*", re.compile("<end>"))
    Rendered(text='<end><en    d>', marked=(), apart=((0, 5), (5, 5), (14, 14)))

    Raises:
        UnsuitedTemplateError: a mark without its partner, or a damaged one: the template cut what it marks.
    """
    marks = re.compile(f"{re.escape(key)}(.?)", re.DOTALL)
    marked: list[tuple[int, int]] = []
    apart: list[tuple[int, int]] = []
    at = last = depth = begin = 0  # `at` in the text without marks, `last` in the text with them
    before = ""
    for mark in marks.finditer(text):
        said, kind = text[last : mark.start()], mark[1]
        at += len(said)
        last = mark.end()
        if kind == "(":
            if depth == 0:
                begin = at
            depth += 1
        elif kind == ")" and depth:
            depth -= 1
            if depth == 0:
                marked.append((begin, at))
        elif kind == "}" and before == "{" and control is not None and control.fullmatch(said):
            apart[-1] = (at - len(said), at)  # the span that its brace opened, which was empty until now
        elif kind in ("{", "}") and control is not None:
            apart.append((at, at))
        else:
            raise UnsuitedTemplateError(_CUT)
        before = kind
    if depth:
        raise UnsuitedTemplateError(_CUT)
    return Rendered(marks.sub("", text), tuple(marked), tuple(apart))


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
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
            raise UnsuitedTemplateError("the chat template asks for today's date", "give --template-date")
        return now.strftime(format)

    return strftime_now


def _said(error: BaseException) -> str:
    """Return the message of an error in one line, or the name of its type if it has no message."""
    return re.sub(r"\s+", " ", str(error)[:_REASON]).strip().rstrip(".") or type(error).__name__
