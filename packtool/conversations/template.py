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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from packtool.conversations.record import ConversationError, texts_of

SECONDS = 10.0
"""CPU time that all renderings of one conversation may take."""
CHARACTERS = 1 << 26
"""Of a rendering."""
_CUT = "the chat template cuts what it marks as generated"
_REASON = 300
"""Characters of what a template says is wrong."""


@dataclass(frozen=True)
class Rendered:
    """A conversation as text.

    Attributes:
        text: what the template made.
        marked: (begin, end) of what it marks as generated, in characters, ascending.
    """

    text: str
    marked: tuple[tuple[int, int], ...]


class ChatTemplate:
    """A compiled chat template, for one thread.

    Args:
        source: Jinja, as in `chat_template` of tokenizer_config.json or chat_template.jinja.
        tokens: what templates call special tokens, such as bos_token, and their texts.
        now: what `strftime_now` tells; a template that asks is refused where it is None, since the same input must
            give the same text.
        seconds: of CPU time for all renderings of one conversation.

    Attributes:
        marks: it marks what is generated.

    Raises:
        ConversationError: it is not a valid template.

    >>> source = "{% for m in messages %}<{{ m.role }}>{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    >>> template = ChatTemplate(source)
    >>> template.render([{"role": "user", "content": "Hi"}])
    Rendered(text='<user>Hi', marked=((6, 8),))
    """

    def __init__(
        self,
        source: str,
        tokens: Mapping[str, str] | None = None,
        *,
        now: datetime | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self._tokens = dict(tokens or {})
        self._seconds = seconds
        self._environment = _Environment(now)
        try:
            self._template = self._environment.from_string(source)
        except (TemplateError, SyntaxError, RecursionError, MemoryError) as error:
            # Python, too, refuses some: 20 nested blocks are the most it compiles.
            raise ConversationError(f"invalid chat template: {_said(error)}") from None
        self.marks = self._environment.marks
        self.begin()

    def begin(self) -> None:
        """Begin a conversation: the limit of seconds is for its renderings together."""
        self._environment.deadline = time.thread_time() + self._seconds

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: list[Any] | None = None, *, prompt: bool = False
    ) -> Rendered:
        """Render messages.

        Args:
            messages, tools: see `Conversation`.
            prompt: end with what comes before the assistant's next message.

        Raises:
            ConversationError: the template refuses them, fails, or takes too long.
        """
        parts: list[str] = []
        size = 0
        try:
            self._environment.tick()
            for part in self._template.generate(
                messages=[dict(message) for message in messages],
                tools=tools,
                documents=None,
                add_generation_prompt=prompt,
                **self._tokens,
            ):
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
            raise ConversationError(f"the chat template failed: {_said(error)}") from None
        text = "".join(parts)
        if not self.marks:
            return Rendered(text, ())
        key = self._environment.key
        given = "".join(texts_of([messages, tools]))
        if key in given:
            raise ConversationError("a message spells the mark of generated text")
        rendered = _unmarked(text, key)
        if any(bound in rendered.text and bound not in given for bound in (key[0], key[-1])):
            raise ConversationError(_CUT)
        return rendered


class _LateError(Exception):
    """The conversation's time is up."""


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, set up as by Transformers.

    Args:
        now: what `strftime_now` tells.

    Attributes:
        marks: the template marks what is generated.
        key: what marks are made of. It is random, so no text can contain it but by chance, and that is checked; it is
            digits between characters that Unicode keeps for the use of programs, so filters for text leave it alone.
        deadline: until when a template may run, in `time.thread_time`, which other work on the machine does not change.
    """

    def __init__(self, now: datetime | None) -> None:
        self.marks = False
        self.key = f"\ufdd0{secrets.randbelow(10**18):018}\ufdd1"
        self.deadline = 0.0
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
        self.filters["tojson"] = _tojson
        self.globals |= {"raise_exception": _raise_exception, "strftime_now": _clock(now)}
        # The same conversation must give the same text.
        del self.filters["random"]
        del self.globals["lipsum"]

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed: nodes.Template = _Ticking().visit(super()._parse(source, name, filename))
        return parsed

    def tick(self) -> str:
        """Look at the time. The code that templates become calls it."""
        if time.thread_time() > self.deadline:
            raise _LateError
        return ""


class _Ticking(NodeTransformer):
    """Look at the time in each turn of a loop and each call of a macro: without them, no template runs for long."""

    def _tick(self, node: Any) -> Any:
        self.generic_visit(node)
        call = nodes.Call(nodes.EnvironmentAttribute("tick"), [], [], None, None)
        node.body.insert(0, nodes.ExprStmt(call, lineno=node.lineno))
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


def _unmarked(text: str, key: str) -> Rendered:
    """Return the text without marks, and where they were."""
    first, *parts = text.split(key)
    spans: list[tuple[int, int]] = []
    kept = [first]
    at, depth, begin = len(first), 0, 0
    for part in parts:
        if part.startswith("("):
            begin = at if depth == 0 else begin
            depth += 1
        elif part.startswith(")"):
            depth -= 1
            if depth == 0:
                spans.append((begin, at))
        if not part or depth < 0:
            break
        kept.append(part[1:])
        at += len(part) - 1
    if depth or len(kept) <= len(parts):
        raise ConversationError(_CUT)
    return Rendered("".join(kept), tuple(spans))


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
    raise TemplateError(message)


def _clock(now: datetime | None) -> Callable[[str], str]:
    def strftime_now(format: str) -> str:
        if now is None:
            raise ConversationError("the chat template asks for today's date: give --template-date")
        return now.strftime(format)

    return strftime_now


def _said(error: BaseException) -> str:
    """Return in one line what an error says."""
    return re.sub(r"\s+", " ", str(error)[:_REASON]).strip().rstrip(".") or type(error).__name__
