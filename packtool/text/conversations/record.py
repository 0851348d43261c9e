"""Make the conversation of a record: where its layout says that the parts lie."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from packtool.text.conversations.contract import is_something, kept_out, reading_of, require_no_label
from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.layouts import (
    ARGUMENTS,
    HISTORY,
    REASONING,
    SYSTEM,
    TOOLS,
    RecordLayout,
    beside,
    with_beside,
)
from packtool.text.conversations.message import MARKS, is_plain, kind_of, message_of
from packtool.text.conversations.reasoning import THINK
from packtool.text.conversations.turns import messages_in, parsed, past_of, side_of
from packtool.text.faults import Fault, bad_conversation
from packtool.text.paths import values_at


def layout_of(record: Mapping[str, Any], asked: RecordLayout) -> RecordLayout:
    """Return where the parts of a conversation lie in a record.

    Args:
        asked: by options; a record of `by_name` says it by the names of its fields.

    Raises:
        Fault: see `reading_of`.
    """
    if not asked.by_name:
        require_no_label(record)
        return asked
    layout = reading_of(record)
    if layout.text:
        raise Fault("missing-text", "no conversation")
    return with_beside(layout, asked)


def conversation_of(
    record: Mapping[str, Any], asked: RecordLayout, first: RecordLayout | None = None, known: Collection[str] = ()
) -> Conversation:
    """Make the conversation of a record.

    Args:
        asked: where its parts lie, by options, or `by_name`; a record may also have the fields that `beside` names.
        first: the layout of the first record, and `known` its fields that hold something.

    Raises:
        Fault: the record holds no conversation there, or a message is malformed, or has no content.

    >>> talk = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]
    >>> conversation_of({"conversations": talk}, RecordLayout()).messages
    ({'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Ho'})
    >>> asked = RecordLayout(prompt=("q",), completion="answers[0]")
    >>> conversation_of({"system": "Be brief.", "q": "1 + 1", "answers": ["2"]}, asked).messages[::2]
    ({'role': 'system', 'content': 'Be brief.'}, {'role': 'assistant', 'content': '2'})
    """
    layout = layout_of(record, asked)
    held = _held(record, layout.paths)
    lacks = layout.lacking(held)
    if lacks:
        raise Fault("missing-text", lacks)
    usual = _usual(record, layout)
    given, prompt = _given(held, usual, layout)
    if not given:
        raise bad_conversation("a conversation without messages")
    left_out: dict[str, None] = {}
    if all(map(is_plain, given)):  # as nearly all are
        messages, trains = tuple(given), (True,) * len(given)
    else:
        read = [message_of(message, number, left_out) for number, message in enumerate(given, 1)]
        messages, trains = zip(*read, strict=True)
    if left_out and asked.by_name:
        raise kept_out(record, layout, left_out)
    system = held.get(layout.system) or _system_of(usual)
    if system:
        messages, trains = (_system(system, messages[0]), *messages), (True, *trains)
        if prompt is not None:
            prompt += 1
    arguments = template_arguments(parsed(usual.get(ARGUMENTS), ARGUMENTS))
    tools = _tools(held.get(layout.tools, usual.get(TOOLS)), layout.tools or TOOLS)
    taken = held | usual
    if layout.mark and any(MARKS[0] in message for message in given):
        taken[layout.mark] = True
    read_before = known if layout == first else ()
    unread = [name for name in record if name not in taken and name not in read_before and is_something(record[name])]
    return Conversation(messages, trains, tools, prompt, arguments, taken, layout, (*unread, *left_out))


def _usual(record: Mapping[str, Any], layout: RecordLayout) -> dict[str, Any]:
    """Return what lies beside a conversation under the usual names, without what is null."""
    return {name: record[name] for name in beside(layout) if record.get(name) is not None}


def _held(record: Mapping[str, Any], paths: Collection[str]) -> dict[str, Any]:
    """Return what lies at these paths, without what is null."""
    return {path: value for path, value in values_at(record, paths).items() if value is not None}


def _given(held: Mapping[str, Any], usual: Mapping[str, Any], layout: RecordLayout) -> tuple[list[Any], int | None]:
    """Return the messages of a record, and how many of them are the prompt; None if prompt and answer are not apart.

    Args:
        held: what lies at the paths of the layout.
        usual: what lies beside it under the usual names.
    """
    if layout.messages:
        return messages_in(held[layout.messages], layout.messages, layout.turn), None
    history = layout.history or HISTORY
    prompt = past_of(held.get(history, usual.get(history)), history) + _prompt(held, layout)
    answer = side_of(held[layout.completion], layout.completion, "assistant")
    reasoning = layout.reasoning or REASONING
    return prompt + _reasoned(answer, held.get(reasoning, usual.get(reasoning)), reasoning), len(prompt)


def _prompt(held: Mapping[str, Any], layout: RecordLayout) -> list[Any]:
    """Return the prompt as messages: the texts of its fields joined, or the messages of one."""
    asked = {path: held[path] for path in layout.prompt if is_something(held.get(path))}
    if len(asked) < 2:
        name = next(iter(asked), layout.prompt[0])
        return side_of(asked.get(name, ""), name, "user")
    if not all(isinstance(text, str) for text in asked.values()):
        raise Fault("bad-field", f"fields {', '.join(asked)} are not all strings, to be joined")
    return side_of("\n".join(asked.values()), "", "user")


def _reasoned(answer: list[Any], thought: Any, name: str) -> list[Any]:
    """Return an answer with the reasoning that lies in a field beside it, if it does."""
    if thought is None or thought == "":
        return answer
    if not isinstance(thought, str):
        raise bad_conversation(f"{name} is {kind_of(thought)}, not a string")
    if not answer or not isinstance(answer[0], Mapping):
        raise bad_conversation("the record has reasoning, and no answer to it")
    content = answer[0].get("content")
    if isinstance(content, str) and THINK[1] in content:
        if thought.strip() in content:
            return answer  # it is told there, too
        raise bad_conversation(f"the answer has reasoning of its own, and {name} has other reasoning")
    return [{**answer[0], REASONING: thought}, *answer[1:]]


def _system_of(usual: Mapping[str, Any]) -> Any:
    """Return the value of the one field of the system that is not empty; None if all are empty or missing."""
    names = [name for name in SYSTEM if is_something(usual.get(name))]
    if len(names) > 1:
        raise bad_conversation(f"the record has both {' and '.join(names)}", "name one of them with --system")
    return usual[names[0]] if names else None


def _system(text: Any, first: Mapping[str, Any]) -> dict[str, Any]:
    """Return a system text as a message.

    Args:
        first: the message that it is to come before, which can't be another system message.
    """
    if not isinstance(text, str):
        raise bad_conversation(f"system is {kind_of(text)}, not a string")
    if first["role"] in ("system", "developer"):
        raise bad_conversation("the record has a system text, and its first message is one, too")
    return {"role": "system", "content": text}


def _tools(given: Any, name: str) -> list[Any] | None:
    """Return the JSON schemas of the functions that may be called; None for no tools.

    Args:
        name: of the field.
    """
    tools = parsed(given, name)
    if tools is not None and not isinstance(tools, list):
        raise bad_conversation(f"{name} is {kind_of(tools)}, not a list of JSON schemas")
    return tools or None


def template_arguments(value: Any, name: str = ARGUMENTS) -> dict[str, Any]:
    """Check the arguments of a template apart from the conversation, and leave out null ones, which tables have.

    Args:
        value: the arguments, by name; None for no arguments.
        name: name of the field that holds them, for error messages.

    Raises:
        Fault: the value is not an object, or names a part of the conversation.

    >>> template_arguments({"enable_thinking": False, "style": None}, "chat_template_kwargs")
    {'enable_thinking': False}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise bad_conversation(f"{name} is {kind_of(value)}, not an object")
    for taken in ("messages", "tools", "add_generation_prompt"):
        if taken in value:
            raise bad_conversation(f"{name} has {taken!r}, which the conversation itself says")
    return {str(argument): held for argument, held in value.items() if held is not None}
