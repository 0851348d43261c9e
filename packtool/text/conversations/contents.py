"""Render the messages of a conversation, with contents in the form that the template takes: strings, or parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from packtool.text.conversations.conversation import Conversation, ConversationError, UnsuitedTemplateError
from packtool.text.conversations.reasoning import THINK
from packtool.text.conversations.template import ChatTemplate, Rendered


def render(
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
        ConversationError: the conversation can't be rendered, or the template leaves out contents in either form.
    """
    try:
        whole = render(conversation, template)
        _require_parts(conversation, whole.text)
    except ConversationError:
        messages = tuple(map(_in_strings, conversation.messages))
        if messages == conversation.messages:
            raise
        conversation = replace(conversation, messages=messages)
        whole = render(conversation, template)
        _require_parts(conversation, whole.text)
    _require_strings(conversation, template, whole.text)
    return conversation, whole


def _in_strings(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its content as a string, if the content is in parts of text, or missing.

    >>> _in_strings({"role": "user", "content": [{"type": "text", "text": "Hi "}, {"type": "text", "text": "Ann"}]})
    {'role': 'user', 'content': 'Hi Ann'}
    """
    content = message.get("content")
    if content is None:
        return {**message, "content": ""}
    if isinstance(content, list) and all(part["type"] == "text" for part in content):
        return {**message, "content": "".join(part["text"] for part in content)}
    return message


def _require_parts(conversation: Conversation, text: str) -> None:
    """Require that the text has all contents in parts: a template for strings may write the list, or no content."""
    for number, message in enumerate(conversation.messages, 1):
        content = message.get("content")
        if not isinstance(content, list):
            continue
        answers = [_answer(part["text"]) for part in content if "text" in part]
        if str(content) in text or not all(answer in text for answer in answers):
            raise UnsuitedTemplateError(
                f"the chat template takes no content in parts, as message {number} has it", "join them to one string"
            )


def _require_strings(conversation: Conversation, template: ChatTemplate, text: str) -> None:
    """Require that the text has the contents that are strings: a template for parts alone leaves them out.

    Templates of models that see images are such: they loop over the parts, and a string has no parts.
    """
    messages = conversation.messages
    strings = (message["content"] for message in messages if isinstance(message.get("content"), str))
    # The longest will do: a template that takes no strings leaves out all, and a short one may occur by chance.
    longest = max(map(_answer, strings), key=len, default="")
    if longest in text:
        return
    in_parts = []
    for message in messages:
        if isinstance(message.get("content"), str):
            in_parts.append({**message, "content": [{"type": "text", "text": message["content"]}]})
        else:
            in_parts.append(message)
    try:
        shown = longest in render(replace(conversation, messages=tuple(in_parts)), template).text
    except ConversationError:
        return  # the template takes no parts: it changes the strings that it writes, and leaves none out
    if shown:
        raise UnsuitedTemplateError(
            "the chat template takes content in parts alone", 'write it as [{"type": "text", "text": "…"}]'
        )


def _answer(content: str) -> str:
    """Return a content without the reasoning before it, which templates may leave out."""
    return content.rpartition(THINK[1])[2].strip()
