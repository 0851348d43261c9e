"""Find what a chat template leaves out, by a mark in place of each text, call, argument, tool and result.

    messages   {"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [{"function": {"name": "add"…
    marked     {"role": "user", "content": "zq0qz"}, {"role": "assistant", "tool_calls": [{"function": {"name": "zq1qz"…
    rendering  <user>zq0qz<assistant>          zq1qz is not there: the template does not show the call

Which parts are shown depends on the shape of a conversation, not on its texts: its roles, its fields, and which of them
are empty. So one rendering tells it for all conversations of a shape. Reasoning may be left out: templates show none of
earlier turns, and rightly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from packtool.text.conversations.calls import json_in, of_function
from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.message import REASONING
from packtool.text.conversations.reasoning import THINK
from packtool.text.conversations.template import ChatTemplate
from packtool.text.faults import Fault

_LISTED = re.compile(r"""(?P<quote>["'])text(?P=quote): ?["'](?:<think>\S*)?zq(?P<number>\d+)qz""")
"""A mark in a list of parts that is written as Python or JSON does, by a template that takes no parts."""
_LISTED_THOUGHT = re.compile(r"""(["'])thinking\1: ?\1zr""")
"""The mark of a thought in a part that is written so."""
_MOST = 10_000
"""Shapes that are remembered for a template."""


class Unshown(NamedTuple):
    """A part of a conversation that a template does not show."""

    what: str  # the part, in words
    in_list: bool = False  # it is a part of a content
    of_tools: bool = False  # it is a tool, a call or a result, or lies beside a call


REASONING_IN_PARTS = Unshown("reasoning in parts of a content")


class Shown(NamedTuple):
    """What a template shows of a conversation."""

    missing: Unshown | None  # the first part that it leaves out; None if it shows all
    thoughts: bool = True  # whether it shows some of the reasoning, if there is any
    failed: bool = False  # it can't be told: the template fails at marks


def shown_by(template: ChatTemplate, conversation: Conversation) -> Shown:
    """Tell what a template shows of a conversation.

    >>> template = ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
    >>> call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add", "arguments": {}}}]}
    >>> shown_by(template, Conversation(({"role": "user", "content": "1 + 1"}, call), (True, True))).missing.what
    'a call of message 2'
    """
    tools = tuple(map(_shape, conversation.tools or ()))
    shape = (_shape_of(conversation.messages), tools, str(conversation.arguments))
    known = template.known_shapes
    if shape not in known:
        if len(known) == _MOST:
            known.clear()
        known[shape] = _look(conversation, template)
    found: Shown = known[shape]
    return found


def owners_of_marks(conversation: Conversation, template: ChatTemplate) -> list[list[int]]:
    """Return, for each span that a template marks as generated, the numbers from 0 of the messages that it shows.

    >>> source = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}|{% endfor %}"
    >>> talk = Conversation(({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}), (True, True))
    >>> owners_of_marks(talk, ChatTemplate(source))
    [[0], [1]]
    """
    marked = Marked(conversation)
    talk = marked.conversation
    rendering = template.render(talk.messages, talk.tools, arguments=talk.arguments)
    found = []
    for begin, end in rendering.marked:
        shown = marked.shown_in(rendering.text[begin:end])
        owners = [number for number, marks in enumerate(marked.of_message) if any(shown[mark] for mark in marks)]
        found.append(owners)
    return found


class Marked:
    """A conversation with marks in place of what a template has to show.

    Attributes:
        conversation: with the marks.
        parts: what each mark stands for.
        of_message: the numbers of the marks of each message.
        thoughts: the marks of its reasoning.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.parts: list[Unshown] = []
        self.thoughts: list[str] = []
        self.of_message: list[range] = []
        messages = []
        for number, message in enumerate(conversation.messages, 1):
            first = len(self.parts)
            messages.append(self._message(message, number))
            self.of_message.append(range(first, len(self.parts)))
        tools = self._names(conversation.tools, Unshown("a tool", of_tools=True))
        self.conversation = replace(conversation, messages=tuple(messages), tools=tools)

    def shown_in(self, text: str) -> list[bool]:
        """Return for each mark whether a text has it: in whatever case, since templates may change that."""
        lower = text.lower()
        return [_text_of(number) in lower or str(_number_of(number)) in lower for number in range(len(self.parts))]

    def _mark(self, part: Unshown) -> str:
        self.parts.append(part)
        return _text_of(len(self.parts) - 1)

    def _message(self, message: Mapping[str, Any], number: int) -> dict[str, Any]:
        marked = dict(message)
        calls = bool(message.get("tool_calls"))
        content = message.get("content")
        of_tools = calls or message["role"] in ("tool", "function", "ipython")
        beside = " beside its call" if calls else ""
        part = Unshown(f"the content of message {number}{beside}", of_tools=of_tools)
        if isinstance(content, str):
            marked["content"] = self._content(content, part)
        elif isinstance(content, list):
            marked["content"] = [self._part(item, part._replace(in_list=True)) for item in content]
        if message.get(REASONING[0]):
            marked |= dict.fromkeys(REASONING, self._thought())
        if calls:
            call = Unshown(f"a call of message {number}", of_tools=True)
            marked["tool_calls"] = [self._call(given, call) for given in message["tool_calls"]]
        if message.get("tools"):
            marked["tools"] = self._names(message["tools"], Unshown(f"tools of message {number}", of_tools=True))
        return marked

    def _thought(self) -> str:
        self.thoughts.append(f"zr{len(self.thoughts)}rz")
        return self.thoughts[-1]

    def _content(self, text: str, part: Unshown) -> str:
        """Mark a text behind its reasoning, whose tags stay, since templates look for them."""
        _, closing, answer = text.rpartition(THINK[1])
        if not answer.strip():
            return text
        if closing:
            return f"{THINK[0]}\n.\n{THINK[1]}\n\n{self._mark(part)}"
        return self._mark(part)

    def _part(self, item: Mapping[str, Any], part: Unshown) -> dict[str, Any]:
        if isinstance(item.get("text"), str):
            return {**item, "text": self._content(item["text"], part)}
        return {**item, "thinking": self._thought()}

    def _call(self, call: Any, part: Unshown) -> Any:
        """Mark the name of a function that is called, and its arguments."""
        return of_function(call, partial(self._function, part))

    def _function(self, part: Unshown, function: Mapping[str, Any]) -> dict[str, Any]:
        marked = self._named(part, function)
        given = function.get("arguments")  # which may be JSON in a string
        argument = part._replace(what=f"an argument of {part.what}")
        value = json_in(given)
        if isinstance(given, str) and isinstance(value, Mapping | list):
            marked["arguments"] = json.dumps(self._values(value, argument))
        elif given is not None:
            marked["arguments"] = self._values(given, argument)
        return marked

    def _values(self, value: Any, part: Unshown) -> Any:
        """Mark all texts and numbers in a JSON value; numbers with numbers, since templates may ask for the type."""
        if isinstance(value, Mapping):
            return {name: self._values(item, part) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._values(item, part) for item in value]
        if isinstance(value, str) and value.strip():
            return self._mark(part)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._mark(part)
            return _number_of(len(self.parts) - 1)
        return value

    def _names(self, tools: Any, part: Unshown) -> Any:
        """Mark the name of each tool."""
        if isinstance(tools, list):
            return [self._names(tool, part) for tool in tools]
        if isinstance(tools, str):
            return self._mark(part)
        return of_function(tools, partial(self._named, part))

    def _named(self, part: Unshown, function: Mapping[str, Any]) -> dict[str, Any]:
        """Mark the name of a function, if it has one."""
        marked = dict(function)
        if isinstance(function.get("name"), str):
            marked["name"] = self._mark(part)
        return marked


def _text_of(number: int) -> str:
    """Return the text of a mark: of letters and digits, which no template changes, escapes or cuts at."""
    return f"zq{number}qz"


def _number_of(number: int) -> int:
    """Return the number of a mark."""
    return 91_370_000 + number


def _look(conversation: Conversation, template: ChatTemplate) -> Shown:
    """Return what a template shows, by renderings of all messages, and of those up to each part that is not shown."""
    marked = Marked(conversation)
    talk = marked.conversation
    try:
        text = template.render(talk.messages, talk.tools, arguments=talk.arguments).text
    except Fault:
        return Shown(None, failed=True)  # at what a mark replaced, so it does look at it
    thoughts = not marked.thoughts or any(map(text.__contains__, marked.thoughts))
    return Shown(_missing(marked, template, text), thoughts)


def _missing(marked: Marked, template: ChatTemplate, text: str) -> Unshown | None:
    """Return the first part that a template leaves out of a rendering; None if it shows all."""
    talk = marked.conversation
    shown = marked.shown_in(text)
    for number, marks in enumerate(marked.of_message, 1):
        if talk.messages[number - 1]["role"] != "assistant" or all(shown[mark] for mark in marks):
            continue
        # Some templates leave out earlier answers once others follow; `spans.py` knows what can train then.
        with suppress(Fault):
            text_until = template.render(talk.messages[:number], talk.tools, arguments=talk.arguments).text
            shown_until = marked.shown_in(text_until)
            for mark in marks:
                shown[mark] = shown_until[mark]
    for part, is_shown in zip(marked.parts, shown, strict=True):
        if not is_shown:
            return part
    for match in _LISTED.finditer(text):
        part = marked.parts[int(match["number"])]
        # Some templates write results of tools, whatever they are, as JSON.
        if part.in_list and not (part.of_tools and match["quote"] == '"'):
            return part
    if _LISTED_THOUGHT.search(text):
        return REASONING_IN_PARTS
    return None


def _shape_of(messages: tuple[dict[str, Any], ...]) -> Hashable:
    """Return what the messages of two conversations have in common if a template shows the same parts of both."""
    shapes: list[Hashable] = []
    for message in messages:
        content = message.get("content")
        if len(message) == 2 and type(content) is str:  # as nearly all have it
            shapes.append((message["role"], _kind_of(content)))
            continue
        shape: list[Hashable] = [message["role"]]
        for name, value in message.items():
            if type(value) is str:
                shape.append((name, _kind_of(value)))
            elif type(value) is list:
                shape.append((name, tuple(map(_shape, value))))
            else:
                shape.append((name, bool(value)))
        shapes.append(tuple(shape))
    return tuple(shapes)


def _shape(item: Any) -> Hashable:
    """Return the shape of a call, a tool or a part of a content: its fields, and whether it has text or arguments."""
    if type(item) is not dict:
        return type(item).__name__
    inner = item.get("function")
    if type(inner) is dict:
        return len(item), "name" in inner, _kind_of_arguments(inner.get("arguments"))
    return len(item), item.get("type"), _kind_of(str(item.get("text") or "")), _kind_of_arguments(item.get("arguments"))


def _kind_of_arguments(arguments: Any) -> Hashable:
    """Return the types of arguments, and of what they are as JSON; None if there are none."""
    if not arguments or arguments == "{}":
        return None
    return type(arguments), type(json_in(arguments))


def _kind_of(text: str) -> int:
    """Return the kind of a text: 0 none, 1 words, 2 reasoning alone, 3 words behind reasoning, 4 blanks."""
    if THINK[1] in text:
        return 3 if text.rpartition(THINK[1])[2].strip() else 2
    if text.isspace():
        return 4
    return int(text != "")
