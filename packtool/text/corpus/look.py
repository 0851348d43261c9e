"""Tell what an input holds, and which fields of its records are read: by the options, else by the first record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from packtool.errors import UsageError
from packtool.options.declare import Input
from packtool.options.tokenize import TEXT_FIELD, TokenizeArguments
from packtool.text.conversations.contract import reading_of
from packtool.text.conversations.layouts import RecordLayout, with_beside
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.read_fields import ReadFields, read_fields_of, warn_of_left_out
from packtool.text.corpus.records import CorpusFile, Fields, shown
from packtool.text.corpus.token_columns import KNOWN
from packtool.text.faults import Fault
from packtool.text.paths import top_of

_NAME_FIELDS = "name the conversation with --conversations, or its parts with --prompt and --completion"


class Holding(NamedTuple):
    """What an input holds."""

    kind: Input  # texts, token ids or conversations
    fields: Fields  # the fields of a record that are read
    read: ReadFields = ReadFields()  # what of the first record is read
    why: str = ""  # in words, why it is taken for texts, though no option says so
    remedy: str = ""  # what makes conversations of it then


def look(
    options: TokenizeArguments, first: Mapping[str, Any] | None, where: str, files: Sequence[CorpusFile]
) -> Holding:
    """Tell what an input holds.

    Args:
        first: its first record, None if there is none, and `where` it is.
        files: of the input.

    Raises:
        UsageError: the first record holds nothing that is known, or more than one thing; an option has no effect.
    """
    of_options = _named_layout(options)
    by_name = is_by_name(options)
    layout, why, remedy = None, "", ""
    if by_name:
        layout, why, remedy = held_by(first, where, files)
    elif not of_options.by_name:
        layout = of_options
    kind: Input = "texts"
    if layout is not None:
        kind = "conversations"
        _require_pair(options, layout)
        layout = with_beside(layout, of_options)
    elif options.ids_field is not None:
        kind = "token ids"
    columns = list(options.columns)
    if options.id_field is not None:
        columns.insert(0, options.id_field)  # first among the fields to keep
    fields = Fields(
        options.ids_field or options.text_field or TEXT_FIELD,
        ids=kind == "token ids",
        columns=tuple(dict.fromkeys(columns)),
        required=options.id_field or "",
        layout=None if layout is None else of_options,
        by_name=by_name,
        beside=_beside(options) if kind == "token ids" else frozenset(),
    )
    if first is None:
        return Holding(kind, fields, why=why, remedy=remedy)
    try:
        read, texts = read_fields_of(first, fields)
    except Fault as fault:
        raise _refused(fault, where) from None
    there = set(map(top_of, columns))
    if read.read:
        there |= {name for name, value in first.items() if value is not None}
    if by_name:  # what is named is meant
        warn_of_left_out(first, read, texts, where)
    return Holding(kind, structs.replace(fields, first=layout, known=frozenset(there)), read, why, remedy)


def is_by_name(options: TokenizeArguments) -> bool:
    """Return whether no option names a document, so that the names of fields tell what records hold."""
    named = (options.completion, options.conversations, options.ids_field, options.text_field)
    return all(name is None for name in named)


def _named_layout(options: TokenizeArguments) -> RecordLayout:
    """Return the layout that options name: by names, where they name no conversation."""
    if len(options.message_fields) not in (0, 2, 3):
        remedy = "name who speaks, and what, and perhaps the mark that says whether it trains"
        raise UsageError("bad-option", "not two or three fields", remedy=remedy, where="--message-fields")
    return RecordLayout(
        messages=options.conversations or "",
        prompt=tuple(options.prompt),
        completion=options.completion or "",
        system=options.system or "",
        history=options.history or "",
        tools=options.tools or "",
        reasoning=options.reasoning_field or "",
        turn=tuple(options.message_fields),
    )


def _require_pair(options: TokenizeArguments, layout: RecordLayout) -> None:
    """Refuse options of a prompt and its answer where messages are read."""
    for option, name in (("--history", options.history), ("--reasoning-field", options.reasoning_field)):
        if layout.messages and name is not None:
            what = f"has no effect on messages, as {layout.messages!r} has them"
            raise UsageError("option-not-taken", what, remedy="leave it out", where=option)


def held_by(
    first: Mapping[str, Any] | None, where: str, files: Sequence[CorpusFile]
) -> tuple[RecordLayout | None, str, str]:
    """Tell what an input holds by the names of the fields of its first record; see `look`.

    Returns:
        The layout of its conversation, None for texts; why it is taken for texts, and what makes conversations of it.
    """
    if first is not None:
        try:
            layout = reading_of(first)
        except Fault as fault:
            raise _refused(fault, where) from None
        if layout.text:
            return None, f"the first record has a field {TEXT_FIELD!r}, and no conversation", _NAME_FIELDS
        return layout, "", ""
    if files and all(FORMATS[file.format].plain for file in files):
        return None, "the input is plain text", "leave it out"
    for file in files:
        if file.fault is not None:
            return None, f"no record is found in {shown(file.location)}: {file.fault.what}", file.fault.remedy
    return None, "no record is found", "check the input"


def _refused(fault: Fault, where: str) -> UsageError:
    return UsageError(fault.code, f"the first record {fault.what}", remedy=fault.remedy, where=where)


def _beside(options: TokenizeArguments) -> frozenset[str]:
    """Return the fields beside the ids that may say more of them; kept fields are scalars, and not among them."""
    if options.ids_only:
        return frozenset()
    above, dot, _ = str(options.ids_field).rpartition(".")
    names = {f"{above}{dot}{name}" for name in KNOWN}
    return frozenset(names - {options.ids_field, options.id_field, *options.columns})
