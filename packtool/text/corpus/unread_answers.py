"""Recognise prompts with several answers, or with an answer that is no text, and say how to choose one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from packtool.formats.fields import PREFERENCE
from packtool.text.conversations.turns import holds_text, holds_turns
from packtool.text.corpus import jq
from packtool.text.corpus.layouts import KNOWN, MORE, UnreadLayout
from packtool.text.corpus.table_examples import UNSEEN
from packtool.text.corpus.unread_turns import NAMES_OF_TURNS, unread_turns

_PROMPTS = (*(known.prompt for known in KNOWN), "ctx", "goal", "sentence", "title", "history", "story")
"""Names of prompts, in lower case."""
_ANSWERS = re.compile(r"(?i)(?:.*_)?(?:answer|response|completion|output|solution|generation|target|summary)s?")
"""Names of answers."""
_COMPARED = re.compile(
    r"(?i)(?:.*_)?(?:answer|response|completion|output|solution|sol|summary|ref|generation|conversation|reply|choice|option)"
    r"_?([0-9a-d])"
)
"""Names of answers that differ in their number."""
_CHOICES = ("choices", "endings", "options")
"""Names of the choices of a question."""
_RIGHT = ("answer", "label", "answerKey", "answer_idx", "correct", "gold")
"""Names of the number, the letter or the text of the right choice."""
_SHOWN = 4
"""Most answers that a message names."""


def unread_answers(record: Mapping[str, Any]) -> UnreadLayout | None:
    """Recognise a record with a prompt that has several answers, or one that is no text; None for any other.

    >>> unread_answers({"question": "Why?", "human_answers": ["So."]}).remedy
    "take the first of each: jq -c '{prompt: .question, completion: .human_answers[0]}'"
    """
    for recognised in (_preference, _compared, _multiple_choice, _answer_in_parts, _prompts, _translation):
        found = recognised(record)
        if found is not None:
            return found
    if any(map(holds_turns, record.values())):
        return None
    return unread_turns(record, filter(NAMES_OF_TURNS.fullmatch, record))


def _preference(record: Mapping[str, Any]) -> UnreadLayout | None:
    """Recognise a preference pair."""
    if not all(map(record.get, PREFERENCE)):
        return None
    prompt = _prompt(record)
    whole, program = "a conversation", "{messages: .chosen}"
    if isinstance(record["chosen"], str) and not prompt:
        whole, program = "a text", "{text: .chosen}"
    elif isinstance(record["chosen"], str):
        beside = "system, " if record.get("system") else ""
        program = f"{{{beside}{jq.entry('prompt', prompt)}, completion: .chosen}}"
    return UnreadLayout("a preference pair", f"make {whole} of each: {jq.command(program)}", pair=True)


def _compared(record: Mapping[str, Any]) -> UnreadLayout | None:
    """Recognise several answers, in fields of their own."""
    names = list(filter(_COMPARED.fullmatch, record))
    if len(names) < 2:
        return None
    what = f"a prompt with several answers, to be compared: {', '.join(names[:_SHOWN])}"
    if holds_turns(record[names[0]]):
        return UnreadLayout(what, f"read one of each: --conversations {names[0]}")
    prompt = _prompt(record)
    if not prompt:
        return None
    program = f"{{prompt: {prompt}, completion: {jq.path_to(names[0])}}}"
    return UnreadLayout(what, f"choose one of each, here the first: {jq.command(program)}")


def _multiple_choice(record: Mapping[str, Any]) -> UnreadLayout | None:
    """Recognise a question of multiple choice."""
    # The choices belong to the prompt elsewhere; here one of them is the completion.
    prompt = _prompt(record, without=_CHOICES)
    lists = [name for name in _CHOICES if isinstance(record.get(name), list | dict)]
    if not prompt or not lists:
        return None
    name = lists[0]
    for right in _RIGHT:
        picked = _picked(jq.path_to(name), record[name], jq.path_to(right), record.get(right))
        if picked:
            program = f"{{prompt: {prompt}, completion: {picked}}}"
            what = f"a question of multiple choice: {right!r} says which of {name!r} is right"
            return UnreadLayout(what, f"put the right one behind the question: {jq.command(program)}")
    return None


def _picked(at_choices: str, choices: Any, at_right: str, right: Any) -> str:
    """Write the path to the right choice; "" if it is not known how it is named.

    Args:
        at_choices: the path to the choices.
        choices: an object of texts by their letters, an object of a list of texts and a list of labels, or a list.
        at_right: the path to what names the right choice.
        right: its label or letter, its number from 0, or its letter from A.
    """
    labels = choices.get("label") if isinstance(choices, dict) else None
    if isinstance(labels, list) and (right == UNSEEN or right in labels):
        return f"{at_choices}.text[{at_right} as $right | {at_choices}.label | index($right)]"
    if isinstance(choices, dict):
        is_letter = isinstance(right, str) and right in choices
        return f"{at_choices}[{at_right}]" if is_letter else ""
    if type(right) is int:
        return f"{at_choices}[{at_right}]"
    if isinstance(right, str) and re.fullmatch(f"[A-J]|[0-9]+|{UNSEEN}", right):
        # A number, or else a letter: `explode` gives its code point, and 65 is that of A.
        return f"{at_choices}[{at_right} | tonumber? // (explode[0] - 65)]"
    return ""


def _answer_in_parts(record: Mapping[str, Any]) -> UnreadLayout | None:
    """Recognise an answer that is no text."""
    prompt = _prompt(record)
    if not prompt:
        return None
    for name in filter(_ANSWERS.fullmatch, record):
        value, at = record[name], jq.path_to(name)
        if value is None or holds_text(value):
            continue
        if isinstance(value, bool | int | float):
            what, answer, remedy = "is no text", f"({at} | tostring)", "make one of it"
        elif jq.path_to_text(value):
            what, answer, remedy = "is a list or an object", at + jq.path_to_text(value), "take the first of each"
        else:
            continue
        program = f"{{{jq.entry('prompt', prompt)}, completion: {answer}}}"
        return UnreadLayout(f"a prompt whose answer, {name!r}, {what}", f"{remedy}: {jq.command(program)}")
    return None


def _prompts(record: Mapping[str, Any]) -> UnreadLayout | None:
    """Recognise a prompt of messages without an answer."""
    messages = record.get("prompt")
    if not isinstance(messages, list) or not holds_turns(messages):
        return None
    if any(isinstance(message, Mapping) and message.get("role") == "assistant" for message in messages):
        return None
    what = "a prompt without an answer, as for reinforcement learning"
    return UnreadLayout(what, "add the answers as a field completion")


def _translation(record: Mapping[str, Any]) -> UnreadLayout | None:
    """Recognise a text in several languages."""
    texts = record.get("translation")
    if not isinstance(texts, Mapping) or len(texts) < 2:
        return None
    source, target = list(map(jq.path_to, texts))[:2]
    program = f"{{prompt: .translation{source}, completion: .translation{target}}}"
    return UnreadLayout("a text in several languages, in 'translation'", f"make a prompt of one: {jq.command(program)}")


def _prompt(record: Mapping[str, Any], without: Collection[str] = ()) -> str:
    """Write the path to the prompt of a record, with the texts that belong to it; "" if there is no prompt.

    Args:
        without: names of fields that do not belong to it.
    """
    spelled = {name.lower(): name for name in reversed(list(record))}
    found = [spelled[name] for name in _PROMPTS if name in spelled and _may_be_prompt(record[spelled[name]])]
    if not found:
        return ""
    name = found[0]
    path = jq.path_to(name)
    if not holds_turns(record[name]):
        path += jq.path_to_text(record[name])
    more = []
    for other in MORE:
        field = spelled.get(other, name)
        if other not in without and field != name and isinstance(record[field], str):
            more.append(jq.path_to(field))
    if not more:
        return path
    return f'([{", ".join([*more, path])}] | join("\\n"))'


def _may_be_prompt(value: Any) -> bool:
    """Return whether a value is a text, or has one inside."""
    return holds_text(value) or jq.path_to_text(value) != ""
