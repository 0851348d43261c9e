"""Find what commands read: the files that arguments name, standard input, or the records of a program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.options.check import check_input
from packtool.options.declare import Input
from packtool.options.tokenize import TokenizeArguments
from packtool.places.local import LocalPlace
from packtool.places.url import is_remote
from packtool.text.corpus import discover
from packtool.text.corpus.discover import FoundFiles
from packtool.text.corpus.first import first_of
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.look import Holding, is_by_name, look
from packtool.text.corpus.once import STDIN, Once, is_once
from packtool.text.corpus.read_fields import ReadFields
from packtool.text.corpus.records import CorpusFile, Fields, shown
from packtool.warnings import warn

_FOR_TRAINING = frozenset({"train", "training", "trn"})
_NOT_FOR_TRAINING = frozenset({"test", "validation", "valid", "val", "dev", "eval", "heldout"})
"""Words of names."""
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}
_PACKED = 9
"""Bytes that each byte of a compressed file, or of a table, is more than it says: hardly any text is packed closer."""


@dataclass(frozen=True)
class Texts:
    """What `tokenize` reads."""

    inputs: Sequence[str]  # names of files, directories, globs and URLs, as given
    found: Sequence[Sequence[CorpusFile] | Once]  # the files of each input
    kind: Input  # texts, token ids or conversations
    fields: Fields  # the fields of a record that are read
    separator: str = ""  # between the documents of text files; "" where each is one
    read_fields: ReadFields = field(default_factory=ReadFields)  # what of the first record is read

    @property
    def files(self) -> list[CorpusFile]:
        """List the files of all inputs, except inputs that can be read only once."""
        return _files(self.found)

    @property
    def once(self) -> bool:
        """Return whether an input can be read only once, so that nothing can resume what is made of it."""
        return any(isinstance(found, Once) for found in self.found)

    @property
    def most_bytes(self) -> int | None:
        """Return about the most text that there is, in bytes; None where that is known only when it was read."""
        if self.once:
            return None
        size = 0
        for file in self.files:
            size += file.bytes
            if file.compression or FORMATS[file.format].table:
                size += _PACKED * file.bytes
        return size

    @property
    def locations(self) -> list[str]:
        """List the inputs as they were named, and the locations of their files."""
        named = zip(self.inputs, self.found, strict=True)
        locations = [name for name, found in named if not isinstance(found, Once)]
        for file in self.files:
            locations.append(file.location)
        return locations

    @property
    def stamps(self) -> list[list[tuple[str, int, int]] | None]:
        """Return what tells whether an input changed: name, bytes and modification time of each file.

        An input that is read once has None: it is not known before it is read, and never resumed.
        """
        stamps: list[list[tuple[str, int, int]] | None] = []
        for found in self.found:
            if isinstance(found, Once):
                stamps.append(None)
            else:
                stamps.append([(file.name, file.bytes, file.modified) for file in found])
        return stamps

    def begin(self) -> None:
        """Begin to read the first of what is read only once, so that it is known to have a format.

        The others are opened in their turn: what writes them may write one after another.

        Raises:
            PacktoolError: see `Once.begin`.
        """
        once = next((some for some in self.found if isinstance(some, Once)), None)
        if once is not None:
            once.begin()

    def stored(self, directory: Path, *, from_anywhere: bool) -> list[CorpusFile]:
        """List the files to read, in order; what can be read once is copied first.

        Args:
            directory: for the copy.
            from_anywhere: name them so that workers with other working directories find them.
        """
        files: list[CorpusFile] = []
        for number, found in enumerate(self.found):
            if isinstance(found, Once):
                files.append(found.copied(directory, number, self.fields))
            else:
                files += found
        files = _separated(files, self.separator)
        warn_of_repeats(files)
        if from_anywhere:
            return list(map(found_from_anywhere, files))
        return files


def find_texts(options: TokenizeArguments, *, streams: bool = True) -> Texts:
    """Find the input of `tokenize`, and tell what it holds: by the options, else by its first record.

    Args:
        streams: begin to read standard input and pipes, if nothing else tells; what is read is lost to later calls.

    Raises:
        UsageError: no input, or one that can't be read as asked; an option that has no effect on what it holds.
        DataError: a file is not there, or can't be read.
    """
    inputs, records = options.names, options.records
    _check_names(options)
    found: list[Sequence[CorpusFile] | Once] = []
    used: set[str] = set()
    for path in inputs:
        if is_once(path):
            found.append(Once(path, records, options.format))
        else:
            inside = find_files(path, options.format, options.include, options.exclude)
            found.append(inside.files)
            used |= inside.patterns
    _warn_of_unused(options, used)
    first, where = _first(found, streams=streams and is_by_name(options) and (not options.dry_run or STDIN in inputs))
    holding = look(options, first, where, _files(found))
    separator = _separator(options)
    texts = Texts(inputs, found, holding.kind, holding.fields, separator, holding.read)
    _separated(texts.files, separator)  # raises if it has no effect on one
    _check_held(options, holding)
    return texts


def _first(found: Iterable[Sequence[CorpusFile] | Once], *, streams: bool) -> tuple[Mapping[str, Any] | None, str]:
    """Return the first record of files, else of other inputs, None if none can be read; and where it is.

    Args:
        streams: begin to read standard input and pipes.
    """
    first, where = first_of(_files(found))
    for some in found:
        if first is None and isinstance(some, Once) and (streams or some.given):
            first, where = some.first()
    return first, where


def _check_held(options: TokenizeArguments, holding: Holding) -> None:
    """Refuse options that have no effect on what the input holds, and say why it is taken for that."""
    try:
        check_input(options, holding.kind)
    except UsageError as error:
        if not holding.why:
            raise
        raise UsageError(error.code, f"{error.what}: {holding.why}", remedy=holding.remedy, where=error.where) from None


def _separator(options: TokenizeArguments) -> str:
    """Return what stands between the documents of text files, without escapes; "" where each is one document."""
    if options.separator == "":
        raise UsageError("bad-option", "an empty separator", remedy="give a text", where="--separator")
    if options.separator is not None and options.records is not None:
        what = "has no effect on the records of a program"
        raise UsageError("option-not-taken", what, remedy="leave it out", where="--separator")
    written = options.separator or ""
    if "\\" in re.sub(r"\\[nt\\]", "", written):
        remedy = r"write \n for a newline, \t for a tab and \\ for a backslash; any other character is itself"
        raise UsageError("bad-option", "an unknown escape", remedy=remedy, where="--separator")
    return re.sub(r"\\([nt\\])", lambda match: _ESCAPES[match[1]], written)


def _separated(files: list[CorpusFile], separator: str) -> list[CorpusFile]:
    """Return the same files with what separates their documents."""
    if not separator:
        return files
    for file in files:
        if not FORMATS[file.format].whole and file.fault is None:
            what = f"has no effect on {file.format}, as which {file.shown} is read"
            remedy = "leave it out, or give --format=text to read the file as plain text"
            raise UsageError("option-not-taken", what, remedy=remedy, where="--separator")
    return [msgspec.structs.replace(file, separator=separator) for file in files]


def _check_names(options: TokenizeArguments) -> None:
    """Require an input; refuse to read an input twice, or to resume from it, if it can be read only once."""
    inputs = options.names
    if not inputs:
        remedy = "name files, directories, globs or URLs, or - for standard input"
        raise UsageError("no-input", "no input is given", remedy=remedy)
    once = list(filter(is_once, inputs))
    stream = "a pipe"
    if options.records is not None:
        stream = "a stream of records"
    elif STDIN in once:
        stream = "standard input"
    if len(set(once)) < len(once):
        remedy = "name it once"
        raise UsageError("stdin-twice", f"{stream} is named twice", remedy=remedy, where=max(once, key=once.count))
    if once and options.resume:
        remedy = "write it to a file first, or give --overwrite=True"
        raise UsageError("stdin-no-resume", f"{stream} can't be resumed", remedy=remedy, where="--resume")


def _files(found: Iterable[Sequence[CorpusFile] | Once]) -> list[CorpusFile]:
    files: list[CorpusFile] = []
    for some in found:
        if not isinstance(some, Once):
            files += some
    return files


def find_files(
    location: Path | str, format: str | None, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> FoundFiles:
    """Find the files of one argument, as `discover.find` does, with a warning of files that are not read.

    Raises:
        DataError: nothing there, or it can't be read.
        UsageError: a dataset, whose text is tokens already.
    """
    _require_text(str(location))
    corpus = discover.discover_files(location, format, include=include, exclude=exclude)
    if corpus.skipped:
        names = ", ".join(corpus.skipped[:5]) + ", …" * (len(corpus.skipped) > 5)
        what = f"not read, since their names have no known suffix, or begin with _ or a dot: {names}"
        if len(corpus.skipped) > 5:
            what += f" ({len(corpus.skipped):,} files)"
        remedy = "name the files to read them, or give --include with a pattern, and --format if needed"
        warn("files-skipped", what, remedy=remedy, where=str(location))
    for link in corpus.repeated:
        what = "leads to a directory that is read under another name, so it is not read again"
        warn("directory-repeated", what, remedy="remove the link unless it is meant", where=link)
    others = _not_for_training(map(attrgetter("name"), corpus.files))
    if others:
        what = f"files for training lie beside files of {', '.join(others)}, and all go into one store"
        warn("splits-together", what, remedy="leave out the others with --exclude", where=str(location))
    return corpus


def _warn_of_unused(options: TokenizeArguments, used: Collection[str]) -> None:
    """Warn of patterns that match no file."""
    for option, patterns in (("--include", options.include), ("--exclude", options.exclude)):
        for pattern in patterns:
            if pattern not in used:
                remedy = "a pattern without / is compared with names of files, others with paths; * stays in a folder"
                warn("matched-nothing", f"{pattern!r} matches no file", remedy=remedy, where=option)


def _not_for_training(names: Iterable[str]) -> list[str]:
    """Return the words by which names of files tell that they are not for training, where others tell that they are.

    >>> _not_for_training(["data/train-00.parquet", "data/test-00.parquet"]), _not_for_training(["test.txt"])
    (['test'], [])
    """
    others: set[str] = set()
    training = False
    for name in names:
        words = set(map(str.lower, re.findall("[A-Z]?[a-z]+|[A-Z]+", name)))
        others |= words & _NOT_FOR_TRAINING
        training = training or (words.isdisjoint(_NOT_FOR_TRAINING) and not words.isdisjoint(_FOR_TRAINING))
    if not training:
        return []
    return sorted(others)


def _require_text(location: str) -> None:
    place = Path(location)
    kind = manifests.kind_at(LocalPlace(place)) if (place / manifests.MANIFEST).is_file() else None
    remedies = {
        "token store": f"pack it: packtool pack {shlex.quote(location)} -o rows",
        "packed dataset": f"train on it, or see what is in it: packtool stats {shlex.quote(location)}",
    }
    if kind in remedies:
        raise UsageError("not-text", f"a {kind} already, not text", remedy=remedies[kind], where=location)


def warn_of_repeats(files: Sequence[CorpusFile]) -> None:
    """Warn of a file that is named twice, perhaps by a glob or a link: reading it twice is rarely meant."""
    alike: dict[tuple[object, ...], list[str]] = {}
    for file in files:
        key = (file.inode, file.bytes, file.modified) if file.inode else (file.location,)
        alike.setdefault(key, []).append(file.location)
    repeated = [locations for locations in alike.values() if len(locations) > 1]
    if repeated:
        what = (
            f"{len(repeated)} files are named more than once, and are read as often"
            if len(repeated) > 1
            else f"named {len(repeated[0])} times, and read as often"
        )
        remedy = "name each file once, unless it is meant"
        warn("input-named-twice", what, remedy=remedy, where=shown(repeated[0][-1]))


def found_from_anywhere(file: CorpusFile) -> CorpusFile:
    """Name a file so that a worker with another working directory finds it."""
    location = file.location if is_remote(file.location) else str(Path(file.location).absolute())
    return msgspec.structs.replace(file, location=location)
