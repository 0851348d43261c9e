"""Find where the text of a conversation shows the reasoning that does not train."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from packtool.text.conversations.contents import render_messages
from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.ends import TextSpan
from packtool.text.conversations.reasoning import Tags, Thought, thoughts_of, with_thought
from packtool.text.conversations.template import ChatTemplate
from packtool.text.faults import unsuited


def thoughts_in(
    conversation: Conversation, template: ChatTemplate, text: str, chosen: Iterable[int], masked: Tags
) -> list[TextSpan]:
    """Find where the template writes the reasoning of the chosen messages, if it is masked."""
    found: list[TextSpan] = []
    if not masked:
        return found
    for number in chosen:
        for thought in thoughts_of(conversation.messages[number], masked):
            found += _places(conversation, template, text, number, thought)
    return found


def _places(
    conversation: Conversation, template: ChatTemplate, text: str, number: int, thought: Thought
) -> list[TextSpan]:
    """Find where the template writes a thought, by a second rendering with a mark in place of the thought.

        text     <assistant><think>Hm.</think>Yes. (Hm.)    the template shows the thought twice
        marked   <assistant><think>*</think>Yes. (*)        `others` are </think>Yes. ( and )

    The text without `first` and `others` is the thought, as often as it is shown: here 2 × `size` characters. If a
    template trims or escapes the thought, `size` is the length of what it wrote. Nothing else may differ.

    >>> source = "<think>{{ messages[0].thinking }}</think>Yes. ({{ messages[0].thinking }})"
    >>> talk = Conversation(({"role": "assistant", "thinking": "Hm.", "content": "Yes."},), (True,))
    >>> _places(talk, ChatTemplate(source), "<think>Hm.</think>Yes. (Hm.)", 0, Thought())
    [(7, 10), (24, 27)]
    """
    message = conversation.messages[number]
    mark = _mark_for(text)
    messages = list(conversation.messages)
    messages[number] = with_thought(message, thought, mark)
    marked = render_messages(replace(conversation, messages=tuple(messages)), template).text
    first, *others = marked.split(mark)
    if not others and marked == text:
        return []  # the template leaves it out
    of_thoughts = len(text) - (len(marked) - len(mark) * len(others))
    size, rest = divmod(of_thoughts, max(1, len(others)))
    shown = text[len(first) : len(first) + size]
    if not others or rest or size < 0 or shown.join([first, *others]) != text:
        raise unsuited(
            f"the chat template changes more of its text with the reasoning of message {number + 1}, so it can't be "
            "told which tokens are reasoning"
        )
    spans, begin = [], len(first)
    for other in others:
        spans.append((begin, begin + size))
        begin += size + len(other)
    return spans


def _mark_for(text: str) -> str:
    """Return a mark that a text does not contain, between characters that Unicode reserves for programs."""
    number = 0
    while f"\ufdd2{number}\ufdd3" in text:
        number += 1
    return f"\ufdd2{number}\ufdd3"
