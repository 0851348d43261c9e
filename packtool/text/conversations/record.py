"""Parse conversations from the record layouts in use: one list of messages, and the tools they may call."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from packtool.formats.fields import MEDIA, PREFERENCE, SYSTEM, TOOLS, TRAINING

_ROLES = {"human": "user", "observation": "tool"}
_ROLES |= dict.fromkeys(("gpt", "chatgpt", "bing", "bard", "bot", "chatbot", "ai", "model"), "assistant")
_CALL = "function_call"
"""The sender, in `conversations`, of a tool call, whose value is JSON; a field of messages, in OpenAI's older form."""
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function", "ipython"})
"""Roles that every template may be given."""
Trained = Literal["assistant", "all", "last", "each", "completion"]
"""The part of a conversation that trains."""
Use = Literal["train", "mask", "drop"]
"""The treatment of reasoning or tool calls: they train, they are only shown, or they are left out."""
_PARTS = ("text", "thinking")
"""Types of the parts of a content; a part has its text in the field that its type names."""
REASONING = ("reasoning_content", "thinking", "reasoning")
"""Fields of a message that hold the assistant's reasoning."""
_MARKS = ("train", "training", "trainable", "loss", "weight")
"""Fields of a message that say whether it trains: true or false, or 1 or 0."""
# A word alone, between characters that are no letters, or in camel case.
_OF_TRAINING = re.compile(
    r"(?:\A|[\W_]|(?<=[a-z])(?=[A-Z]))(?i:train(?:ing|ed|able)?|loss|mask(?:ed)?|weights?|supervised?|learn(?:ed)?)"
    r"(?=\Z|[\W_\d]|[A-Z])"
)
"""Names of fields that seem to say so, too: `train_detail`, `loss_scale`, `trainOnTurn`. They are refused."""


class ConversationError(Exception):
    """A fault of a conversation, or of its template, in words.

    Attributes:
        remedy: what to do about it; "" if the conversation itself has to be mended.
    """

    remedy = ""


class UnsuitedTemplateError(ConversationError):
    """The template can't render a conversation, or does not show what trains: it will fail for similar ones, too."""

    def __init__(self, what: str, remedy: str = "give another template with --chat-template") -> None:
        super().__init__(what)
        self.remedy = remedy


class NothingTrainsError(ConversationError):
    """No token of a conversation would train."""


@dataclass(frozen=True)
class Conversation:
    """A conversation as chat templates take it.

    Attributes:
        messages: dictionaries with a role, and with fields for the template: content, tool_calls, reasoning_content …
        trains: whether each message may train; a message of another role than the assistant never does.
        tools: JSON schemas of the functions that may be called; None for no tools.
        prompt: number of messages that are the prompt; None if the record has no prompt and completion.
        arguments: further arguments of the template, by name.
    """

    messages: tuple[dict[str, Any], ...]
    trains: tuple[bool, ...]
    tools: list[Any] | None = None
    prompt: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def masked(self, messages: Sequence[bool]) -> Conversation:
        """Return the conversation with some messages that do not train.

        Args:
            messages: whether each message is masked.
        """
        trains = (may and not masked for may, masked in zip(self.trains, messages, strict=True))
        return replace(self, trains=tuple(trains))


def conversation_of(record: Mapping[str, Any]) -> Conversation:
    """Find the conversation in a record: `messages`, `conversations` with from and value, or `prompt` and `completion`.

    Marks such as `"train": false` keep a message from training, see `_may_train`. Reasoning gets all names that
    templates read, whichever of them the record has. A `system` text becomes the first message, `functions` become
    tools, and `chat_template_kwargs` become arguments of the template.

    Raises:
        ConversationError: the record holds no conversation, or a message is malformed, or has no content.

    >>> found = conversation_of({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]})
    >>> found.messages
    ({'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Ho'})
    >>> conversation_of({"prompt": "1 + 1", "completion": "2"}).prompt
    1
    >>> conversation_of({"system": "Be brief.", "prompt": "1 + 1", "completion": "2"}).messages[0]
    {'role': 'system', 'content': 'Be brief.'}
    """
    given, prompt = _given(record)
    if not given:
        raise ConversationError("a conversation without messages")
    _require_training(record)
    if all(map(_is_plain, given)):  # as nearly all are
        messages, trains = tuple(given), (True,) * len(given)
    else:
        read = [_message(message, number) for number, message in enumerate(given, 1)]
        messages, trains = tuple(message for message, _ in read), tuple(may for _, may in read)
    system = _one_of(record, SYSTEM)
    if system:
        messages, trains = (_system(system, messages[0]), *messages), (True, *trains)
        if prompt is not None:
            prompt += 1
    arguments = _parsed(record.get("chat_template_kwargs"), "chat_template_kwargs")
    tools = _tools(record)
    return Conversation(messages, trains, tools, prompt, template_arguments(arguments, "chat_template_kwargs"))


def _given(record: Mapping[str, Any]) -> tuple[list[Any], int | None]:
    """Return the messages of a record, and how many of them are the prompt; None if it has no prompt and completion.

    >>> _given({"messages": '[{"role": "user", "content": "Hi"}]'})
    ([{'role': 'user', 'content': 'Hi'}], None)
    >>> _given({"prompt": "1 + 1", "completion": "2"})
    ([{'role': 'user', 'content': '1 + 1'}, {'role': 'assistant', 'content': '2'}], 1)
    """
    for name in ("messages", "conversations"):
        given = record.get(name)
        if given is None:
            continue
        if isinstance(given, str) and given.lstrip()[:1] == "[":  # CSV and some tables hold lists as JSON
            given = _parsed(given, name)
        turns = _list(given, name)
        # Messages with from and value are usual in `conversations`, and some records have them in `messages`.
        shared = name == "conversations" or any(isinstance(turn, Mapping) and "from" in turn for turn in turns)
        if not shared:
            return turns, None
        return [_of_shared(turn, number) for number, turn in enumerate(turns, 1)], None
    if record.get("prompt") is None or record.get("completion") is None:
        raise ConversationError("no conversation: neither messages, conversations, nor prompt and completion")
    before = _past(record.get("history")) + _side(record["prompt"], "prompt", "user")
    return before + _side(record["completion"], "completion", "assistant"), len(before)


def _past(history: Any) -> list[dict[str, Any]]:
    """Return [question, answer] pairs as messages.

    >>> _past([["1 + 1", "2"]])
    [{'role': 'user', 'content': '1 + 1'}, {'role': 'assistant', 'content': '2'}]
    """
    messages = []
    for pair in _list(_parsed(history, "history") or [], "history"):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise ConversationError("history is not a list of [question, answer] pairs")
        messages += [{"role": "user", "content": pair[0]}, {"role": "assistant", "content": pair[1]}]
    return messages


def _require_training(record: Mapping[str, Any]) -> None:
    """Refuse a record that its fields keep from training: a rejected answer, a preference pair, images or sounds."""
    for name in TRAINING:
        if str(record.get(name)).lower() == "false":
            what = "the label of an unpaired preference" if name == "label" else f"{name} of the record"
            raise ConversationError(f"{what} is false: keep the records whose {name} is true")
    if all(map(record.get, PREFERENCE)) and record.get("messages") is None:
        raise ConversationError("a preference pair: make the chosen answer the completion, or the last message")
    for name in MEDIA:
        if record.get(name):
            raise ConversationError(f"it has {name}, which are not read: conversations are text")


def _one_of(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the one field of these names that is not empty; None if all are empty or missing.

    Raises:
        ConversationError: several of the fields hold something.
    """
    held = [name for name in names if record.get(name) not in (None, "", [])]
    if len(held) > 1:
        raise ConversationError(f"the record has both {held[0]} and {held[1]}")
    return record[held[0]] if held else None


def _tools(record: Mapping[str, Any]) -> list[Any] | None:
    """Return the JSON schemas of the functions that may be called; None for no tools."""
    named = list(filter(record.get, TOOLS))
    name = named[0] if named else "tools"
    tools = _parsed(_one_of(record, TOOLS), name)
    if tools is not None and not isinstance(tools, list):
        raise ConversationError(f"{name} is {_kind(tools)}, not a list of JSON schemas")
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


def template_arguments(value: Any, name: str) -> dict[str, Any]:
    """Check the arguments of a template apart from the conversation, and leave out null ones, which tables have.

    Args:
        value: the arguments, by name; None for no arguments.
        name: name of the field that holds them, for error messages.

    Raises:
        ConversationError: the value is not an object, or names a part of the conversation.

    >>> template_arguments({"enable_thinking": False, "style": None}, "chat_template_kwargs")
    {'enable_thinking': False}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConversationError(f"{name} is {_kind(value)}, not an object")
    for taken in ("messages", "tools", "add_generation_prompt"):
        if taken in value:
            raise ConversationError(f"{name} has {taken!r}, which the conversation itself says")
    return {str(argument): held for argument, held in value.items() if held is not None}


def without_tool_calls(conversation: Conversation) -> Conversation:
    """Return a conversation without tools, tool calls and their results.

    A message of tool calls alone goes, too.

    >>> call = {"role": "assistant", "tool_calls": [{"function": {"name": "add"}}]}
    >>> talk = Conversation(({"role": "user", "content": "1 + 1"}, call, {"role": "tool", "content": "2"}), (True,) * 3)
    >>> without_tool_calls(talk).messages
    ({'role': 'user', 'content': '1 + 1'},)
    """
    messages, trains, prompt = [], [], conversation.prompt
    for number, (message, may) in enumerate(zip(conversation.messages, conversation.trains, strict=True)):
        kept = {name: value for name, value in message.items() if name != "tool_calls"}
        if message["role"] in ("tool", "function", "ipython") or ("tool_calls" in message and not kept.get("content")):
            if prompt is not None and number < (conversation.prompt or 0):
                prompt -= 1
            continue
        messages.append(kept)
        trains.append(may)
    return replace(conversation, messages=tuple(messages), trains=tuple(trains), tools=None, prompt=prompt)


def texts_of(value: Any) -> list[str]:
    """List all texts in a JSON value, in no order.

    >>> texts_of([{"role": "user", "content": ["Hi", 1]}])
    ['user', 'Hi']
    """
    texts: list[str] = []
    waiting = [value]
    for item in waiting:  # the loop also reaches the items that it appends: no recursion, however deep a value is
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
    return texts


def _of_shared(message: Any, number: int) -> dict[str, Any]:
    """Return a message with `from` and `value` renamed to role and content; `from: function_call` becomes a tool call.

    >>> _of_shared({"from": "human", "value": "Hi"}, 1)
    {'role': 'user', 'content': 'Hi'}
    """
    if isinstance(message, Mapping) and "from" in message and "value" in message:
        rest = {name: value for name, value in message.items() if name not in ("from", "value")}
        if message["from"] == _CALL:
            return {"role": "assistant", "tool_calls": _calls(message["value"], number), **rest}
        return {"role": _role(message["from"]), "content": message["value"], **rest}
    if isinstance(message, Mapping) and "role" in message:
        return dict(message)
    raise ConversationError(f"message {number} has neither from and value nor a role")


def _role(sender: Any) -> Any:
    """Return the role of a sender, whatever its case; an unknown name stays as it is.

    >>> _role("Human"), _role("GPT"), _role("System"), _role("Critic")
    ('user', 'assistant', 'system', 'Critic')
    """
    name = str(sender).lower()
    if name in _ROLES:
        return _ROLES[name]
    if name in ROLES:
        return name
    return sender


def _calls(value: Any, number: int) -> list[Any]:
    """Return the tool calls in a value, JSON of one call or of a list, in the form that templates take.

    >>> _calls('{"name": "add", "arguments": {"a": 1}}', 2)
    [{'type': 'function', 'function': {'name': 'add', 'arguments': {'a': 1}}}]
    """
    try:
        calls = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        calls = None
    if not isinstance(calls, list):
        calls = [calls]
    if not calls or not all(isinstance(call, dict) and {"name", "arguments"} <= call.keys() for call in calls):
        raise ConversationError(f"message {number} is a {_CALL} whose value is not JSON with name and arguments")
    return [{"type": "function", "function": {**call, "arguments": _arguments(call["arguments"])}} for call in calls]


def _arguments(value: Any) -> Any:
    """Return the arguments of a call, parsed if they are an object in JSON, as OpenAI writes them."""
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, dict) else value


def _system(text: Any, first: Mapping[str, Any]) -> dict[str, Any]:
    """Return a system text as a message.

    Args:
        first: the message that it is to come before, which can't be another system message.
    """
    if not isinstance(text, str):
        raise ConversationError(f"system is {_kind(text)}, not a string")
    if first["role"] in ("system", "developer"):
        raise ConversationError("the record has a system text, and its first message is one, too")
    return {"role": "system", "content": text}


def _parsed(value: Any, name: str) -> Any:
    """Parse JSON in a string, as tables hold it, whose columns have one type; return other values unchanged.

    Args:
        name: name of the field, for error messages.
    """
    if not isinstance(value, str):
        return value
    if not value:
        return None
    try:
        return json.loads(value)
    except RecursionError:
        raise ConversationError(f"{name} is nested too deeply") from None
    except ValueError as error:
        if re.match(r"[\[{\s]+'", value):
            what = f"{name} is an expression of Python, as CSV of tables has it: write Parquet or JSON Lines instead"
            raise ConversationError(what) from None
        raise ConversationError(f"{name} is not valid JSON: {error}") from None


def _side(value: Any, name: str, role: str) -> list[Any]:
    """Return a prompt or a completion as messages: a text as one message with this role."""
    if isinstance(value, list) and value and isinstance(value[0], int | float):
        raise ConversationError(f"{name} is a list of numbers, not a text: name fields with --prompt and --completion")
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return _list(value, name)


def _is_plain(message: Any) -> bool:
    """Return whether a message is a role and a text, and nothing else: such messages need no further checks."""
    return (
        type(message) is dict and len(message) == 2 and type(message.get("role")) is type(message.get("content")) is str
    )


def _message(message: Any, number: int) -> tuple[dict[str, Any], bool]:
    """Return a message in the form that templates take, and whether it may train.

    Args:
        number: of the message, from 1, for error messages.
    """
    if not isinstance(message, Mapping):
        raise ConversationError(f"message {number} is {_kind(message)}, not an object")
    role = message.get("role")
    if not isinstance(role, str):
        what = "has no role" if role is None else f"has a role that is {_kind(role)}, not a string"
        raise ConversationError(f"message {number} {what}")
    for name in MEDIA:
        if message.get(name):
            raise ConversationError(f"message {number} has {name}, which are not read: conversations are text")
    may = _may_train(message, number)
    # Tables hold every field of every message, null where a message lacks it; templates ask whether a key is there.
    kept = {name: value for name, value in message.items() if value is not None and name not in _MARKS}
    if isinstance(kept.get("content"), list):
        kept["content"] = list(map(_part, kept["content"]))
    if _CALL in kept:
        if "tool_calls" in kept:
            raise ConversationError(f"message {number} has both tool_calls and {_CALL}")
        kept["tool_calls"] = _calls(kept.pop(_CALL), number)
    reasoning = next((kept[name] for name in REASONING if name in kept), None)
    if reasoning is not None:
        # Templates ask for either name. One that the message has already keeps its value.
        kept = {"thinking": reasoning, **kept, "reasoning_content": reasoning}
    _require_content(kept, message, number)
    return kept, may


def _part(part: Any) -> Any:
    """Return a part of a content with the type `text` if it is a text: interfaces have other names for that type.

    >>> _part({"type": "input_text", "text": "Hi"}), _part({"text": "Ho"})
    ({'type': 'text', 'text': 'Hi'}, {'type': 'text', 'text': 'Ho'})
    """
    if isinstance(part, Mapping) and part.get("type") in ("input_text", "output_text", None) and "text" in part:
        return {"type": "text", **{name: value for name, value in part.items() if name != "type"}}
    return part


def _may_train(message: Mapping[str, Any], number: int) -> bool:
    """Return whether a message may train, by the fields that mark it, such as `"train": false` or `"weight": 0`.

    Raises:
        ConversationError: the form of a mark is unknown, or it asks to train on a message not of the assistant.

    >>> _may_train({"role": "assistant", "content": "Hi", "loss": False}, 1)
    False
    """
    may = True
    for name, value in message.items():
        if value is None or not _OF_TRAINING.search(name):
            continue
        if name not in _MARKS:
            raise ConversationError(
                f"message {number} has {name!r}, which is not read: mark it with train, true or false"
            )
        if value not in (0, 1):
            raise ConversationError(f"message {number}: {name} is true or false, or 1 or 0")
        if value and message["role"] != "assistant":
            raise ConversationError(f"message {number}: {name} asks to train on what the {message['role']} says")
        may = may and bool(value)
    return may


def _require_content(message: Mapping[str, Any], given: Mapping[str, Any], number: int) -> None:
    """Require a message to have contents of text, or else tool calls or reasoning.

    Args:
        message: the message with null fields removed.
        given: the message as the record has it.
    """
    content = message.get("content")
    if isinstance(content, str):
        return
    if content is None:
        if not any(map(message.get, ("tool_calls", "reasoning_content"))):
            names = ", ".join(str(name)[:40] for name in [*given][:12])  # a record may have any number of fields
            null = "is null" if "content" in given else "is missing"
            raise ConversationError(f"the content of message {number} {null}; its fields are {names}")
        return
    if not isinstance(content, list):
        raise ConversationError(f"the content of message {number} is {_kind(content)}, neither a string nor parts")
    for part in content:
        fields: Mapping[str, Any] = part if isinstance(part, Mapping) else {}
        kind = fields.get("type")
        mark = next(filter(_OF_TRAINING.search, fields), None)
        if mark:
            raise ConversationError(f"a part of the content of message {number} has {mark!r}: parts train together")
        if kind not in _PARTS or not isinstance(fields.get(kind), str):
            what = f"of type {str(kind)[:40]!r}" if kind is not None else "without a type"
            raise ConversationError(f"the content of message {number} has a part {what}, which is not a text")


def _list(value: Any, name: str) -> list[Any]:
    """Return a value, which must be a list, the value of the field of this name."""
    if not isinstance(value, list):
        raise ConversationError(f"{name} is {_kind(value)}, not a list of messages")
    return value


def _kind(value: Any) -> str:
    """Return the kind of a JSON value in words."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
