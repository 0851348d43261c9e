"""Render the messages of a conversation, in the form that the template takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from packtool.text.conversations.calls import with_json
from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.message import REASONING
from packtool.text.conversations.shown import REASONING_IN_PARTS, Unshown, shown_by
from packtool.text.conversations.template import ChatTemplate, Rendered
from packtool.text.faults import Fault, unsuited


def render_messages(
    conversation: Conversation, template: ChatTemplate, count: int | None = None, *, prompt: bool = False
) -> Rendered:
    """Render the first `count` messages, or all."""
    messages = conversation.messages[:count]
    return template.render(messages, conversation.tools, prompt=prompt, arguments=conversation.arguments)


def rendered(conversation: Conversation, template: ChatTemplate) -> tuple[Conversation, Rendered]:
    """Render all messages; return the conversation in the form that the template takes, and its rendering.

    That is the first form that the template shows with its reasoning, else the first that it shows without: the shape
    of a conversation tells which. If marks can't tell, as where a template reads what they replace, the first that
    renders.

    Raises:
        Fault: the conversation can't be rendered, or the template leaves out some of it in every form.
    """
    fault: Fault | None = None
    without_thoughts: Conversation | None = None
    unknown: list[Conversation] = []
    for form in _forms(conversation):
        shown = shown_by(template, form)
        if shown.failed:
            unknown.append(form)
        elif shown.missing is not None:
            fault = fault or _fault(shown.missing)
        elif shown.thoughts:
            return form, render_messages(form, template)
        else:
            without_thoughts = without_thoughts or form
    if without_thoughts is not None:
        return without_thoughts, render_messages(without_thoughts, template)
    for form in unknown:
        try:
            return form, render_messages(form, template)
        except Fault as error:
            fault = fault or error
    assert fault is not None  # there is one form at least
    raise fault


def _fault(missing: Unshown) -> Fault:
    """Return the error for what a template leaves out."""
    remedy = "give another template with --chat-template"
    if missing.of_tools:
        remedy = f"give --tool-calls=drop, which leaves out tools, calls and their results, or {remedy[5:]}"
    if missing == REASONING_IN_PARTS:
        remedy = f"give --reasoning=drop, which leaves it out, or {remedy[5:]}"
    return unsuited(f"the chat template does not show {missing.what}", remedy)


def _forms(conversation: Conversation) -> Iterator[Conversation]:
    """Yield a conversation as it is, and in each other form that a template may take.

    Some templates fail at a message without a content, take several parts for none, join the JSON of arguments to
    texts, or look for texts and thoughts in parts alone, as those of models that see images do.
    """
    yield conversation
    seen = [conversation.messages]
    spelled = [conversation.messages]
    with_json_arguments = tuple(map(_with_json, conversation.messages))
    if with_json_arguments != conversation.messages:
        spelled.append(with_json_arguments)
    for given in spelled:
        for contents in (dict, _in_strings, _in_parts, _with_parts_of_thoughts):
            messages = tuple(contents(message) for message in given)
            if messages not in seen:
                seen.append(messages)
                yield replace(conversation, messages=messages)


def _with_json(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with the arguments of its calls as JSON."""
    if not message.get("tool_calls"):
        return message
    return {**message, "tool_calls": list(map(with_json, message["tool_calls"]))}


def _in_strings(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its content as a string, also where it has none.

    >>> _in_strings({"role": "user", "content": [{"type": "text", "text": "Hi "}, {"type": "text", "text": "Ann"}]})
    {'role': 'user', 'content': 'Hi Ann'}
    """
    content = message.get("content")
    if content is None:
        return {**message, "content": ""}
    if not isinstance(content, list):
        return message
    text = ""
    for part in content:
        if part["type"] != "text":
            return message
        text += part["text"]
    return {**message, "content": text}


def _in_parts(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its content in parts, its reasoning the first of them.

    >>> _in_parts({"role": "assistant", "content": "So.", "thinking": "Hm."})["content"]
    [{'type': 'thinking', 'thinking': 'Hm.'}, {'type': 'text', 'text': 'So.'}]
    """
    content = message.get("content")
    parts: list[dict[str, Any]] = []
    if isinstance(content, list):
        parts = content
    elif content:
        parts = [{"type": "text", "text": content}]
    thought = message.get(REASONING[1])
    if thought:
        parts = [{"type": "thinking", "thinking": thought}, *parts]
    if not parts:
        return message
    changed = dict(message)
    for name in REASONING:
        changed.pop(name, None)
    changed["content"] = parts
    return changed


def _with_parts_of_thoughts(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message in parts if it has reasoning: some templates write the parts of a tool's result as a list."""
    if message.get(REASONING[1]):
        return _in_parts(message)
    return message
