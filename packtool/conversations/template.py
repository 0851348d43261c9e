"""A chat template, rendered as Transformers renders it, and bounded: templates come with tokenizers and may be hostile.

They run in Jinja's immutable sandbox, with the filters and functions that Transformers offers them. Beyond that, each
turn of a loop and each call of a macro counts, and what is joined or multiplied has a largest size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from packtool.conversations.record import Conversation, ConversationError

STEPS = 100_000
"""Turns of loops and calls of macros in one rendering."""
CHARACTERS = 1 << 26
"""Of the text that is rendered, and of whatever a template joins on its way."""
# Unicode keeps these for use inside programs: no text has them.
_BEGIN, _END = "\ufdd0", "\ufdd1"


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
    """A compiled chat template.

    Args:
        source: Jinja, as in `chat_template` of tokenizer_config.json or chat_template.jinja.
        tokens: what templates call special tokens, such as bos_token, and their texts.
        now: what `strftime_now` tells; a template that asks is refused where it is None, since the same input must
            give the same text.
        steps, characters: bounds.

    Raises:
        ConversationError: it is no template.

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
        steps: int = STEPS,
        characters: int = CHARACTERS,
    ) -> None:
        self._tokens = dict(tokens or {})
        self._characters = characters
        self._steps = steps
        self.marks = "generation" in source
        self._environment = _Environment(characters, now)
        try:
            self._template = self._environment.from_string(source)
        except (TemplateError, RecursionError) as error:
            raise ConversationError(f"the chat template is no template: {error}") from None

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: list[Any] | None = None, *, prompt: bool = False
    ) -> Rendered:
        """Render messages.

        Args:
            messages, tools: see `Conversation`.
            prompt: end with what comes before the assistant's next message.

        Raises:
            ConversationError: the template refuses them, fails, or goes on for too long.
        """
        parts: list[str] = []
        size = 0
        try:
            for part in self._template.generate(
                messages=[dict(message) for message in messages],
                tools=tools,
                documents=None,
                add_generation_prompt=prompt,
                **self._tokens,
                **{_BUDGET: _Budget(self._steps)},
            ):
                parts.append(part)
                size += len(part)
                if size > self._characters:
                    raise _too_large(self._characters)
        except ConversationError:
            raise
        except Exception as error:  # a template can raise whatever Python can
            raise ConversationError(f"the chat template failed: {str(error) or type(error).__name__}") from None
        return _unmarked("".join(parts))

    def render_conversation(self, conversation: Conversation) -> Rendered:
        """Render all of a conversation."""
        return self.render(conversation.messages, conversation.tools)


def _unmarked(text: str) -> Rendered:
    """The text without marks, and where they were."""
    spans: list[tuple[int, int]] = []
    kept: list[str] = []
    at, depth, begin = 0, 0, 0
    for number, piece in enumerate(text.split(_BEGIN)):
        if number:
            depth += 1
            begin = at if depth == 1 else begin
        for place, part in enumerate(piece.split(_END)):
            if place:
                depth -= 1
                if depth == 0:
                    spans.append((begin, at))
            kept.append(part)
            at += len(part)
    if depth:
        raise ConversationError("the chat template cuts what it marks as generated")
    return Rendered("".join(kept), tuple(spans))


_BUDGET = "_packtool_budget"


class _Budget:
    """Steps that are left."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def step(self) -> str:
        self._left -= 1
        if self._left < 0:
            raise ConversationError("the chat template goes on for too long")
        return ""


class _Generation(Extension):
    """`{% generation %}`: marks what the assistant says, wherever the text goes from there."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    def _marked(self, caller: Macro) -> str:
        return f"{_BEGIN}{caller()}{_END}"


class _Counting(NodeTransformer):
    """Have each turn of a loop and each call of a macro take a step, and each joining of texts look at its size."""

    def _stepping(self, node: Any) -> Any:
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_budget_call(), lineno=node.lineno))
        return node

    visit_For = visit_Macro = _stepping  # noqa: N815 - Jinja's

    def visit_Concat(self, node: nodes.Concat) -> Any:  # noqa: N802 - Jinja's
        self.generic_visit(node)
        joined = nodes.EnvironmentAttribute("joined")
        return nodes.Call(joined, node.nodes, [], None, None, lineno=node.lineno)


def _budget_call() -> nodes.Expr:
    return nodes.Call(nodes.EnvironmentAttribute("take_step"), [nodes.ContextReference()], [], None, None)


class _Environment(ImmutableSandboxedEnvironment):
    """What a template may do.

    Args:
        characters: of the longest text.
        now: what `strftime_now` tells.
    """

    intercepted_binops = frozenset(["*", "**", "+"])

    def __init__(self, characters: int, now: datetime | None) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
        self._largest = characters
        self.filters["tojson"] = _tojson
        self.globals |= {
            "raise_exception": _raise_exception,
            "strftime_now": _clock(now),
            "dict": _Dict(),
            "namespace": _Namespace,
        }

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed: nodes.Template = _Counting().visit(super()._parse(source, name, filename))
        return parsed

    @staticmethod
    def take_step(context: Any) -> str:
        budget: _Budget = context.parent[_BUDGET]
        return budget.step()

    def joined(self, *parts: Any) -> str:
        texts = list(map(str, parts))
        if sum(map(len, texts)) > self._largest:
            raise _too_large(self._largest)
        return "".join(texts)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        sized = [each for each in (left, right) if isinstance(each, str | list | tuple)]
        numbers = [each for each in (left, right) if isinstance(each, int)]
        if operator == "**" and numbers and (len(numbers) < 2 or abs(numbers[1]) > 64 or abs(numbers[0]) > 1 << 32):
            raise _too_large(self._largest)
        factor = abs(numbers[0]) if operator == "*" and sized and numbers else 1
        if sum(map(len, sized)) * factor > self._largest:
            raise _too_large(self._largest)
        return super().call_binop(context, operator, left, right)


def _too_large(characters: int) -> ConversationError:
    return ConversationError(f"the chat template makes more than {characters:,} characters")


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON as it stands: Jinja's own filter escapes what HTML would take for a tag."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _clock(now: datetime | None) -> Callable[[str], str]:
    def strftime_now(format: str) -> str:
        if now is None:
            raise ConversationError("the chat template asks for today's date, which must be given")
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
