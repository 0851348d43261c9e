"""Describe files that packtool did not write: whether they hold texts or conversations, and what reads them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

from packtool.commands.path_info import Info, free_name
from packtool.errors import PacktoolError
from packtool.support.spelling import as_typed
from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.message import known_role
from packtool.text.corpus.find import find_files
from packtool.text.corpus.first import FirstRecord, first_of, held_by
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.read_fields import read_fields_of
from packtool.text.corpus.records import CorpusFile, Fields, Span
from packtool.text.faults import Fault

MOST_FILES = 10_000
"""Most files to count in a directory that packtool did not write."""
_OTHERS = "records that can't be used"
_IN_THE_WAY = "to tokenize it"  # the fact that says what to mend first
_Advice = tuple[list[str], dict[str, str]]
_TRIED = 3  # files to try before a command is advised
MOST_BYTES = 1 << 30
"""Most bytes to read of a file of conversations, to count them."""


def file_info(path: Path) -> Info:
    """Describe a file that packtool did not write."""
    facts: dict[str, Any] = {"bytes": path.stat().st_size}
    talks = _conversations(path)
    if talks is not None:
        command = f"packtool tokenize {shlex.quote(str(path))} -o {free_name('tokens')} --tokenizer MODEL"
        following = []
        if set(talks) != {_OTHERS}:  # some can be used; of a large file nothing is known
            following.append(_rendering(command, skip=_OTHERS in talks))
        return Info(path, "conversations", "unknown", facts | talks, next=following)
    advice, problem = _advice(path)
    return Info(path, "not written by packtool", "unknown", facts | problem, next=advice)


def directory_info(path: Path) -> Info:
    """Describe a directory that packtool did not write."""
    files = list(islice(filter(Path.is_file, path.rglob("*")), MOST_FILES))
    if not files:
        following = [f"packtool tokenize corpus.jsonl -o {shlex.quote(str(path))}"]
        return Info(path, "empty directory", "unknown", next=following)
    kinds = Counter("".join(child.suffixes[-2:]) or "no suffix" for child in files)
    facts = {
        "files": len(files),
        "bytes": sum(child.stat().st_size for child in files),
        "kinds": ", ".join(f"{count} {suffix}" for suffix, count in kinds.most_common(5)),
    }
    advice, problem = _advice(path)
    return Info(path, "not written by packtool", "unknown", facts | problem, next=advice)


def _advice(path: Path) -> _Advice:
    """Return a command that reads a file or directory, tried on its first documents; else what is in the way.

    Returns:
        The commands to advise, and facts: what is in the way, if anything is.
    """
    with catch_warnings():
        simplefilter("ignore")
        try:
            files = find_files(path, None)
            held = held_by(files, "text")
            command = f"packtool tokenize {shlex.quote(str(path))} -o {free_name('tokens')}"
            if len(held.layouts) == 1 and held.layouts[0].prompt:
                command += f" {held.layouts[0].shown()}"
            if held.layouts:
                following, facts = _advice_for_conversations(command, files[:_TRIED], held)
            else:
                following, facts = _advice_for_texts(command, files[:_TRIED], held)
            return following, _first_record(files, held) | facts
        except PacktoolError as error:
            return [], {_IN_THE_WAY: f"{error.what}: {as_typed(error.remedy)}"}


def _first_record(files: Sequence[CorpusFile], held: FirstRecord) -> dict[str, str]:
    """Return the fact that names the fields read of the first record; none without a record or such a field."""
    record, _ = first_of(files)
    if record is None:
        return {}
    found = read_fields_of(record, Fields(layouts=held.layouts))
    if not found.read:
        return {}
    return {"read": found.shown().removeprefix("read: ")}


def _advice_for_conversations(command: str, files: Sequence[CorpusFile], held: FirstRecord) -> _Advice:
    """Advise on files of conversations, as `_advice` does."""
    found, problems = _count(files, held, batches=1)
    facts = {}
    if problems:
        facts[_IN_THE_WAY] = f"{problems[0]}: fix the conversations"
    if not found:
        return [], facts
    return [_rendering(f"{command} --tokenizer MODEL", skip=bool(problems))], facts


def _advice_for_texts(command: str, files: Sequence[CorpusFile], held: FirstRecord) -> _Advice:
    """Advise on files of texts, as `_advice` does."""
    for file in files:
        first = next(iter(SpanReader(file, Span(0, 0, 1), Fields())), None)
        if first is None or not first.rejects:
            continue
        fault = first.rejects[0].fault
        remedy = fault.remedy
        if fault.code == "missing-text":
            remedy = held.remedy
        skipping = []
        if first.documents:
            skipping.append(f"{command} --on-error skip   leaves it out")
        return skipping, {_IN_THE_WAY: f"{fault.what}: {as_typed(remedy)}"}
    return [command], {}


def _conversations(path: Path) -> dict[str, Any] | None:
    """Count the conversations of a file, and name their fields; None if its first record holds no conversation.

    A large file is not read, so nothing is counted there.
    """
    try:
        files = find_files(path, None)
        held = held_by(files, "text")
        if not held.layouts:
            return None
        if path.stat().st_size > MOST_BYTES:
            return {}
        fields, problems = _count(files, held)
        first = _first_record(files, held)
    except PacktoolError:
        return None
    counted: dict[str, Any] = dict(fields.most_common())
    if fields:
        counted |= first
    if problems:
        counted[_OTHERS] = f"{len(problems):,}, such as: {problems[0]}"
    return counted


def _count(
    files: Sequence[CorpusFile], held: FirstRecord, batches: int | None = None
) -> tuple[Counter[str], list[str]]:
    """Count conversations by the field that holds them, and list what is wrong with others.

    Args:
        batches: to look at in each file; None for all.
    """
    fields: Counter[str] = Counter()
    problems: list[str] = []
    for file in files:
        reader = SpanReader(file, Span(0), Fields(layouts=held.layouts))
        for batch in islice(reader, batches):
            problems += [reject.fault.what for reject in batch.rejects]
            for talk in batch.documents:
                problem = _problem(talk)
                if problem:
                    problems.append(problem)
                    continue
                fields[f"with {_field_of(talk)}"] += 1
    return fields, problems


def _problem(talk: Conversation) -> str:
    """Say why no template can render a conversation, or why nothing in it would train; "" if neither is the case."""
    try:
        roles = [known_role(message["role"], number) for number, message in enumerate(talk.messages, 1)]
    except Fault as fault:
        return fault.what
    if "assistant" not in roles:
        return "no message of the assistant, to train on"
    return ""


def _rendering(command: str, *, skip: bool) -> str:
    """Write a command that renders conversations, and what it does.

    Args:
        skip: some can't be used.
    """
    if skip:
        return f"{command} --on-error skip   renders the others by the chat template of MODEL"
    return f"{command}   renders them by the chat template of MODEL"


def _field_of(talk: Conversation) -> str:
    """Name the fields of a record that hold its conversation."""
    if talk.prompt is not None:
        return "prompt and completion"
    return next(iter(talk.record))
