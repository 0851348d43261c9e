"""Render conversations, and find which characters of them train.

    <user>Hi<assistant>Ho<end>
    ╰──── before ─────╯╰─turn╯   what comes before a message, with the generation prompt, then what the message adds

A template that marks what is generated shows where turns are. With any other template, the conversation is also
rendered up to one message and up to the next, and a turn is what this message adds to the text. Then `ends.py` makes
the turn longer by the token that ends it, and reasoning that is not to train is cut out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from packtool.text.conversations.contents import render_messages, rendered
from packtool.text.conversations.conversation import Conversation, Trained
from packtool.text.conversations.ends import Ends, TextSpan, merged_spans
from packtool.text.conversations.reasoning import Tags
from packtool.text.conversations.shown import owners_of_marks
from packtool.text.conversations.template import ChatTemplate, Rendered
from packtool.text.conversations.thoughts import thoughts_in
from packtool.text.faults import Fault, bad_conversation, nothing_trains, unsuited

Spans = tuple[TextSpan, ...]
"""(begin, end) in characters, ascending, without overlaps."""
_OPENED = re.compile(r"[<\[][^<>\[\]\s]*\Z")
"""The beginning of a tag at the end of a text, such as `<thi`."""
_CLOSES = re.compile(r"[^<>\[\]\s]*[>\]]")
"""The rest of that tag, such as `nk>`."""
_WORDS = re.compile(r"\s*[^<\[\s]")
"""The beginning of a text that does not begin with a tag."""


class Document(NamedTuple):
    """The rendering of a conversation, or of a part of it."""

    text: str  # the rendering
    spans: Spans  # the parts of the text that train
    apart: Spans = ()  # where a message spells a control token, encoded as plain text. See `Rendered`
    eos: bool = False  # whether the EOS trains that a token store has after every document
    end: str = ""  # token that ends the last of the turns that train; empty without one
    open: int = 0  # how many of the turns that train have no end


class _Turns(NamedTuple):
    """A rendering, the turns in it that train, and the reasoning in them that does not train."""

    rendering: Rendered
    turns: list[TextSpan]
    thoughts: list[TextSpan]


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
        train_on: `assistant`, every message of the assistant; `last`, the assistant's last message; `completion`, what
            follows the prompt; `all`, the whole text; `each`, every message of the assistant as the model sees it when
            it generates the message. Messages of the assistant that their record marks as not to train never do.
        ends: the tokens that end a turn.
        masked: pairs of tags round reasoning that does not train, as `THINK` in `reasoning.py`; empty if all trains.

    Returns:
        One document. With `each`, one for every rendering up to a message that trains. A rendering with which the next
        one begins is joined with it. If the rendering of all messages begins with the last one, its document has all.

    Raises:
        Fault: nothing would train, or what trains can't be found in the text.

    >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    >>> source += "{% if add_generation_prompt %}<assistant>{% endif %}"
    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    >>> talk = Conversation(tuple(chat), (True, True))
    >>> documents_of(talk, ChatTemplate(source), ends=Ends((), ["</s>"]))
    [Document(text='<user>Hi<assistant>Ho', spans=((19, 21),), apart=(), eos=True, end='</s>', open=0)]
    """
    template.begin()  # one limit of time holds for all renderings of the conversation
    # `rendered` gives the template contents in the form that it takes, and all later renderings need that form, too:
    # `render_messages` renders the conversation as it is, all of it or the first `count` messages.
    conversation, whole = rendered(conversation, template)
    if train_on == "each":
        found = _each(conversation, template, whole, masked)
    else:
        found = [_whole(conversation, template, whole, train_on, masked)]
    documents = []
    for rendering, turns, thoughts in found:
        # Turns that are longer by the tokens that end them; which token ends the last one, and whether the EOS does.
        ended = ends.ended(rendering, turns, marked=template.marks)
        spans = _without(ended.turns, thoughts)
        if spans:
            eos = ended.eos or train_on == "all"
            documents.append(Document(rendering.text, spans, rendering.apart, eos, ended.token, ended.open))
    if not documents:
        raise nothing_trains("what is to train is empty in the text")
    return documents


def _without(turns: Sequence[TextSpan], thoughts: Iterable[TextSpan]) -> Spans:
    """Cut thoughts out of turns.

    >>> _without([(0, 9), (12, 15)], [(2, 4)])
    ((0, 2), (4, 9), (12, 15))
    """
    left = turns
    for first, last in thoughts:
        pieces: list[TextSpan] = []
        for begin, end in left:
            # What lies before the thought, and what lies behind it. For a turn that the thought does not touch, one of
            # the two is the whole turn, and the other ends before it begins.
            for piece in ((begin, min(end, first)), (max(begin, last), end)):
                if piece[0] < piece[1]:
                    pieces.append(piece)
        left = pieces
    # `merged_spans` joins pieces that touch: at a thought that the template shows as no text, or where a turn's end
    # reaches the next turn.
    return tuple(merged_spans(left))


def _whole(
    conversation: Conversation, template: ChatTemplate, whole: Rendered, train_on: Trained, masked: Tags
) -> _Turns:
    """Find which parts of a conversation train in the rendering of all of it; some turns may be empty."""
    if train_on == "all":
        if not all(conversation.trains):
            raise bad_conversation("a message is not to train, but all of the text is asked for")
        return _Turns(whole, [(0, len(whole.text))], [])  # `choose.py` refuses to mask reasoning then
    said = _said(conversation)
    chosen = _chosen(conversation, said, train_on)
    # Whether all messages after the prompt are the assistant's, and train.
    all_after_prompt = train_on == "completion" and chosen == _completion(conversation)
    if all_after_prompt and not masked:  # with masks, reasoning is looked for in every turn
        # What the template writes between these messages trains, too.
        begin = _begin(conversation, template, whole.text, chosen[0])
        return _Turns(whole, [(begin, len(whole.text))], [])
    thoughts = thoughts_in(conversation, template, whole.text, chosen, masked)
    if not template.marks:
        turns = [_of_prefixes(conversation, template, whole.text, number) for number in chosen]
    elif _others_masked(conversation):
        turns = _of_owners(conversation, template, whole, chosen, masked)
    elif len(said) == len(chosen) and not masked:
        # All that is marked trains, whichever message it belongs to. With masks that would not do: a mark outside of
        # the assistant's messages may hold reasoning that nobody looks for. So then marks are matched to messages.
        turns = list(whole.marked)
    else:
        turns = _of_marks(conversation, template, whole, chosen, masked)
    return _Turns(whole, turns, thoughts)


def _each(conversation: Conversation, template: ChatTemplate, whole: Rendered, masked: Tags) -> list[_Turns]:
    """Render the conversation up to every message that trains; join a rendering that is the beginning of the next.

        up to turn 1   <user>Hi<assistant><think>Hm.</think>Ho
        up to turn 2   <user>Hi<assistant>Ho<user>Who?<assistant><think>Me.</think>I.

    The template rewrites turn 1 once turn 2 is there, so they make two documents. If it did not, the second rendering
    would begin with the first, and one document would have both turns.
    """
    out: list[_Turns] = []
    for number in _chosen(conversation, _said(conversation), "assistant"):
        until = replace(
            conversation,
            messages=conversation.messages[: number + 1],
            trains=conversation.trains[: number + 1],
        )
        upto = render_messages(until, template)
        if template.marks:
            turns = _of_marks(until, template, upto, [number], masked)
        else:
            turns = [(_begin(until, template, upto.text, number), len(upto.text))]
        thoughts = thoughts_in(until, template, upto.text, [number], masked)
        if out and upto.text.startswith(out[-1].rendering.text):
            before = out.pop()
            turns, thoughts = [*before.turns, *turns], [*before.thoughts, *thoughts]
        out.append(_Turns(upto, turns, thoughts))
    # `_chosen` raises if no message trains, so `out` is not empty.
    if whole.text.startswith(out[-1].rendering.text):
        # Messages after the last that trains stay in its document, as context that is read and does not train.
        out[-1] = out[-1]._replace(rendering=whole)
    return out


def _said(conversation: Conversation) -> list[int]:
    """List the numbers of the assistant's messages, from 0."""
    return [number for number, message in enumerate(conversation.messages) if message["role"] == "assistant"]


def _completion(conversation: Conversation) -> list[int]:
    """List the numbers of the messages that follow the prompt, from 0."""
    assert conversation.prompt is not None  # `_chosen` has refused others
    return list(range(conversation.prompt, len(conversation.messages)))


def _chosen(conversation: Conversation, said: Sequence[int], train_on: Trained) -> list[int]:
    """List the numbers of the messages that train, from 0.

    Args:
        said: the assistant's messages.
    """
    if train_on == "completion":
        if conversation.prompt is None:
            raise bad_conversation("no completion: the record has no prompt and completion")
        wanted = [number for number in said if number >= conversation.prompt]
    elif train_on == "last":
        wanted = list(said[-1:])
    else:
        wanted = list(said)
    if not wanted:
        raise nothing_trains("no message of the assistant")
    chosen = [number for number in wanted if conversation.trains[number]]
    if not chosen:
        raise nothing_trains("no message of the assistant may")
    return chosen


def _others_masked(conversation: Conversation) -> bool:
    """Return whether a message of another role than the assistant is marked not to train."""
    for message, may in zip(conversation.messages, conversation.trains, strict=True):
        if not may and message["role"] != "assistant":
            return True
    return False


def _of_owners(
    conversation: Conversation, template: ChatTemplate, rendering: Rendered, chosen: Sequence[int], masked: Tags
) -> list[TextSpan]:
    """Return the marked spans of messages that may train, since a template may mark what others than the assistant say.

    Args:
        chosen: the messages of the assistant that train.
    """
    owners = owners_of_marks(conversation, template)
    untold = unsuited("the chat template marks several messages as one, so it can't be told which train")
    if len(owners) != len(rendering.marked):
        raise untold
    turns = []
    for span, owned in zip(rendering.marked, owners, strict=True):
        trains = set()
        for number in owned or _owner_at(conversation, template, rendering.text, span):
            is_said = conversation.messages[number]["role"] == "assistant"
            if masked and not is_said:
                raise untold  # it may hold reasoning, which nobody looks for there
            trains.add(number in chosen or (not is_said and conversation.trains[number]))
        if len(trains) != 1:
            raise untold
        if True in trains:
            turns.append(span)
    return turns


def _owner_at(conversation: Conversation, template: ChatTemplate, text: str, span: TextSpan) -> list[int]:
    """Return the number of the assistant's message that has a span without a text, such as the end of its turn.

    That is the last message that begins before the span ends; an empty span may be all of its message.
    """
    _, end = span
    if span[0] == end:
        end += 1
    begun = [number for number in _said(conversation) if _begin(conversation, template, text, number) < end]
    return begun[-1:]


def _of_marks(
    conversation: Conversation, template: ChatTemplate, rendering: Rendered, chosen: Sequence[int], masked: Tags
) -> list[TextSpan]:
    """Return the marked spans of the chosen messages: in most templates one of each message of the assistant.

    Args:
        chosen: the messages of the assistant that train.
    """
    said = _said(conversation)
    if len(rendering.marked) != len(said):
        return _of_owners(conversation, template, rendering, chosen, masked)
    return [rendering.marked[place] for place, number in enumerate(said) if number in chosen]


def _begin_of_greeting(conversation: Conversation, template: ChatTemplate, text: str) -> int:
    """Find where the text of a first message begins, with a template that can't render an empty conversation.

    The generation prompt is what such a template adds to a question when it asks for the answer. The message begins
    behind it.
    """
    asked = replace(conversation, messages=({"role": "user", "content": "?"},))
    before, asking = render_messages(asked, template).text, render_messages(asked, template, prompt=True).text
    prompt = asking.removeprefix(before)
    # If `prompt` is all of `asking`, it does not begin with `before`: the template renders a question otherwise once it
    # asks for the answer, so the prompt can't be told from the question.
    if not prompt or prompt == asking or prompt not in text:
        raise unsuited("it can't be told where the first message begins in the text: nothing is before it")
    return text.index(prompt) + len(prompt)  # the first place: later ones belong to later messages


def _begin(conversation: Conversation, template: ChatTemplate, text: str, number: int) -> int:
    """Find where the text that the assistant generates for one message begins.

    Usually the rendered prompt is a prefix of the text. Some prompts open a tag that the text lacks; then the answer
    begins behind the common prefix. If that ends inside a tag, the tag belongs to the answer from its `<` on:

        before   <user>Hi<assistant><think>     the prompt of the message
        text     <user>Hi<assistant><b>Ho</b>   the answer is <b>Ho</b>, not b>Ho</b>

    Args:
        text: the rendering up to the end of this message, or further.

    >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    >>> source += "{% if add_generation_prompt %}<assistant><think>{% endif %}"
    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "<b>Ho</b>"}]
    >>> text = "<user>Hi<assistant><b>Ho</b>"
    >>> text[_begin(Conversation(tuple(chat), (True, True)), ChatTemplate(source), text, 1) :]
    '<b>Ho</b>'
    """
    try:
        before = render_messages(conversation, template, count=number, prompt=True).text
    except Fault:
        if number:
            raise
        # Nothing comes before the first message, and some templates refuse a conversation without messages.
        return _begin_of_greeting(conversation, template, text)
    if text.startswith(before):
        return len(before)
    shared = _shared(before, text)
    opened = _OPENED.search(before, 0, shared)  # its `\Z` is at `shared`
    if opened and _CLOSES.match(before, shared):
        shared = opened.start()
    earlier = len(render_messages(conversation, template, count=number).text)
    said = conversation.messages[number].get("content")
    if isinstance(said, str) and _WORDS.match(said):
        # Where a prompt has words that the text lacks, the answer may begin with some of them by chance.
        begin = text.rfind(said.strip())
        if earlier <= begin < shared:
            shared = begin
    # All earlier messages must lie in the common prefix, or the answer would begin in the middle of one of them.
    if shared < earlier:
        raise unsuited(
            f"the chat template renders what comes before message {number + 1} differently once it is there, so it "
            "can't be told which tokens train"
        )
    return shared


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts, by bisection: slices are compared faster than characters.

    >>> _shared("abcd", "abx"), _shared("", "a")
    (2, 0)
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2  # rounded up: if it could be `low`, the loop would not end
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _of_prefixes(conversation: Conversation, template: ChatTemplate, text: str, number: int) -> tuple[int, int]:
    """Return the span of one message: the text that it adds to the rendering.

    Args:
        text: the rendering of all messages.
    """
    upto = text
    if number < len(conversation.messages) - 1:
        upto = render_messages(conversation, template, count=number + 1).text
    # Before the check below, since its error says more: where it fails, `--train-on=each` would fail, too.
    begin = _begin(conversation, template, upto, number)
    if not text.startswith(upto):
        raise unsuited(
            f"the chat template renders message {number + 1} differently once others follow it, and marks none "
            "as generated, so it can't be told which tokens train",
            "give --train-on=each or last",
        )
    return begin, len(upto)
