"""Recognise records of well-known layouts that are not read, by their fields, and say what to do first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packtool.formats.fields import CONVERSATION
from packtool.text.corpus import jq
from packtool.text.corpus.layouts import UnreadLayout
from packtool.text.corpus.unread_turns import unread_turns

_THREADS = "join each answer with what it answers, by parent_id, to lists of messages first"
_OF_MOSS = """{system: .meta_instruction,
 messages: [.chat[] | {role: "user", content: .Human}, {role: "assistant", content: .MOSS}]}"""
_OF_STEPS = r"""{prompt, completion: (.completions | join("\n"))}"""
_OF_COQA = """{system: .story, messages: [[.questions, .answers.input_text] | transpose[]
 | {role: "user", content: .[0]}, {role: "assistant", content: .[1]}]}"""
_OF_XLAM = """{tools, messages: [{role: "user", content: .query},
 {role: "assistant", tool_calls: (.answers | fromjson | map({type: "function", function: .}))}]}"""
_LAYOUTS = {
    "message_id parent_id role": UnreadLayout("one message of a tree, as OpenAssistant stores them", _THREADS),
    "parent_id instruction output": UnreadLayout(
        "one turn of a conversation, which goes on from its parent_id (H2O)",
        f"{_THREADS}, or give --prompt instruction --completion output to read each turn by itself",
    ),
    "meta_instruction chat{}": UnreadLayout(
        "a conversation as an object of turns (MOSS)",
        f"make messages of them, without <|Human|>, <eoh> and the like: {jq.command(_OF_MOSS)}",
    ),
    "mapping{} current_node": UnreadLayout(
        "an export of ChatGPT, whose messages are a tree",
        "follow it from current_node by parent, to a list of messages",
    ),
    "custom_id body{}": UnreadLayout(
        "a request of a batch, without its answer", "join it with the answer of the same custom_id"
    ),
    "custom_id response{}": UnreadLayout(
        "an answer of a batch, without its request", "join it with the request of the same custom_id"
    ),
    "segments[]": UnreadLayout(
        "a list of segments that are marked to train (Axolotl)",
        'write messages, with "train": false where they do not, or tokenize it there for packtool import',
    ),
    "prompt completions[] labels[]": UnreadLayout(
        "an answer in steps, each with a label (process supervision)",
        f"join the steps of good answers: {jq.command(_OF_STEPS)}",
    ),
    "questions[] answers{}": UnreadLayout(
        "a list of questions, and one of answers, as CoQA has them",
        f"make messages of them: {jq.command(_OF_COQA)}",
    ),
    "query answers tools": UnreadLayout(
        "a question with the calls that answer it, as xLAM has them",
        f"make messages of them: {jq.command(_OF_XLAM)}",
    ),
}
"""Well-known layouts by their fields, with [] behind a list and {} behind an object. The first that fits is taken."""
_KINDS: dict[str, type] = {"[]": list, "{}": dict}


def unread(record: Mapping[str, Any]) -> UnreadLayout | None:
    """Recognise a record of a layout that is not read whatever else it has; None for any other.

    >>> unread({"message_id": "a", "parent_id": None, "role": "prompter", "text": "Hi"}).what
    'one message of a tree, as OpenAssistant stores them'
    """
    for fields, layout in _LAYOUTS.items():
        if all(_has(record, field) for field in fields.split()):
            return layout
    return unread_turns(record, CONVERSATION[:2])


def _has(record: Mapping[str, Any], field: str) -> bool:
    """Return whether a record has a field, of the kind that stands behind its name."""
    kind = _KINDS.get(field[-2:], object)
    name = field.rstrip("[]{}")
    return name in record and isinstance(record[name], kind)
