"""Render conversations, and find which characters of them train.

    <user>Hi<assistant>Ho<end>
    ╰── before ───────╯╰ turn ╯   what comes before a message, with the generation prompt, then what the message adds

A template that marks what is generated says where turns are. Any other is rendered with the beginnings of the
conversation. Then each turn gets its end (`ends.py`), and reasoning that is not to train is cut out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, count
from typing import NamedTuple

from packtool.text.conversations.contents import render, rendered
from packtool.text.conversations.ends import Ends, Span, joined
from packtool.text.conversations.reasoning import Tags, Thought, thoughts_of, with_thought
from packtool.text.conversations.record import (
    Conversation,
    ConversationError,
    NothingTrainsError,
    Trained,
    UnsuitedTemplateError,
)
from packtool.text.conversations.template import ChatTemplate, Rendered

Spans = tuple[Span, ...]
"""(begin, end) in characters, ascending, none overlapping."""
_OPENED = re.compile(r"[<\[][^<>\[\]\s]*\Z")
_CLOSES = re.compile(r"[^<>\[\]\s]*[>\]]")
"""The beginning of a tag at the end of a text, and the rest of it."""


class Document(NamedTuple):
    """The rendering of a conversation, or of a part of it.

    Attributes:
        text: rendered.
        spans: of it that train.
        apart: see `Rendered`.
        eos: the EOS that follows trains.
        end: the token that ends the last turn that trains; empty where nothing does.
        open: turns that train without an end.
    """

    text: str
    spans: Spans
    apart: Spans = ()
    eos: bool = False
    end: str = ""
    open: int = 0


class _Turns(NamedTuple):
    """A rendering, the turns in it that train, and the reasoning that does not."""

    rendering: Rendered
    turns: list[Span]
    thoughts: list[Span]


def documents_of(
    conversation: Conversation,
    template: ChatTemplate,
    train_on: Trained = "assistant",
    *,
    ends: Ends,
    masked: Tags = (),
) -> list[Document]:
    """Render a conversation, and find what trains.

    Args:
        conversation: as its record has it.
        template: the tokenizer's.
        train_on: `assistant`, each message of the assistant's; `last`, the last of these; `completion`, what follows
            the prompt; `all`, the whole text; `each`, each message of the assistant's as the model sees it when it
            generates it. Messages that say so never train.
        ends: the tokens that end a turn.
        masked: tags of reasoning, none of which trains; no tags where all reasoning does.

    Returns:
        One document; but with `each` one more for each message that the template renders differently once others
        follow: it ends with that message. Messages whose rendering is a beginning of the next share one.

    Raises:
        ConversationError: nothing would train, or what trains can't be found in the text.

    >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    >>> source += "{% if add_generation_prompt %}<assistant>{% endif %}"
    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    >>> talk = Conversation(tuple(chat), (True, True))
    >>> documents_of(talk, ChatTemplate(source), ends=Ends((), ["</s>"]))
    [Document(text='<user>Hi<assistant>Ho', spans=((19, 21),), apart=(), eos=True, end='</s>', open=0)]
    """
    template.begin()
    conversation, whole = rendered(conversation, template)
    if train_on == "each":
        found = _each(conversation, template, whole, masked)
    else:
        found = [_whole(conversation, template, whole, train_on, masked)]
    documents = []
    for rendering, turns, thoughts in found:
        ended = ends.ended(rendering, turns, marked=template.marks)
        spans = _without(ended.turns, thoughts)
        if spans:
            eos = ended.eos or train_on == "all"
            documents.append(Document(rendering.text, spans, rendering.apart, eos, ended.token, ended.open))
    if not documents:
        raise NothingTrainsError("nothing trains: what is to train is empty in the text")
    return documents


def _without(turns: Sequence[Span], thoughts: Iterable[Span]) -> Spans:
    """Cut thoughts out of turns."""
    left = turns
    for first, last in thoughts:
        pieces: list[Span] = []
        for begin, end in left:
            pieces += [(begin, min(end, first)), (max(begin, last), end)]
        left = [piece for piece in pieces if piece[0] < piece[1]]
    return tuple(joined(left))


def _whole(
    conversation: Conversation, template: ChatTemplate, whole: Rendered, train_on: Trained, masked: Tags
) -> _Turns:
    """Find what trains of a conversation as it is rendered whole; some turns may be empty."""
    if train_on == "all":
        if not all(conversation.trains):
            raise ConversationError("a message is not to train, but all of the text is asked for")
        return _Turns(whole, [(0, len(whole.text))], [])
    said = _said(conversation)
    chosen = _chosen(conversation, said, train_on)
    thoughts = _thoughts(conversation, template, whole.text, chosen, masked)
    if (
        train_on == "completion"
        and len(chosen) == len(conversation.messages) - (conversation.prompt or 0)
        and not masked
    ):
        return _Turns(whole, [(_begin(conversation, template, whole.text, chosen[0]), len(whole.text))], [])
    if not template.marks:
        turns = [_of_prefixes(conversation, template, whole.text, number) for number in chosen]
    elif len(said) == len(chosen) and not masked:
        turns = list(whole.marked)
    else:
        turns = _of_marks(whole, said, chosen)
    return _Turns(whole, turns, thoughts)


def _each(conversation: Conversation, template: ChatTemplate, whole: Rendered, masked: Tags) -> list[_Turns]:
    """Render up to each message that trains, and join those that are the beginning of the next.

        up to turn 1   <user>Hi<assistant><think>Hm.</think>Ho
        up to turn 2   <user>Hi<assistant>Ho<user>Who?<assistant><think>Me.</think>I.

    The template rewrites turn 1 once turn 2 is there: two documents. Else the second would have both turns.
    """
    out: list[_Turns] = []
    for number in _chosen(conversation, _said(conversation), "assistant"):
        until = replace(
            conversation,
            messages=conversation.messages[: number + 1],
            trains=conversation.trains[: number + 1],
        )
        upto = render(until, template)
        if template.marks:
            turns = _of_marks(upto, _said(until), [number])
        else:
            turns = [(_begin(until, template, upto.text, number), len(upto.text))]
        thoughts = _thoughts(until, template, upto.text, [number], masked)
        if out and upto.text.startswith(out[-1].rendering.text):
            before = out.pop()
            turns, thoughts = [*before.turns, *turns], [*before.thoughts, *thoughts]
        out.append(_Turns(upto, turns, thoughts))
    if whole.text.startswith(out[-1].rendering.text):  # what follows is only read
        out[-1] = out[-1]._replace(rendering=whole)
    return out


def _said(conversation: Conversation) -> list[int]:
    """List the assistant's messages."""
    return [number for number, message in enumerate(conversation.messages) if message["role"] == "assistant"]


def _chosen(conversation: Conversation, said: Sequence[int], train_on: Trained) -> list[int]:
    """List the messages that train."""
    if train_on == "completion":
        if conversation.prompt is None:
            raise ConversationError("no completion: the record has no prompt and completion")
        wanted = [number for number in said if number >= conversation.prompt]
    else:
        wanted = list(said[-1:] if train_on == "last" else said)
    chosen = [number for number in wanted if conversation.trains[number]]
    if not chosen:
        raise NothingTrainsError("nothing trains: no message of the assistant" + " may" * bool(wanted))
    return chosen


def _of_marks(rendered: Rendered, said: Sequence[int], chosen: Sequence[int]) -> list[tuple[int, int]]:
    if len(rendered.marked) != len(said):
        what = f"the chat template marks {len(rendered.marked)} spans for {len(said)} messages of the assistant"
        raise UnsuitedTemplateError(f"{what}, so it can't be told which of them train")
    return [rendered.marked[place] for place, number in enumerate(said) if number in chosen]


def _thoughts(
    conversation: Conversation, template: ChatTemplate, text: str, chosen: Iterable[int], masked: Tags
) -> list[Span]:
    """Find what the template makes of the reasoning of the chosen messages; of none without tags."""
    found: list[Span] = []
    for number in chosen if masked else ():
        for thought in thoughts_of(conversation.messages[number], masked):
            found += _shown(conversation, template, text, number, thought)
    return found


def _shown(conversation: Conversation, template: ChatTemplate, text: str, number: int, thought: Thought) -> list[Span]:
    """Find what the template makes of a thought, by a rendering with a mark in its place.

        text     <assistant><think>Hm.</think>Yes. (Hm.)    the template shows the thought twice
        marked   <assistant><think>*</think>Yes. (*)        `others` are </think>Yes. ( and )

    What is left of the text is as often what the thought became: here 2 × `size` characters. Nothing else may differ.
    """
    message = conversation.messages[number]
    mark = next(mark for mark in map("\ufdd2{}\ufdd3".format, count()) if mark not in text)
    messages = list(conversation.messages)
    messages[number] = with_thought(message, thought, mark)
    marked = render(replace(conversation, messages=tuple(messages)), template).text
    first, *others = marked.split(mark)
    if not others and marked == text:
        return []  # it is not shown
    size, rest = divmod(len(text) - len(marked) + len(mark) * len(others), max(1, len(others)))
    shown = text[len(first) : len(first) + size]
    if not others or rest or size < 0 or shown.join([first, *others]) != text:
        raise UnsuitedTemplateError(
            f"the chat template changes more of its text with the reasoning of message {number + 1}, so it can't be "
            "told which tokens are reasoning"
        )
    begins = accumulate(map(len, others[:-1]), lambda at, length: at + size + length, initial=len(first))
    return [(begin, begin + size) for begin in begins]


def _begin_of_greeting(conversation: Conversation, template: ChatTemplate, text: str) -> int:
    """Find where the text of a first message begins, with a template that renders no empty conversation: behind what it
    writes before an answer."""
    asked = replace(conversation, messages=({"role": "user", "content": "?"},))
    before, asking = render(asked, template).text, render(asked, template, prompt=True).text
    prompt = asking.removeprefix(before)
    if not prompt or prompt == asking or prompt not in text:
        raise UnsuitedTemplateError("it can't be told where the first message begins in the text: nothing is before it")
    return text.index(prompt) + len(prompt)


def _begin(conversation: Conversation, template: ChatTemplate, text: str, number: int) -> int:
    """Find where the text that the assistant generates for one message begins.

    Usually the rendered prompt is a prefix of the text. Some prompts open a tag that the text lacks; then the answer
    begins behind the common prefix, without the `<` of a tag that begins like another:

        before   <user>Hi<assistant><think>     the prompt of the message
        text     <user>Hi<assistant><b>Ho</b>   the answer is <b>Ho</b>, not b>Ho</b>

    Args:
        text: up to the end of this message, or further.
    """
    try:
        before = render(conversation, template, number, prompt=True).text
    except ConversationError:
        if number:
            raise
        return _begin_of_greeting(conversation, template, text)
    if text.startswith(before):
        return len(before)
    shared = _shared(before, text)
    opened = _OPENED.search(before, 0, shared)
    if opened and _CLOSES.match(before, shared):  # two tags that begin alike share neither
        shared = opened.start()
    # All of the earlier messages must lie in what is shared, or the answer would begin in the middle of one.
    if shared < len(render(conversation, template, number).text):
        raise UnsuitedTemplateError(
            f"the chat template renders what comes before message {number + 1} differently once it is there, so it "
            "can't be told which tokens train"
        )
    return shared


def _shared(one: str, other: str) -> int:
    """Count the characters that two texts begin with.

    >>> _shared("abcd", "abx"), _shared("", "a")
    (2, 0)
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _of_prefixes(conversation: Conversation, template: ChatTemplate, text: str, number: int) -> tuple[int, int]:
    """Return the span of one message: the text that it adds to the rendering."""
    last = number == len(conversation.messages) - 1
    upto = text if last else render(conversation, template, number + 1).text
    begin = _begin(conversation, template, upto, number)
    if not text.startswith(upto):
        raise UnsuitedTemplateError(
            f"the chat template renders message {number + 1} differently once others follow it, and marks none "
            "as generated, so it can't be told which tokens train",
            "give --train-on each or last",
        )
    return begin, len(upto)
