"""Render a chat template as Transformers does, and find what it marks in its text.

A mark is a random key and one character. `Sandbox` writes key`(` and key`)` round what the template says is generated.
This module writes key`{` and key`}` round the control tokens in what the template is given. `_unmarked` takes all marks
out of the text again, and has the spans.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from jinja2 import TemplateError, meta, nodes

from packtool.text.conversations.chat import any_of
from packtool.text.conversations.conversation import texts_of
from packtool.text.conversations.sandbox import LateError, Sandbox
from packtool.text.faults import Fault, bad_conversation, unsuited

SECONDS = 10.0
"""CPU time that all renderings of one conversation may take."""
CHARACTERS = 1 << 26
"""Most characters of a rendering."""
_CUT = "the chat template cuts what is marked in its text, as generated or as control tokens"
_REASON = 300
"""Most characters of a template's error message."""


@dataclass(frozen=True)
class Rendered:
    """A conversation as text.

    Attributes:
        text: what the template made.
        marked: (begin, end) of the parts that it marks as generated, in characters, ascending.
        apart: (begin, end) of control tokens that what was given spells; they are encoded as plain text, not as tokens.
            If the template broke one up, each of its marks that remains is an empty span: what comes before it and
            after it is encoded separately, so that no token forms across it.
    """

    text: str
    marked: tuple[tuple[int, int], ...]
    apart: tuple[tuple[int, int], ...] = ()


class ChatTemplate:
    """A compiled chat template, for one thread, whose CPU time is measured.

    Args:
        source: Jinja, as in `chat_template` of tokenizer_config.json or chat_template.jinja.
        tokens: texts of special tokens, by the names that templates have for them, such as bos_token.
        now: the time that `strftime_now` tells; None refuses a template that asks, since the same input must give the
            same text.
        control: texts of control tokens; where a message contains one as plain text, it is in `Rendered.apart`.
        seconds: CPU time for all renderings of one conversation.

    Attributes:
        marks: whether the template marks what is generated, with `{% generation %}`.
        asks_for: names of the variables that it uses.
        known_shapes: what the template leaves out, by the shape of conversations; `shown.py` looks it up here.

    Raises:
        Fault: it is not a valid template.

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
        self._control = any_of(texts) if texts else None  # None: the template is given no marks
        self._seconds = seconds
        self._environment = Sandbox(now)
        try:
            self._template = self._environment.from_string(source)
            self.asks_for = frozenset(meta.find_undeclared_variables(self._environment.parse(source)))
        except (TemplateError, SyntaxError, RecursionError, MemoryError) as error:
            # Python, too, refuses some: 20 nested blocks are the most it compiles.
            raise unsuited(f"invalid chat template: {_message(error)}") from None
        self.marks = self._environment.marks  # known only once the template is parsed
        self.known_shapes: dict[Hashable, Any] = {}
        # Transformers gives every template `documents`, too.
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
            messages: as in `Conversation`.
            tools: JSON schemas of functions; None for no tools.
            arguments: further variables of the template, by name.
            prompt: add the generation prompt, which comes before the assistant's next message.

        Raises:
            Fault: the template refuses them, takes too long or makes too much; a text spells the key. One of others,
                too, if the template fails, or cuts a mark.
        """
        parts: list[str] = []
        size = 0
        given: dict[str, Any] = {"messages": messages, "tools": tools, **(arguments or {})}
        try:
            if self._control is not None:  # a template may write any of these into its text
                given = _replaced(given, self._set_apart)
            given["messages"] = list(given["messages"])  # templates add lists to it, which a tuple does not take
            self._environment.tick()  # a template without loops and macros does not look at the time itself
            names = {**self._names, **given, "add_generation_prompt": prompt}
            # Part by part, to stop at the limit of characters. `names` has the globals, so with `shared` Jinja takes it
            # as it is, without a copy.
            for part in self._template.root_render_func(self._template.new_context(names, shared=True)):
                parts.append(part)
                size += len(part)
                if size > CHARACTERS:
                    raise bad_conversation(f"the chat template makes more than {CHARACTERS:,} characters")
        except Fault:  # of the limit above, or raised by the template itself
            raise
        except LateError:
            raise bad_conversation(
                f"the chat template takes more than {self._seconds:g} seconds for this conversation"
            ) from None
        except Exception as error:  # a template can raise whatever Python can
            raise unsuited(f"the chat template failed: {_message(error)}") from None
        text = "".join(parts)
        if not self.marks and self._control is None:
            return Rendered(text, ())
        key = self._environment.key  # 18 random digits between two characters that Unicode keeps out of texts
        given_texts = "".join(texts_of([messages, tools, arguments]))
        if key in given_texts:
            raise bad_conversation("a message spells the mark of generated text")
        rendered = _unmarked(text, key, self._control)
        # If the text has a part of the key that no message has, the template cut or escaped a mark. (That it writes
        # these very digits by itself is a chance of 1 in 10^18.)
        if any(part in rendered.text and part not in given_texts for part in (key[0], key[1:-1], key[-1])):
            raise unsuited(_CUT)
        return rendered

    def _set_apart(self, text: str) -> str:
        """Put marks round the control tokens that a text spells: `*{<end>*}`, where * is the key; see `_unmarked`."""
        assert self._control is not None
        key = self._environment.key
        return self._control.sub(key + r"{\g<0>" + key + "}", text)


def literals(source: str) -> str:
    """Return the texts that a template may write: outside of expressions, and constants inside them.

    Tokens of the tokenizer that occur in them count as control tokens. NUL joins the texts, so that no token is found
    across two of them.

    >>> literals("<a>{{ m ~ '<b>' if x }}").split(chr(0))
    ['<a>', '<b>']

    Raises:
        Fault: it is not a valid template.
    """
    try:
        parsed = Sandbox(None).parse(source)
    except (TemplateError, RecursionError) as error:
        raise bad_conversation(f"invalid chat template: {_message(error)}") from None
    data = [node.data for node in parsed.find_all(nodes.TemplateData)]
    return "\0".join([*data, *(node.value for node in parsed.find_all(nodes.Const) if isinstance(node.value, str))])


def fields_asked_for(source: str) -> frozenset[str]:
    """Return the names of the fields that a template asks for; of an invalid one, which no record may need, none.

    >>> sorted(fields_asked_for("{% set think = m.name %}{{ m['content'] ~ m.get('mode') }}<call>"))
    ['content', 'get', 'mode', 'name']
    """
    try:
        parsed = Sandbox(None).parse(source)
    except (TemplateError, RecursionError):
        return frozenset()
    found = set(map(attrgetter("attr"), parsed.find_all(nodes.Getattr)))
    keys = list(map(attrgetter("arg"), parsed.find_all(nodes.Getitem)))
    for call in parsed.find_all(nodes.Call):
        keys += call.args
    for key in keys:
        if isinstance(key, nodes.Const):
            found.add(key.value)
    return frozenset(found)


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
    *{<end>*}            a control token that a message contains as plain text is kept apart, (0, 5)
    *{<en    d>*}        one that the template split: encoding begins anew at empty spans, so no token joins over them

    >>> _unmarked("Hi *(Ho *(ho*)*)", "*", None)
    Rendered(text='Hi Ho ho', marked=((3, 8),), apart=())
    >>> _unmarked("*{<end>*}*{<en    d>*}", "*", re.compile("<end>"))
    Rendered(text='<end><en    d>', marked=(), apart=((0, 5), (5, 5), (14, 14)))
    """
    # A key that ends the text has lost its character: it is found, too, and refused.
    marks = re.compile(f"{re.escape(key)}(.?)", re.DOTALL)
    marked: list[tuple[int, int]] = []
    apart: list[tuple[int, int]] = []
    at = last = depth = begin = 0  # `at` in the text without marks, `last` in the text with them
    last_kind = ""
    for mark in marks.finditer(text):
        between, kind = text[last : mark.start()], mark[1]
        at += len(between)
        last = mark.end()
        if kind == "(":
            if depth == 0:
                begin = at
            depth += 1
        elif kind == ")" and depth:
            depth -= 1
            if depth == 0:
                marked.append((begin, at))
        elif kind == "}" and last_kind == "{" and control is not None and control.fullmatch(between):
            apart[-1] = (at - len(between), at)  # the span that its brace opened, which was empty until now
        elif kind in ("{", "}") and control is not None:
            # Empty until its closing brace follows; it stays empty if the template split the token, or cut off a brace.
            apart.append((at, at))
        else:
            raise unsuited(_CUT)
        last_kind = kind
    if depth:
        raise unsuited(_CUT)
    return Rendered(marks.sub("", text), tuple(marked), tuple(apart))


def _message(error: BaseException) -> str:
    """Return the message of an error in one line, or the name of its type if it has no message."""
    return re.sub(r"\s+", " ", str(error)[:_REASON]).strip().rstrip(".") or type(error).__name__
