"""Make the conversation of a record: where a layout says that its parts lie, in whatever form they have there."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from operator import and_
from typing import Any

from packtool.formats.fields import ANSWERS, BESIDE, HISTORY, KINDS, MEDIA, REASONING, SYSTEM, TOOLS
from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.layouts import USUAL, RecordLayout, lacking
from packtool.text.conversations.marks import marks_of_messages, require_trained
from packtool.text.conversations.message import (
    is_plain,
    kind_of,
    message_of,
    reasoning_of,
    require_may_train,
    role_of,
    text_of_parts,
)
from packtool.text.conversations.reasoning import THINK
from packtool.text.conversations.turns import is_list, messages_in, parsed, past_of, side_of
from packtool.text.conversations.unread import unread_in
from packtool.text.faults import Fault, bad_conversation
from packtool.text.paths import values_at

_BESIDE = frozenset((*BESIDE, *HISTORY))
_ANSWERS = frozenset(ANSWERS)
_KWARGS = "chat_template_kwargs"
_CHOSEN = "make the chosen answer the completion, or the last message"


def conversation_of(
    record: Mapping[str, Any],
    layouts: Sequence[RecordLayout] = USUAL,
    known: Collection[str] | None = None,
    *,
    refuse: bool = False,
) -> Conversation:
    """Make the conversation of a record, which has the first of these layouts whose parts it has.

    Marks such as `"train": false` keep a message from training, see `marks.py`. Reasoning gets all names that
    templates read, whichever of them the record has. A `system` text becomes the first message, `functions` become
    tools, and `chat_template_kwargs` become arguments of the template.

    Args:
        known: fields that were told of, read or not; None to tell of none.
        refuse: refuse another field that is hardly left out on purpose, see `unread.py`.

    Raises:
        Fault: the record holds no conversation there, or a message is malformed, or has no content; or the record is
            not to be trained on.

    >>> found = conversation_of({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]})
    >>> found.messages
    ({'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Ho'})
    >>> conversation_of({"prompt": "1 + 1", "completion": "2"}).prompt
    1
    >>> conversation_of({"system": "Be brief.", "prompt": "1 + 1", "completion": "2"}).messages[0]
    {'role': 'system', 'content': 'Be brief.'}
    >>> named = RecordLayout(prompt=("q",), completion="answers[0]")
    >>> conversation_of({"q": "1 + 1", "answers": ["2"]}, [named]).messages[1]
    {'role': 'assistant', 'content': '2'}
    """
    layout, held = _found(record, layouts)
    beside = {}
    for name, value in record.items():
        if name not in _BESIDE or value is None or name in held:
            continue
        if name in HISTORY and (layout.messages or not is_list(value)):
            continue  # it comes before a prompt, and is messages
        beside[name] = value
    _require_training(beside, layout)
    preferred = [beside.pop(name) for name in KINDS["preference"] if name in beside]
    given, prompt = _given(record, layout, held, beside)
    if any(preferred) and _asks(given):
        raise bad_conversation(f"its last message has no answer but in {' or '.join(KINDS['preference'])}", _CHOSEN)
    messages, trains = _checked(given, beside)
    if layout.system in held:
        beside["system"] = held[layout.system]
    system = text_of_parts(_one_of(beside, SYSTEM))
    if system:
        messages, trains = (_system(system, messages[0]), *messages), (True, *trains)
        if prompt is not None:
            prompt += 1
    arguments = template_arguments(parsed(beside.get(_KWARGS), _KWARGS))
    read = held | beside
    unread: tuple[str, ...] = ()
    if known is not None:
        unread = unread_in(record, known, read, refuse=refuse)
    return Conversation(messages, trains, _tools(beside), prompt, arguments, read, unread)


def _given(
    record: Mapping[str, Any], layout: RecordLayout, held: Mapping[str, Any], beside: dict[str, Any]
) -> tuple[list[Any], int | None]:
    """Return the messages of a record, and how many of them are the prompt; None if prompt and answer are not apart.

    Args:
        held: what lies at the paths of the layout.
        beside: what may say more of it; an answer that is found beside messages is added.
    """
    if layout.messages:
        given = messages_in(held[layout.messages], layout.messages, layout.turn)
        if not given:
            raise bad_conversation("a conversation without messages")
        return _answered(given, record, layout, held, beside), None
    name = layout.history or _one_name(beside, HISTORY)
    given = past_of(held.get(name, beside.get(name)), name) + _prompt(held, layout)
    answer = side_of(_written(held[layout.completion], layout), layout.completion, "assistant")
    if not given and not answer:
        raise bad_conversation("a conversation without messages")
    return given + _reasoned(answer, layout, held, beside), len(given)


def _checked(given: list[Any], beside: Mapping[str, Any]) -> tuple[tuple[dict[str, Any], ...], tuple[bool, ...]]:
    """Return messages in the form that templates take, and whether each may train."""
    if all(map(is_plain, given)):  # as nearly all are
        messages, trains = tuple(given), (True,) * len(given)
    else:
        read = [message_of(message, number) for number, message in enumerate(given, 1)]
        messages, trains = tuple(message for message, _ in read), tuple(may for _, may in read)
    listed = marks_of_messages(beside, len(messages))
    if listed is not None:
        for number, (message, may) in enumerate(zip(messages, listed, strict=True), 1):
            require_may_train(message, may, number, "the mark in a list")
        trains = tuple(map(and_, trains, listed))
    return messages, trains


def _found(record: Mapping[str, Any], layouts: Sequence[RecordLayout]) -> tuple[RecordLayout, dict[str, Any]]:
    """Return the first of these layouts whose parts a record has, and what lies at its paths.

    Raises:
        Fault: it has none of them.
    """
    every: set[str] = set()
    for layout in layouts:
        held = {path: value for path, value in values_at(record, layout.paths).items() if value is not None}
        if not layout.lacking(held):
            return layout, held
        every.update(held)
    raise Fault("missing-text", lacking(layouts, every))


def _prompt(held: Mapping[str, Any], layout: RecordLayout) -> list[Any]:
    """Return the prompt as messages: the texts of its fields joined, or the messages of one."""
    asked = [held[path] for path in layout.asked if path in held and (layout.usual or not _is_empty(held[path]))]
    if not asked or (_is_empty(held[layout.completion]) and not layout.usual):
        empty = repr(layout.completion) if asked else " and ".join(map(repr, layout.prompt))
        raise Fault("missing-text", f"nothing in {empty}")
    if len(asked) == 1:
        return side_of(_written(asked[0], layout), layout.prompt[0], "user")
    if not all(isinstance(text, str) for text in asked):
        raise Fault("bad-field", f"fields {', '.join(layout.prompt)} are not all strings, to be joined")
    return side_of("\n".join(asked), "", "user")


def _is_empty(value: Any) -> bool:
    return isinstance(value, str | list | Mapping) and not value


def _written(value: Any, layout: RecordLayout) -> Any:
    """Return a number, or true or false, as JSON writes it, where the fields are named; any other value as it is."""
    if isinstance(value, bool | int | float) and not layout.usual:
        return json.dumps(value)
    return value


def _answered(
    given: list[Any], record: Mapping[str, Any], layout: RecordLayout, held: Mapping[str, Any], beside: dict[str, Any]
) -> list[Any]:
    """Return messages with the answer to the last of them that lies in a field beside, if it does.

    Raises:
        Fault: it is not clear which field has the answer.
    """
    if not _asks(given):
        return given[:-1] + _reasoned(given[-1:], layout, held, beside)
    answers = {}
    for name, value in record.items():
        if name in _ANSWERS and name not in held and isinstance(value, str | list) and value:
            answers[name] = value
    name = _one_name(answers, ANSWERS)
    answer: list[Any] = []
    if name:
        beside[name] = answers[name]
        answer = side_of(answers[name], name, "assistant")
    return given + _reasoned(answer, layout, held, beside)


def _asks(messages: Sequence[Any]) -> bool:
    """Return whether the last of these messages is not the assistant's."""
    last = messages[-1]
    return not isinstance(last, Mapping) or role_of(last.get("role")) != "assistant"


def _reasoned(answer: list[Any], layout: RecordLayout, held: Mapping[str, Any], beside: dict[str, Any]) -> list[Any]:
    """Return an answer with the reasoning that lies in a field beside, if it does.

    Args:
        beside: what may say more of the record; a mode such as "off", under a name of reasoning, is taken out of it.

    Raises:
        Fault: there is no answer, or it has reasoning of its own; or several fields have reasoning.
    """
    for name in [name for name in beside if name in REASONING]:
        value = beside[name]
        if layout.reasoning or (isinstance(value, str) and value.strip().isalnum()):
            beside.pop(name)  # another is named; or it is a mode, as "on" and "high": nobody reasons in a word
    found = beside
    if layout.reasoning:
        found = {REASONING[0]: held.get(layout.reasoning)}
    thought = reasoning_of(found, "the record") or ""
    if not thought.strip():
        return answer
    if not answer or not isinstance(answer[0], Mapping):
        raise bad_conversation("the record has reasoning, and no answer to it")
    first = answer[0]
    content = first.get("content")
    own = reasoning_of(first, "the answer")
    if thought == own or (isinstance(content, str) and thought.strip() in content):
        return answer  # it is told there, too
    if own or (isinstance(content, str) and THINK[1] in content):
        raise bad_conversation("the answer has reasoning of its own, and a field beside it has other reasoning")
    return [{**first, "reasoning_content": thought}, *answer[1:]]


def _require_training(record: Mapping[str, Any], layout: RecordLayout) -> None:
    """Refuse a record that its fields keep from training: a rejected answer, a preference pair, images or sounds."""
    require_trained(record)
    # What `conversations` holds beside a pair may lack the answer; what is named is meant.
    may_be_pair = not layout.messages or (layout.usual and layout.messages == "conversations")
    if may_be_pair and all(map(record.get, KINDS["preference"])):
        raise bad_conversation("a preference pair", _CHOSEN)
    for name in MEDIA:
        if record.get(name):
            raise bad_conversation(f"it has {name}, which are not read: conversations are text")


def _one_name(record: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the one of these names whose field is not empty; "" if all are empty or missing.

    Raises:
        Fault: several of the fields hold something.
    """
    if not record:
        return ""
    held = [name for name in names if record.get(name) not in (None, "", [])]
    if len(held) > 1:
        raise bad_conversation(f"the record has both {held[0]} and {held[1]}")
    return held[0] if held else ""


def _one_of(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the one field of these names that is not empty; None if all are empty or missing."""
    return record.get(_one_name(record, names))


def _tools(record: Mapping[str, Any]) -> list[Any] | None:
    """Return the JSON schemas of the functions that may be called; None for no tools."""
    name = _one_name(record, TOOLS) or TOOLS[0]
    tools = parsed(record.get(name), name)
    if tools is not None and not isinstance(tools, list):
        raise bad_conversation(f"{name} is {kind_of(tools)}, not a list of JSON schemas")
    if name == TOOLS[0]:
        return tools or None
    # OpenAI's older `functions` lack the envelope that templates expect around a tool.
    wrapped = []
    for tool in tools or ():
        if _is_wrapped(tool):
            wrapped.append(tool)
        else:
            wrapped.append({"type": "function", "function": tool})
    return wrapped or None


def _is_wrapped(tool: Any) -> bool:
    """Return whether a tool has its function inside, as `{"type": "function", "function": …}`."""
    return isinstance(tool, Mapping) and isinstance(tool.get("function"), Mapping)


def template_arguments(value: Any, name: str = _KWARGS) -> dict[str, Any]:
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
