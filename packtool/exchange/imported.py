"""Turn what a format's reader yields into a token store: every id known, every document ended by one EOS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.engines import Threads
from packtool.errors import DataError
from packtool.exchange.model import Format, ReadDocuments, ReadOptions, damaged
from packtool.formats.schema import TokenizerInfo
from packtool.formats.token_store import write_loss, write_shard
from packtool.outputs.output import Output
from packtool.places.npy import FileEntry
from packtool.planning.plan import I64, offsets_of

SHARD_TOKENS = 1 << 25
"""A shard closes when it has this many, which bounds memory; so cuts depend on the input alone."""
Ids = npt.NDArray[Any]


class ImportedFile(msgspec.Struct, frozen=True):
    """The result of importing one input.

    Attributes:
        shards: lists of the files of a shard: tokens, offsets and perhaps loss.
        documents, tokens: number of documents and tokens stored.
        empty: documents without a token, left out.
        eos_added: documents that did not end with EOS, and were given one.
        trained: tokens that train, if the store has a loss.
        padding: tokens left out because a mask marks them as padding.
        divided: rows that were divided into several documents.
        eos_first: EOS tokens left out at the start of documents, in a file in which EOS begins documents.
        unended: 1 if EOS ends documents, but the file has no EOS, so that it is one document.
        read_as: what numbers in columns were taken for, in words.
    """

    shards: list[list[FileEntry]]
    documents: int
    tokens: int
    empty: int
    eos_added: int
    trained: int = 0
    padding: int = 0
    divided: int = 0
    eos_first: int = 0
    unended: int = 0
    read_as: list[str] = []

    @property
    def files(self) -> list[FileEntry]:
        """Of all its shards."""
        return list(chain.from_iterable(self.shards))


def files_of(path: Path, chosen: Format) -> list[Path]:
    """List the files of an input: itself; or, in a directory, the files in its index, or with names of the format.

    Raises:
        DataError: there are no such files; the index names one twice.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError("missing-input", "no such file or directory", remedy="check the path", where=str(path))
    named = chosen.inside(path) if chosen.inside is not None else None
    if named is not None:
        if len(set(named)) < len(named):
            raise damaged(path, "its index names a file twice, perhaps in place of another")
        return named
    files = sorted(file for file in path.glob(chosen.files) if file.is_file())
    if not files:
        what = f"holds no file that matches {chosen.files}, which {chosen.name} writes"
        raise DataError("missing-input", what, remedy="name the files, or give another --format", where=str(path))
    return files


def say_loss(files: Iterable[Path], chosen: Format, options: ReadOptions) -> bool:
    """Return whether the first documents of any of these files say which tokens train."""
    if chosen.read is None or not (chosen.loss or chosen.columns):
        return False
    for file in files:
        first = _first(file, chosen.read, options)
        if first is not None and first.loss is not None:
            return True
    return False


def require_readable(file: Path, chosen: Format, options: ReadOptions) -> None:
    """Read the first documents of a file, for a dry run.

    Raises:
        DataError: they can't be read as asked.
    """
    assert chosen.read is not None
    next(chosen.read(file, options), None)


def _first(
    file: Path, read: Callable[[Path, ReadOptions], Iterator[ReadDocuments]], options: ReadOptions
) -> ReadDocuments | None:
    """Return the first documents of a file; None where there are none, or reading them will fail with the reason.

    The first row is enough, unless it alone has a column that is refused where all rows have it.
    """
    for tokens in (1, options.tokens):
        try:
            return next(read(file, replace(options, tokens=tokens)), None)
        except DataError:
            continue
    return None


def import_file(
    file: Path, chosen: Format, options: ReadOptions, info: TokenizerInfo, output: Output, number: int, *, loss: bool
) -> ImportedFile:
    """Write the documents of one input as shards.

    Args:
        number: of the input, which names its shards.
        loss: write which tokens train; where the input does not say it, all do.

    Raises:
        DataError: it is damaged or of another format, or has an id that is not in the vocabulary.
    """
    read = chosen.read
    assert read is not None
    shards: list[list[FileEntry]] = []
    delivery = output.delivery(Threads(1))
    waiting: list[Documents] = []
    counts: Counter[str] = Counter(documents=0, tokens=0, empty=0, eos_added=0)

    def close() -> None:
        if any(len(part.ids) for part in waiting):
            at = number, len(shards)
            offsets = offsets_of(np.concatenate([part.lengths for part in waiting]))
            with delivery.attempt(f"file-{number:05d}.") as attempt:
                shards.append([*write_shard(attempt, at, [part.ids for part in waiting], offsets, info.vocab_size)])
                if loss:
                    shards[-1].append(write_loss(attempt, at, [part.trains for part in waiting]))
                delivery.deliver(attempt, shards[-1])
        waiting.clear()

    read_as: dict[str, None] = {}

    def noted() -> Iterator[ReadDocuments]:
        for found in read(file, options):
            read_as.update(dict.fromkeys(found.read_as))
            yield found

    for part in documents(noted(), info, str(file), counts):
        waiting.append(part)
        counts["documents"] += len(part.lengths)
        counts["tokens"] += len(part.ids)
        counts["trained"] += int(np.count_nonzero(part.trains)) if loss else 0
        if sum(len(part.ids) for part in waiting) >= SHARD_TOKENS:
            close()
    close()
    return ImportedFile(shards, **counts, read_as=list(read_as))


class Documents(NamedTuple):
    """Some whole documents."""

    ids: Ids  # the ids of all documents, with their EOS
    lengths: I64  # the lengths of the documents
    loss: npt.NDArray[np.uint8] | None  # 1 for ids that train, 0 for others; None if all train

    @property
    def trains(self) -> npt.NDArray[np.uint8]:
        """Whether each id trains: 1 or 0."""
        return np.ones(len(self.ids), np.uint8) if self.loss is None else self.loss


def documents(
    parts: Iterable[ReadDocuments], info: TokenizerInfo, where: str, counts: Counter[str]
) -> Iterator[Documents]:
    """Yield whole documents, each ended by EOS. Where boundaries are not known, a document ends with each EOS.

    Args:
        counts: what is left out or added is counted here.
    """
    begun: list[Ids] = []  # of a document whose end is still to come
    read = 0
    for part in parts:
        tokens = part.tokens
        _require_ids(tokens, info.vocab_size, read, where)
        _require_eos(tokens, info, where)
        counts["padding"] += part.padding
        counts["divided"] += part.divided
        if part.lengths is not None:
            read += len(tokens)
            yield _ended(tokens, part.lengths, info.eos_id, counts, part.loss)
            continue
        if read == 0 and _begins_with_eos(part, info.eos_id):
            counts["eos_first"] += 1
            tokens = tokens[1:]
        read += len(part.tokens)
        ends = np.flatnonzero(tokens == info.eos_id) + 1
        last = int(ends[-1]) if len(ends) else 0
        if last:
            ids = np.concatenate([*begun, tokens[:last]])
            ends += len(ids) - last
            begun = []
            yield _ended(ids, np.diff(ends, prepend=0), info.eos_id, counts)
        if last < len(tokens):
            begun.append(tokens[last:])
    if begun:
        ids = np.concatenate(begun)
        counts["unended"] += len(ids) == read
        yield _ended(ids, np.array([len(ids)]), info.eos_id, counts)


def _begins_with_eos(part: ReadDocuments, eos_id: int) -> bool:
    """Return whether EOS begins each document of a file, as llm.c and nanochat write it, and not ends it.

    Then it is the first token of the file, and not the last.
    """
    return len(part.tokens) > 0 and int(part.tokens[0]) == eos_id and part.last != eos_id


def _ended(
    ids: Ids, lengths: I64, eos_id: int, counts: Counter[str], loss: npt.NDArray[np.uint8] | None = None
) -> Documents:
    """End each document that has tokens with an EOS; one that is added trains if the document does.

    >>> counts = Counter()
    >>> found = _ended(np.array([5, 6, 0, 7]), np.array([3, 0, 1]), 0, counts, np.array([0, 1, 0, 1], np.uint8))
    >>> found.ids, found.lengths, found.loss
    (array([5, 6, 0, 7, 0]), array([3, 2]), array([0, 1, 0, 1, 1], dtype=uint8))
    >>> counts["empty"], counts["eos_added"]
    (1, 1)
    """
    kept = lengths[lengths > 0]
    ends = np.cumsum(kept)
    lacking = ids[ends - 1] != eos_id
    if lacking.any():
        ids = np.insert(ids, ends[lacking], eos_id)
        if loss is not None:
            trains = np.logical_or.reduceat(loss, ends - kept)
            loss = np.insert(loss, ends[lacking], trains[lacking])
        kept = kept + lacking
    counts["empty"] += len(lengths) - len(kept)
    counts["eos_added"] += int(lacking.sum())
    return Documents(ids, kept, loss)


def _require_eos(ids: Ids, info: TokenizerInfo, where: str) -> None:
    """Require ids of a type that holds EOS: a tool chooses it by its tokenizer, so it was another one."""
    if len(ids) and info.eos_id > np.iinfo(ids.dtype).max:
        what = f"its ids are of type {ids.dtype.name}, which can't hold EOS, {info.eos_id} in this tokenizer"
        remedy = "give the tokenizer that made these ids, or its --eos-token"
        raise DataError("id-out-of-range", what, remedy=remedy, where=where)


def _require_ids(ids: Ids, vocab_size: int, before: int, where: str) -> None:
    if not len(ids) or (int(ids.max()) < vocab_size and int(ids.min()) >= 0):
        return
    place = int(np.flatnonzero((ids < 0) | (ids >= vocab_size))[0])
    token, number = before + place, int(ids[place])
    what = f"token {token} is {number}, but the tokenizer's vocabulary has {vocab_size} ids, from 0"
    remedy = "give the tokenizer that made these ids, or another --dtype"
    raise DataError("id-out-of-range", what, remedy=remedy, where=where)
