"""Where records hold conversations: the layouts that are read, the names that are well known, and what is refused."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from packtool.errors import UsageError
from packtool.formats.fields import KINDS, KNOWN
from packtool.spelling import flag

_NO_CONVERSATION = "no conversation: neither messages, conversations, nor prompt and completion"


class RecordLayout(msgspec.Struct, frozen=True):
    """Where the parts of a conversation lie in a record: paths, as `value_at` follows them."""

    messages: str = ""  # the messages; "" where a prompt and its answer are apart
    prompt: tuple[str, ...] = ()  # messages, or texts, joined with a newline where they are not empty
    completion: str = ""  # the answer
    system: str = ""  # what the system says, or "" for the usual names
    history: str = ""  # messages, or [question, answer] pairs, that come before; "" for the usual names
    reasoning: str = ""  # the assistant's reasoning before the answer, or "" for the usual names
    turn: tuple[str, ...] = ()  # paths in a message to who speaks, and what; none for the usual names
    more: tuple[str, ...] = ()  # texts that belong to the prompt, too, but the first record lacks them
    usual: bool = False  # known by its names alone: an empty prompt or answer is one, a number is none

    @property
    def asked(self) -> tuple[str, ...]:
        """The paths to the texts of the prompt."""
        return (*self.prompt, *self.more)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that it names."""
        named = (self.messages, *self.asked, self.completion, self.system, self.history, self.reasoning)
        return tuple(filter(None, named))

    def lacking(self, held: Collection[str]) -> str:
        """Say what a record lacks that has something at these paths; "" if nothing.

        >>> RecordLayout(prompt=("q", "input"), completion="a").lacking(["q"])
        "no field 'a' with the answer"
        """
        if self.messages:
            return "" if self.messages in held else f"no field {self.messages!r} with a conversation"
        if self.completion not in held:
            return f"no field {self.completion!r} with the answer"
        if set(held).isdisjoint(self.asked):
            return f"no field {' or '.join(map(repr, self.prompt))} with the prompt"
        return ""

    def options(self) -> dict[str, Any]:
        """Return the options that ask for it, by name."""
        named = {
            "conversations": self.messages,
            "prompt": self.prompt,
            "completion": self.completion,
            "system": self.system,
            "history": self.history,
            "reasoning_field": self.reasoning,
            "message_fields": self.turn,
        }
        return {name: value for name, value in named.items() if value}

    def shown(self) -> str:
        """Write it as options.

        >>> RecordLayout(prompt=("instruction", "input"), completion="output").shown()
        '--prompt=instruction,input --completion=output'
        >>> RecordLayout("data.turns", turn=("speaker", "text")).shown()
        '--conversations=data.turns --message-fields=speaker,text'
        """
        words = []
        for name, value in self.options().items():
            text = value if isinstance(value, str) else ",".join(value)
            words.append(f"{flag(name)}={shlex.quote(text)}")
        return " ".join(words)


USUAL = (
    RecordLayout("messages", usual=True),
    RecordLayout("conversations", usual=True),
    RecordLayout(prompt=("prompt",), completion="completion", usual=True),
)
"""Layouts by names that say what they hold; of several that a record has, the first."""


def lacking(layouts: Collection[RecordLayout], held: Collection[str]) -> str:
    """Say what a record lacks to have one of these layouts, if it has something at these paths; "" if it has one.

    >>> lacking(USUAL, ["prompt"]), lacking(USUAL, ["prompt", "completion"])
    ('no conversation: neither messages, conversations, nor prompt and completion', '')
    """
    lacks = [layout.lacking(held) for layout in layouts]
    if "" in lacks:
        return ""
    return lacks[0] if len(lacks) == 1 else _NO_CONVERSATION


class Unread(msgspec.Struct, frozen=True):
    """A record that would be misread by its other fields, and is refused."""

    fits: Callable[[Mapping[str, Any]], bool]  # whether a record is one
    what: str  # the words for it, after "the first record is"
    remedy: str  # what to do first; {options} stands for those that read a part of it
    pair: bool = False  # whether it is a preference pair


def _is_pair(record: Mapping[str, Any]) -> bool:
    return all(map(record.get, KINDS["preference"])) and record.get("messages") is None


def _has_labelled_steps(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("completions"), list) and isinstance(record.get("labels"), list)


def _has_choices(record: Mapping[str, Any]) -> bool:
    choices = [name for name in KINDS["choices"] if isinstance(record.get(name), list | dict)]
    return bool(choices) and not record.keys().isdisjoint(KINDS["right choice"])


UNREAD = (
    Unread(_is_pair, "a preference pair", "name the answer that is to train{options}", pair=True),
    Unread(
        lambda record: record.keys() >= {"message_id", "parent_id", "role"},
        "one message of a tree, as OpenAssistant stores them",
        "join each answer with what it answers, by parent_id, to lists of messages first",
    ),
    Unread(
        lambda record: record.keys() >= {"parent_id", "instruction", "output"},
        "one turn of a conversation, which goes on from its parent_id (H2O)",
        "join each answer with what it answers, by parent_id, to lists of messages first, or give --prompt=instruction "
        "--completion=output to read each turn by itself",
    ),
    Unread(
        _has_labelled_steps,
        "an answer in steps, each with a label (process supervision)",
        "join the steps of good answers first, to a field completion",
    ),
    Unread(
        _has_choices,
        "a question of multiple choice",
        "write the right choice, not its number or letter, to a field of its own, and name that with --completion",
    ),
)
"""What is refused by name: it would be read wrongly otherwise, or half."""


def unread(record: Mapping[str, Any]) -> Unread | None:
    """Return what is known of a record that would be misread; None for any other.

    >>> unread({"message_id": "a", "parent_id": "b", "role": "prompter", "text": "Hi"}).what
    'one message of a tree, as OpenAssistant stores them'
    """
    return next((row for row in UNREAD if row.fits(record)), None)


def known_layout(
    names: Collection[str],
    *,
    prompt: tuple[str, ...] = (),
    completion: str | None = None,
) -> RecordLayout | None:
    """Return the well-known layout of a record that has these fields; None for other fields.

    Args:
        prompt, completion: what is named of it; the other is found by its name.

    Raises:
        UsageError: it is not clear which fields are meant.

    >>> known_layout(["id", "Question", "Answer"]).shown()
    '--prompt=Question --completion=Answer'
    >>> known_layout(["question", "passage", "answer"], prompt=("passage", "question")).completion
    'answer'
    """
    spelled = {name.lower(): name for name in reversed(list(names))}
    if prompt:
        return _answered(prompt, spelled)
    for known in KNOWN:
        answers = [spelled[name] for name in known.answers if name in spelled]
        if completion is not None:
            answers = [completion]
        if known.prompt not in spelled or not answers:
            continue
        asked = [spelled[name] for name in (known.prompt, *known.after) if name in spelled]
        # A question beside an instruction is the other half of the prompt, as a context is.
        others = [spelled[name] for name in (*KINDS["context"], *KINDS["question"]) if name in spelled]
        others = [name for name in others if name not in (*asked, *answers)]
        if len(answers) > 1 or others:
            raise _unclear((*asked, *answers, *others))
        more = known.after if len(asked) == 1 else ()
        return RecordLayout(prompt=tuple(asked), completion=answers[0], more=more)
    return None


def _answered(prompt: tuple[str, ...], spelled: Mapping[str, str]) -> RecordLayout | None:
    """Return the layout of a prompt with the one answer that a record has; None if it has no answer.

    Args:
        spelled: the names of its fields, by themselves in lower case.
    """
    known = dict.fromkeys(name for layout in KNOWN for name in layout.answers)
    answers = [spelled[name] for name in known if name in spelled and spelled[name] not in prompt]
    if len(answers) > 1:
        raise _unclear((*prompt, *answers))
    return RecordLayout(prompt=prompt, completion=answers[0]) if answers else None


def _unclear(found: Collection[str]) -> UsageError:
    what = f"the first record has {', '.join(found)}: it is not clear which are the prompt and the answer"
    return UsageError("unclear-fields", what, remedy="name both with --prompt and --completion")
