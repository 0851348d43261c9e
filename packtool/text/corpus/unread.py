"""Recognise records of layouts that are not read, by their fields, and say how to make conversations of them.

The commands are of jq, which takes JSON Lines; what they write is read.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from packtool.formats.fields import CONVERSATION, PREFERENCE
from packtool.text.corpus.layouts import KNOWN, MORE
from packtool.text.corpus.tables import UNSEEN
from packtool.text.corpus.turns import holds_text, holds_turns


class Unread(NamedTuple):
    """A layout that is not read.

    Attributes:
        what: a record of it is.
        remedy: what to do first.
        pair: it is a preference pair.
    """

    what: str
    remedy: str
    pair: bool = False


def _jq(program: str) -> str:
    """Write the command that runs a program over records."""
    return f"jq -c {shlex.quote(' '.join(program.split()))}"


_THREADS = "join each answer with what it answers, by parent_id, to lists of messages first"
_OF_MOSS = """{system: .meta_instruction,
 messages: [.chat[] | {role: "user", content: .Human}, {role: "assistant", content: .MOSS}]}"""
_OF_STEPS = r"""{prompt, completion: (.completions | join("\n"))}"""
_OF_COQA = """{system: .story, messages: [[.questions, .answers.input_text] | transpose[]
 | {role: "user", content: .[0]}, {role: "assistant", content: .[1]}]}"""
_OF_XLAM = """{tools, messages: [{role: "user", content: .query},
 {role: "assistant", tool_calls: (.answers | fromjson | map({type: "function", function: .}))}]}"""
_SHAPES = (
    ("message_id parent_id role", "one message of a tree, as OpenAssistant stores them", _THREADS),
    (
        "parent_id instruction output",
        "one turn of a conversation, which goes on from its parent_id (H2O)",
        f"{_THREADS}, or give --prompt instruction --completion output to read each turn by itself",
    ),
    (
        "meta_instruction chat{}",
        "a conversation as an object of turns (MOSS)",
        f"make messages of them, without <|Human|>, <eoh> and the like: {_jq(_OF_MOSS)}",
    ),
    (
        "mapping{} current_node",
        "an export of ChatGPT, whose messages are a tree",
        "follow it from current_node by parent, to a list of messages",
    ),
    (
        "custom_id body{}",
        "a request of a batch, without its answer",
        "join it with the answer of the same custom_id",
    ),
    (
        "custom_id response{}",
        "an answer of a batch, without its request",
        "join it with the request of the same custom_id",
    ),
    (
        "segments[]",
        "a list of segments that are marked to train (Axolotl)",
        'write messages, with "train": false where they do not, or tokenize it there for packtool import',
    ),
    (
        "prompt completions[] labels[]",
        "an answer in steps, each with a label (process supervision)",
        f"join the steps of good answers: {_jq(_OF_STEPS)}",
    ),
    (
        "questions[] answers{}",
        "a list of questions, and one of answers, as CoQA has them",
        f"make messages of them: {_jq(_OF_COQA)}",
    ),
    (
        "query answers tools",
        "a question with the calls that answer it, as xLAM has them",
        f"make messages of them: {_jq(_OF_XLAM)}",
    ),
)
"""Well-known layouts, by their fields, with [] behind lists and {} behind objects; what they are, and what to do first.
The first whose fields a record has is taken."""
_TALK = re.compile(
    r"(?i)(?:.*_)?(?:messages|conversations?|dialog(?:ue)?s?|chats?|turns|threads?|comments|utterances|history)|data"
)
"""Names of fields that hold conversations."""
_SENDERS = ("speaker", "author", "sender", "from", "user", "name", "type", "role")
_SAID = ("text", "content", "message", "utterance", "value", "body", "data")
"""Names in a message of who speaks, and of the text."""
_MARKED = re.compile(r"(?s).*?\b(?:user|human)\b\W{0,3}[:|].*?\b(?:assistant|ai|bot|gpt)\b\W{0,3}[:|]", re.IGNORECASE)
"""A conversation with the names of its speakers in the text."""
_COMPARED = re.compile(
    r"(?i)(?:.*_)?(?:answer|response|completion|output|solution|sol|summary|ref|generation|conversation|reply|choice|option)"
    r"_?([0-9a-d])"
)
"""Names of answers that differ in their number."""
_ASKED = (*(known.prompt for known in KNOWN), "ctx", "goal", "sentence", "title", "history", "story")
"""Names of prompts."""
_ANSWERS = re.compile(r"(?i)(?:.*_)?(?:answer|response|completion|output|solution|generation|target|summary)s?")
_CHOICES = ("choices", "endings", "options")
_RIGHT = ("answer", "label", "answerKey", "answer_idx", "correct", "gold")
"""Names of the number, the letter or the text of the right choice."""
_INNER = ("text", "full_text", "content", "value", "answer", "response", "output", "input_text", "problem", "name")
"""Names of the text in an object."""


def unread(record: Mapping[str, Any]) -> Unread | None:
    """Recognise a record of a layout that is not read whatever else it has; None for any other.

    >>> unread({"message_id": "a", "parent_id": None, "role": "prompter", "text": "Hi"}).what
    'one message of a tree, as OpenAssistant stores them'
    """
    for fields, what, remedy in _SHAPES:
        if all(_has(record, field) for field in fields.split()):
            return Unread(what, remedy)
    return _turns(record, [name for name in CONVERSATION[:2] if name in record])


def unread_answers(record: Mapping[str, Any]) -> Unread | None:
    """Recognise a record with a prompt that has several answers, or one that is no text; None for any other.

    >>> unread_answers({"question": "Why?", "human_answers": ["So."]}).remedy
    "take the first of each: jq -c '{prompt: .question, completion: .human_answers[0]}'"
    """
    for recognised in (_preference, _compared, _chosen, _in_parts, _prompts, _translation):
        found = recognised(record)
        if found is not None:
            return found
    if any(map(holds_turns, record.values())):
        return None
    return _turns(record, filter(_TALK.fullmatch, record))


def _has(record: Mapping[str, Any], field: str) -> bool:
    name = field.rstrip("[]{}")
    kinds: dict[str, type] = {"[]": list, "{}": dict}
    return name in record and isinstance(record[name], kinds.get(field[len(name) :], object))


def _turns(record: Mapping[str, Any], names: Iterable[str]) -> Unread | None:
    """Recognise a conversation in a form that is not read, in one of these fields."""
    return next(filter(None, (_talk(name, record[name]) for name in names)), None)


def _talk(name: str, value: Any) -> Unread | None:
    """Recognise a conversation in a form that is not read."""
    at, quoted = _at(name), repr(name)
    if isinstance(value, str) and _MARKED.match(value):
        remedy = f"cut it at the names of its speakers to messages first, or train on all of it: --text-field {name}"
        return Unread(f"a conversation in one string, {quoted}", remedy)
    if isinstance(value, list) and value and isinstance(value[0], str) and name != "conversations":
        remedy = f"if user and assistant speak in turn, give --conversations {name}"
        return Unread(f"a list of texts, {quoted}, which does not say who speaks", remedy)
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, Mapping) or holds_turns([first]):
        return None
    in_columns = first is value
    said, sender = _said(first), _sender(first)
    if not said or not sender:
        return None
    messages = f"{at}[] | {{role: {sender}, content: {said}}}"
    if in_columns:
        sender, said = (path.removesuffix("[0]") for path in (sender, said))
        messages = f"[{at}{sender}, {at}{said}] | transpose[] | {{role: .[0], content: .[1]}}"
    what = f"a conversation whose messages, {quoted}, have no role and content but {', '.join(list(first)[:12])}"
    return Unread(what, f"make messages of user and assistant: {_jq(f'{{messages: [{messages}]}}')}")


def _said(message: Mapping[str, Any]) -> str:
    """Return what finds the text of a message; "" if none is known."""
    return next((_at(name) + _inside(message[name]) for name in _SAID if name in message), "")


def _sender(message: Mapping[str, Any]) -> str:
    """Return what finds the sender of a message; "" if none is known."""
    if "is_human" in message:
        return '(if .is_human then "user" else "assistant" end)'
    return next((_at(name) + _inside(message[name], ("role", "name")) for name in _SENDERS if name in message), "")


def _preference(record: Mapping[str, Any]) -> Unread | None:
    """Recognise a preference pair."""
    if not all(map(record.get, PREFERENCE)):
        return None
    asked = _asked(record)
    whole, program = "a conversation", "{messages: .chosen}"
    if isinstance(record["chosen"], str) and not asked:
        whole, program = "a text", "{text: .chosen}"
    elif isinstance(record["chosen"], str):
        beside = "system, " if record.get("system") else ""
        program = f"{{{beside}{_named('prompt', asked)}, completion: .chosen}}"
    return Unread("a preference pair", f"make {whole} of each: {_jq(program)}", pair=True)


def _compared(record: Mapping[str, Any]) -> Unread | None:
    """Recognise several answers, in fields of their own."""
    names = list(filter(_COMPARED.fullmatch, record))
    if len(names) < 2:
        return None
    what = f"a prompt with several answers, to be compared: {', '.join(names[:4])}"
    if holds_turns(record[names[0]]):
        return Unread(what, f"read one of each: --conversations {names[0]}")
    asked = _asked(record)
    if not asked:
        return None
    return Unread(
        what, f"choose one of each, here the first: {_jq(f'{{prompt: {asked}, completion: {_at(names[0])}}}')}"
    )


def _chosen(record: Mapping[str, Any]) -> Unread | None:
    """Recognise a question of multiple choice."""
    asked = _asked(record, without=_CHOICES)
    name = next((name for name in _CHOICES if isinstance(record.get(name), list | dict)), "")
    if not asked or not name:
        return None
    for right in _RIGHT:
        picked = _picked(_at(name), record[name], _at(right), record.get(right))
        if picked:
            remedy = f"put the right one behind the question: {_jq(f'{{prompt: {asked}, completion: {picked}}}')}"
            return Unread(f"a question of multiple choice: {right!r} says which of {name!r} is right", remedy)
    return None


def _picked(place: str, choices: Any, number: str, right: Any) -> str:
    """Write what finds the right choice; "" if it is not known how it is named.

    Args:
        place, choices: where the choices are, and what.
        number, right: where it is said which is right, and what.
    """
    labels = choices.get("label") if isinstance(choices, dict) else None
    if isinstance(labels, list) and (right == UNSEEN or right in labels):
        return f"{place}.text[{number} as $right | {place}.label | index($right)]"
    if isinstance(choices, dict):
        return f"{place}[{number}]" if isinstance(right, str) and right in choices else ""
    if type(right) is int:
        return f"{place}[{number}]"
    if isinstance(right, str) and re.fullmatch(f"[A-J]|[0-9]+|{UNSEEN}", right):
        return f"{place}[{number} | tonumber? // (explode[0] - 65)]"
    return ""


def _in_parts(record: Mapping[str, Any]) -> Unread | None:
    """Recognise an answer that is no text."""
    asked = _asked(record)
    for name in filter(_ANSWERS.fullmatch, record):
        value, at = record[name], _at(name)
        if not asked or value is None or holds_text(value):
            continue
        if isinstance(value, bool | int | float):
            what, found, remedy = "is no text", f"({at} | tostring)", "make one of it"
        else:
            inside = _inside(value)
            if not inside:
                continue
            what, found, remedy = "is a list or an object", at + inside, "take the first of each"
        program = f"{{{_named('prompt', asked)}, completion: {found}}}"
        return Unread(f"a prompt whose answer, {name!r}, {what}", f"{remedy}: {_jq(program)}")
    return None


def _prompts(record: Mapping[str, Any]) -> Unread | None:
    """Recognise a prompt of messages without an answer."""
    talk = record.get("prompt")
    if not isinstance(talk, list) or not holds_turns(talk):
        return None
    if any(isinstance(turn, Mapping) and turn.get("role") == "assistant" for turn in talk):
        return None
    what = "a prompt without an answer, as for reinforcement learning"
    return Unread(what, "add the answers as a field completion")


def _translation(record: Mapping[str, Any]) -> Unread | None:
    """Recognise a text in several languages."""
    texts = record.get("translation")
    if not isinstance(texts, Mapping) or len(texts) < 2:
        return None
    source, target, *_ = map(_at, texts)
    program = f"{{prompt: .translation{source}, completion: .translation{target}}}"
    return Unread("a text in several languages, in 'translation'", f"make a prompt of one: {_jq(program)}")


def _asked(record: Mapping[str, Any], without: Collection[str] = ()) -> str:
    """Return what finds the prompt of a record, with the texts that belong to it; "" if there is none."""
    spelled = {name.lower(): name for name in reversed(list(record))}
    prompt = next((spelled[name] for name in _ASKED if name in spelled and _is_there(record[spelled[name]])), None)
    if prompt is None:
        return ""
    more = [spelled[name] for name in MORE if name in spelled and name not in without]
    more = [name for name in more if name != prompt and isinstance(record[name], str)]
    asked = _at(prompt)
    if not holds_turns(record[prompt]):
        asked += _inside(record[prompt])
    return f'([{", ".join(map(_at, more))}, {asked}] | join("\\n"))' if more else asked


def _is_there(value: Any) -> bool:
    return holds_text(value) or _inside(value) != ""


def _inside(value: Any, names: Sequence[str] = _INNER) -> str:
    """Return the path from a value to the first text in it; "" for a text, or if there is none."""
    if isinstance(value, list) and value and not isinstance(value[0], int | float):
        return f"[0]{_inside(value[0], names)}"
    if isinstance(value, Mapping):
        return next((_at(name) + _inside(value[name], names) for name in names if name in value), "")
    return ""


def _at(name: str) -> str:
    """Write what finds a field in jq.

    >>> _at("answer"), _at("the answer")
    ('.answer', '."the answer"')
    """
    plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
    return "." + (name if plain else json.dumps(name))


def _named(name: str, found: str) -> str:
    """Write a field of an object in jq."""
    return name if found == f".{name}" else f"{name}: {found}"
