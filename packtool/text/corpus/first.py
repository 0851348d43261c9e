"""Look at the first record of a corpus, to tell texts from conversations, and to say what of it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Any, NamedTuple

from packtool.errors import UsageError
from packtool.formats.fields import BESIDE, KINDS
from packtool.text.conversations.layouts import USUAL, RecordLayout, known_layout, lacking, unread
from packtool.text.conversations.turns import holds_text, holds_turns
from packtool.text.conversations.unread import missed
from packtool.text.corpus.decompress import open_stream
from packtool.text.corpus.documents import fields_there
from packtool.text.corpus.file_bytes import open_raw
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.nearest import described, nearest, options_for
from packtool.text.corpus.python_tables import PythonTable, is_table
from packtool.text.corpus.python_values import plain
from packtool.text.corpus.records import CorpusFile, Fields, shown
from packtool.text.corpus.tables import row_of
from packtool.text.paths import value_at, values_at
from packtool.warnings import warn

_FILES = 10
"""Most files to look at, should the first of them hold no record."""
_NAME_FIELDS = "name the field with --conversations, or the fields with --prompt and --completion"


class FirstRecord(NamedTuple):
    """What records hold."""

    layouts: tuple[RecordLayout, ...] = ()  # layouts of conversations, one of which each record has; none for texts
    why: str = "no record is found"  # in words, why records are taken for texts
    remedy: str = "check the input"  # what makes conversations of them
    warned: bool = False  # whether a warning was given of a part of a conversation that is not read
    unknown: str = ""  # where the first record is, if it has neither a text nor a conversation


def held_by_first(record: Mapping[str, Any] | None, text: str, where: str, files: Sequence[CorpusFile]) -> FirstRecord:
    """Tell by their first record, None if there is none, what files hold: a text, if it has the field `text`.

    Raises:
        UsageError: it would be misread, or it is not clear which of its fields are meant.
    """
    if record is not None:
        return held_by_record(record, text, where)
    if files and all(FORMATS[file.format].plain for file in files):
        return FirstRecord(why="the input is plain text", remedy="leave it out")
    for file in files:
        if file.fault is not None:
            why = f"no record is found in {shown(file.location)}: {file.fault.what}"
            return FirstRecord(why=why, remedy=file.fault.remedy)
    return FirstRecord()


def first_of(files: Sequence[CorpusFile]) -> tuple[Mapping[str, Any] | None, str]:
    """Return the first record of these files, None if no record can be read, and the file that it is from."""
    with_records = [file for file in files if not FORMATS[file.format].plain and file.fault is None]
    for file in with_records[:_FILES]:
        record = first_record(file)
        if record is not None:
            return record, shown(file.location)
    return None, ""


def held_by_record(record: Mapping[str, Any], text: str, where: str) -> FirstRecord:
    """Tell what a record holds.

    Raises:
        UsageError: see `held_by_first`.
    """
    if any(value is not None for value in values_at(record, Fields(text).document).values()):
        warned = _warn_of_both(record, text, where)
        return FirstRecord(why=f"the first record has a field {text!r}", remedy=_NAME_FIELDS, warned=warned)
    layouts = _layouts(record, where)
    if layouts:
        return FirstRecord(layouts)
    meant = nearest(record)
    if meant is not None:
        what = f"the first record has no layout that is known: it has {described(record)}"
        remedy = f"say where the conversation lies, perhaps {meant.shown()}; or name a text with --text-field"
        raise UsageError("unread-layout", what, remedy=remedy, where=where)
    why = f"the first record has no field {text!r}, and no conversation that is known: it has {described(record)}"
    return FirstRecord(why=why, remedy=_NAME_FIELDS, unknown=where)


def _layouts(record: Mapping[str, Any], where: str) -> tuple[RecordLayout, ...]:
    """Return the layouts of a conversation that a record may have; none if it has none that is known.

    Raises:
        UsageError: see `held_by_first`.
    """
    odd = unread(record)
    if odd is not None:
        remedy = odd.remedy.format(options=f": {options_for(record)}".rstrip(": "))
        what = f"the first record is {odd.what}"
        if odd.pair:
            raise UsageError("preference-pairs", what, remedy=remedy, where=where)
        raise UsageError("unread-layout", what, remedy=remedy, where=where)
    # From the surest to the least sure: the usual names with values, then a known pair of names, then a field
    # that holds turns whatever its name, and last the usual names without values.
    held = [name for name, value in record.items() if value is not None]
    if not lacking(USUAL, held):
        if _is_usual(record):
            return USUAL
        return ()
    texts = [name for name, value in record.items() if value is None or holds_text(value)]
    try:
        found = known_layout(list(record))
    except UsageError as error:
        meant, remedy = nearest(record), error.remedy
        if meant is not None:
            remedy = f"say it, for example {meant.shown()}; one of the two is enough where the other is clear then"
        raise UsageError(error.code, error.what, remedy=remedy, where=where) from None
    if found is not None and not {found.prompt[0], found.completion} - set(texts):
        return (found,)
    talks = [name for name in held if holds_turns(record[name])]
    if found is None and len(talks) == 1 and _is_all(record, talks[0]):
        return (RecordLayout(talks[0]),)
    if not lacking(USUAL, list(record)):
        return USUAL  # other records may hold what is null in this one
    return ()


def _is_usual(record: Mapping[str, Any]) -> bool:
    """Return whether what has the name of a conversation may be one; reading it tells what is wrong with it, else."""
    named = [name for name in ("messages", "conversations") if record.get(name) is not None]
    if not named:
        return True
    value = record[named[0]]
    if not isinstance(value, list) or not value or holds_turns(value):
        return True
    if isinstance(value[0], str):
        return named[0] == "conversations"  # elsewhere it is not known who speaks
    return nearest({named[0]: value}) is None


def _is_all(record: Mapping[str, Any], talk: str) -> bool:
    """Return whether a field holds all of a conversation: no text of more than a word lies beside it, which may belong
    to it, and it has the name of messages, or an answer."""
    for name, value in record.items():
        if name in (talk, *BESIDE):
            continue  # it is read
        if missed(name, value, [record[talk]]) or (isinstance(value, str) and len(value.split()) > 1):
            return False
    return talk in KINDS["messages"] or nearest({talk: record[talk]}) == RecordLayout(talk)


def completed(prompt: Sequence[str], completion: str | None, record: Mapping[str, Any]) -> RecordLayout:
    """Return a layout of which prompt or answer is named, the other by its well-known name in the first record.

    Raises:
        UsageError: it is not clear which is meant.
    """
    names = list(record)
    found = known_layout(names, prompt=tuple(prompt), completion=completion)
    if found is None:
        what = f"by its well-known names, the other part is not found: in the first record, {fields_there(names)}"
        remedy = "name both with --prompt and --completion"
        raise UsageError("unclear-fields", what, remedy=remedy, where="--prompt" if prompt else "--completion")
    return found


def first_record(file: CorpusFile) -> Mapping[str, Any] | None:
    """Return the first record of a file, with null for what a row of a table lacks; None if none can be read.

    A look costs no command: whatever goes wrong in it means that nothing is known.
    """
    first = FORMATS[file.format].first
    if first is None:
        return None
    try:
        with closing(open_raw(file.location)) as raw, closing(open_stream(raw, file.compression)) as stream:
            return first(stream)
    except Exception:  # of any library that is given a damaged file; reading it will tell
        return None


def peek(records: Iterable[Any]) -> tuple[Mapping[str, Any] | None, Iterable[Any]]:
    """Return the first record that a program gives, None if it is none; and all records, the first included.

    >>> peek(iter([{"messages": []}]))[0]
    {'messages': []}
    """
    if is_table(records):
        table: Any = PythonTable(records)
        return table.first(), table
    first: Any = None
    names = getattr(records, "column_names", None)
    if isinstance(names, list):  # a dataset of Hugging Face
        first = dict.fromkeys(names)
        if hasattr(records, "with_format"):
            first = next(map(row_of, records.with_format("arrow").iter(batch_size=1)), None)
    elif isinstance(records, Sequence):
        first = next(iter(records[:1]), None)
    elif not isinstance(records, Mapping):  # which is refused where it is read
        rest = iter(records)
        some = list(islice(rest, 1))
        first, records = next(iter(some), None), chain(some, _others(rest))
    if isinstance(first, Mapping):
        return {str(name): plain(value) for name, value in first.items()}, records
    return None, records


def _others(rest: Iterator[Any]) -> Iterator[Any]:
    """Yield what is left of an iterator; where `iter` is called on it again, a dataset may begin anew."""
    while True:
        try:
            record = next(rest)
        except StopIteration:
            return
        yield record


def _warn_of_both(record: Mapping[str, Any], text: str, where: str) -> bool:
    """Warn where a record with a text holds a conversation, too, or a part of one, which is not read.

    Returns:
        Whether it does.
    """
    odd = unread(record)
    if odd is not None:
        what = f"the first record is {odd.what}: each {text!r} is read by itself"
        warn("conversations-left-out", what, remedy=odd.remedy.format(options=""), where=where)
        return True
    try:
        layouts = _layouts(record, where) or _answers_to(record, text)
    except UsageError:
        return False
    if layouts == USUAL:
        other = next(path for layout in USUAL for path in layout.paths if path in record)
        remedy = "give --conversations=auto to read the conversation instead"
    elif layouts and layouts[0].prompt:
        other = next(path for path in layouts[0].paths if path != text)
        ending = "both as a conversation" if text in layouts[0].paths else "these instead"
        remedy = f"give {layouts[0].shown()} to read {ending}"
    else:
        return False
    what = f"the first record has {text!r} and {other!r}: the text is read"
    warn("conversations-left-out", what, remedy=remedy, where=where)
    return True


def _answers_to(record: Mapping[str, Any], text: str) -> tuple[RecordLayout, ...]:
    """Return the layout of a text with one answer under a well-known name, such as a summary; none for others."""
    names = [name for name, value in record.items() if isinstance(value, str)]
    if not isinstance(value_at(record, text), str):
        return ()
    try:
        layout = known_layout(names, prompt=(text,))
    except UsageError:
        return ()
    if layout is None:
        return ()
    return (layout,)
