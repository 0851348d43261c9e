"""Render the messages of a conversation, with contents in the form that the template takes: strings, or parts."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from operator import itemgetter
from typing import Any

from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.shown import Unshown, left_out
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

    A template for strings fails at a content in parts, or leaves it out, or writes the list as Python does. It may also
    fail at a message that calls tools and has no content, as OpenAI writes them. Then it is given strings.

    Raises:
        Fault: the conversation can't be rendered, or the template leaves out some of it in either form.
    """
    forms = [conversation]
    strings = tuple(map(_in_strings, conversation.messages))
    if strings != conversation.messages:
        forms.append(replace(conversation, messages=strings))
    fault: Fault | None = None
    for form in forms:
        try:
            whole = render_messages(form, template)
        except Fault as error:
            fault = error
            continue
        missing = left_out(form, template)
        if missing is None:
            return form, whole
        fault = _fault(missing, form, template)
        if missing.content != "parts":
            break
    assert fault is not None  # there is one form at least
    raise fault


def _fault(missing: Unshown, conversation: Conversation, template: ChatTemplate) -> Fault:
    """Return the error for what a template leaves out, with the form that it takes, if it takes another."""
    if missing.content == "parts":
        what = f"the chat template takes no content in parts, as {missing.what.removeprefix('the content of ')} has it"
        return unsuited(what, "join them to one string")
    if missing.content and _takes_parts(conversation, template):
        what = "the chat template takes content in parts alone"
        return unsuited(what, 'write it as [{"type": "text", "text": "…"}]')
    remedy = "give another template with --chat-template"
    if missing.of_tools:
        remedy = f"give --tool-calls=drop, which leaves out tools, calls and their results, or {remedy[5:]}"
    return unsuited(f"the chat template does not show {missing.what}", remedy)


def _takes_parts(conversation: Conversation, template: ChatTemplate) -> bool:
    """Return whether a template shows a conversation if its contents are in parts.

    Templates of models that see images loop over the parts, and a string has no parts.
    """
    in_parts = replace(conversation, messages=tuple(map(_in_parts, conversation.messages)))
    try:
        render_messages(in_parts, template)
    except Fault:
        return False
    return left_out(in_parts, template) is None


def _in_strings(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its content as a string, if the content is in parts of text, or missing; thoughts of the
    assistant that come before all texts become a field.

    >>> _in_strings({"role": "user", "content": [{"type": "text", "text": "Hi "}, {"type": "text", "text": "Ann"}]})
    {'role': 'user', 'content': 'Hi Ann'}
    """
    content = message.get("content")
    if content is None:
        return {**message, "content": ""}
    if not isinstance(content, list):
        return message
    thoughts = list(takewhile(lambda part: part["type"] == "thinking", content))
    texts = content[len(thoughts) :]
    is_said = message["role"] == "assistant" and not message.get("reasoning_content")
    if any(part["type"] != "text" for part in texts) or (thoughts and not is_said):
        return message
    joined = {**message, "content": "".join(map(itemgetter("text"), texts))}
    if thoughts:
        thought = "".join(map(itemgetter("thinking"), thoughts))
        joined |= {"thinking": thought, "reasoning_content": thought}
    return joined


def _in_parts(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its content in parts, if it is a string."""
    if isinstance(message.get("content"), str):
        return {**message, "content": [{"type": "text", "text": message["content"]}]}
    return message
