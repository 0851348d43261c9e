"""Estimate what `tokenize` will write, and how long it will take, from places spread evenly over the corpus.

A place stands for the bytes around it: tokens there / bytes read there × bytes that it stands for. Lines can be read
from anywhere in an uncompressed file: those that begin in a window, whose bytes count whether lines begin there or not,
so that a line counts once however long it is. Tables are read from any row group; any other file from its beginning,
which may not stand for the rest.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from packtool.engines import Worker
from packtool.errors import DataError
from packtool.formats.names import LOSS, OFFSET, ORIGIN, TOKENIZER, token_dtype
from packtool.outputs.delivery import Delivery
from packtool.places.local import LocalPlace
from packtool.support.temporary import temporary_directory
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import CorpusFile, RecordBatch, Span
from packtool.text.encoding.encode import encoded, utf8_of
from packtool.text.encoding.encoders import EncoderMismatchError, EncoderUnsuitableError
from packtool.text.faults import Fault
from packtool.text.tokenizing import block as tasks
from packtool.text.tokenizing.counts import SpanCounts
from packtool.text.tokenizing.fields_found import errors_of_names
from packtool.text.tokenizing.recipe import StoreRecipe
from packtool.text.tokenizing.tokenizer import Tokenizer

PLACES = 64
"""Places to look at, at most."""
CHUNK = 1 << 16
"""Bytes of text to tokenize at a place, about."""
WINDOW = 1 << 21
"""Bytes of a place among lines, at most."""
_COMPRESSED = 1 << 22
"""Bytes of text to read of a compressed file: bz2 reads a block of 900 kB ahead, which counts as read."""
_CPU_SECONDS = 5.0  # CPU time after which nothing further is read
_TURN = 8  # places are looked at in so many turns, so that those of the first turns are spread over the corpus, too
_TIMED_CHARACTERS = 1 << 18  # characters on which the encoder is timed, about
_TIMED_SECONDS = 0.2  # time for which the encoder is timed
_OVERHEAD = 1.15  # CPU time of the command over that of reading and encoding: it also hashes and writes


@dataclass(frozen=True)
class Estimate:
    """What tokenizing a corpus will take and give, about.

    Attributes:
        tokens: EOS included.
        documents: of the store.
        bytes: of the store, without columns that are kept.
        cpu_seconds: of the command.
        places: that were looked at.
        counts: of the documents there.
        beginnings: files of which only the beginning was read.
        tokens_margin, documents_margin: share of the amounts by which they are hardly wrong: twice the standard error
            that differences between the places give. None where a single place says nothing of it.
    """

    tokens: int
    documents: int
    bytes: int
    cpu_seconds: float
    places: int
    counts: SpanCounts
    beginnings: int
    tokens_margin: float | None
    documents_margin: float | None


class Look(NamedTuple):
    """Something to read."""

    span: Span  # span to read, from its beginning
    stands_for: float  # bytes of the corpus that it stands for
    text: int  # bytes of text to read, and to tokenize of what is read at once, about
    window: int = 0  # bytes of the span, if records that begin in it are read to their ends; 0 for any other span


def looks(files: Sequence[CorpusFile]) -> list[Look]:
    """Choose what to read of a corpus: all of a small one, else places spread evenly over its bytes.

    >>> len(looks([CorpusFile("a", "a", 10, "jsonl"), CorpusFile("b", "b", 5, "jsonl")]))
    2
    >>> len(looks([CorpusFile("a", "a", 10**9, "jsonl")])), len(looks([CorpusFile("a", "a", 10**9, "jsonl", "gzip")]))
    (64, 1)
    """
    sizes = [file.bytes for file in files]
    size = sum(sizes)
    if size <= PLACES * CHUNK:
        return [Look(Span(number), file.bytes, sys.maxsize) for number, file in enumerate(files)]
    width = size / PLACES
    ends = np.cumsum(sizes)
    found: Counter[tuple[Span, int]] = Counter()
    for place in range(PLACES):
        begin, end = size * place // PLACES, size * (place + 1) // PLACES
        window = min(end - begin, WINDOW)  # all of a small corpus is in one of them
        at = begin + (end - begin - window) // 2
        number = int(np.searchsorted(ends, at, side="right"))
        offset = at - int(ends[number]) + files[number].bytes
        found[_span(files[number], number, offset, window)] += 1
    chosen: list[Look] = []
    for (span, read), places in found.items():
        chosen.append(Look(span, places * width, places * CHUNK, read))
    in_turns: list[Look] = []
    for turn in range(_TURN):
        in_turns += chosen[turn::_TURN]
    return in_turns


def _span(file: CorpusFile, number: int, offset: int, window: int) -> tuple[Span, int]:
    """Return what to read for a place at this offset of a file, and the bytes of the window, if it is one."""
    division = FORMATS[file.format].division
    if division is None or file.compression or file.separator or file.bytes <= 2 * CHUNK:
        return Span(number), 0
    start, stop = division.place(file, offset, window)
    if division.size is None:
        return Span(number, start, stop), stop - start
    return Span(number, start, stop), 0


@dataclass
class _Seen:
    """What was seen at a place: bytes as they lie in the file, and what they hold; `stands_for` as of `Look`."""

    stands_for: float
    bytes: float = 0
    tokens: float = 0
    documents: float = 0
    characters: float = 0


def looked_at(
    recipe: StoreRecipe, tokenizer: Tokenizer, files: Sequence[CorpusFile], *, fall_back: bool
) -> tuple[Estimate | None, str]:
    """Estimate what tokenizing these files will write; None, and what a run would stop at, where it would.

    Args:
        files, fall_back: see `estimate`.
    """
    try:
        found = estimate(recipe, tokenizer, files, fall_back=fall_back)
    except DataError as error:
        return None, f"a run would stop at {error.typed()}"
    lacking = errors_of_names(recipe, found.counts, files)
    if lacking:
        return None, f"a run would stop, unless a record that was not looked at has it: {lacking[0].typed()}"
    return found, ""


def estimate(recipe: StoreRecipe, tokenizer: Tokenizer, files: Sequence[CorpusFile], *, fall_back: bool) -> Estimate:
    """Estimate what tokenizing these files will write, in seconds.

    Args:
        files: that lie on this machine.
        fall_back: go on with another encoder where one is wrong, or refuses the tokenizer.

    Raises:
        PacktoolError: a record that was looked at can't be used, as in a run.
    """
    begun = time.process_time()
    with temporary_directory() as directory:
        place = LocalPlace(directory)
        (directory / TOKENIZER).write_bytes(tokenizer.data)
        work = tasks.Work(
            recipe=recipe,
            encoder=tokenizer.encoder,
            max_errors=None,
            tokenizer_at=place,
            delivery=Delivery(place, directory, place),
        )
        # A new sample for each encoder: what the wrong one had counted is thrown away with it.
        while True:
            try:
                sample = _Sample(tasks.Attempt(work, directory, 0, Worker()), files, begun + _CPU_SECONDS)
                for look in looks(files):
                    if time.process_time() < sample.until:
                        sample.look(look)
                return sample.estimate(sum(map(len, tokenizer.files.values())))
            except (EncoderUnsuitableError, EncoderMismatchError) as error:
                if not fall_back:
                    raise
                work = msgspec.structs.replace(work, encoder=work.encoder.fallback(error))


@dataclass
class _Sample:
    """Places of a corpus, looked at."""

    attempt: tasks.Attempt  # tokenizes
    files: Sequence[CorpusFile]  # files of the corpus
    until: float  # CPU time of this process from which on nothing further is read
    seen: list[_Seen] = field(default_factory=list)  # figures of each place that was looked at
    counts: SpanCounts = field(default_factory=lambda: SpanCounts(-1))  # counts of all that was tokenized
    texts: list[str] = field(default_factory=list)  # texts that were tokenized
    searched: set[str] = field(default_factory=set)  # files in which a long record was looked for
    beginnings: set[int] = field(default_factory=set)  # files of which only the beginning was read
    read_seconds: float = 0  # CPU time of reading
    take_seconds: float = 0  # CPU time of tokenizing all that was read

    @property
    def size(self) -> int:
        """Bytes of the corpus."""
        return sum(file.bytes for file in self.files)

    def look(self, look: Look) -> None:
        """Look at one place, or at what several fell in."""
        file, recipe = self.files[look.span.file], self.attempt.recipe
        seen = _Seen(look.stands_for)
        counts, text = SpanCounts(look.span.file), 0
        most = look.text
        if file.compression:
            most = max(most, _COMPRESSED)
        reader = SpanReader(file, look.span, recipe.fields, limit=recipe.max_record_bytes)
        clock = time.process_time()
        for batch in reader:
            # The clock runs from the end of one batch's tokenizing to the next batch: that is the time of reading.
            self.read_seconds += time.process_time() - clock
            if (text >= most or clock > self.until) and not look.window:
                if look.span.whole:
                    self.beginnings.add(look.span.file)
                break
            text += batch.bytes
            seen.bytes += batch.progress
            self._take(look, batch, counts, reader, seen)
            clock = time.process_time()
        else:
            if look.span.whole:
                seen.bytes = file.bytes
        if look.window:
            seen.bytes = look.window
            if not counts.records and file.location not in self.searched:
                self._search(look.span, file)
        self.counts.add(counts)
        self.seen.append(seen)

    def _search(self, span: Span, file: CorpusFile) -> None:
        """Look once in a file whether a record that begins before a window goes on for longer than is allowed."""
        self.searched.add(file.location)
        recipe = self.attempt.recipe
        stop = span.start + recipe.max_record_bytes + 1
        wide = Span(span.file, span.start, stop)
        begun = next(iter(SpanReader(file, wide, recipe.fields, limit=recipe.max_record_bytes)), None)
        if begun is None and stop <= file.bytes and recipe.on_error == "fail":
            what = f"a record of more than {recipe.max_record_bytes:,} bytes"
            raise Fault("record-too-large", what).at(file.shown)

    def _take(self, look: Look, batch: RecordBatch, counts: SpanCounts, reader: SpanReader, seen: _Seen) -> None:
        """Tokenize some documents of a batch, and scale what they give to all of the batch."""
        share = _thin(batch, look.text)
        texts = [text for text in batch.documents if isinstance(text, str)]
        self.texts += texts
        tokens, documents = counts.tokens, counts.documents
        clock = time.process_time()
        self.attempt.take(look.span, self.files[look.span.file], batch, counts, reader)
        self.take_seconds += (time.process_time() - clock) / share
        seen.tokens += (counts.tokens - tokens) / share
        seen.documents += (counts.documents - documents) / share
        seen.characters += sum(map(len, texts)) / share

    def estimate(self, tokenizer_bytes: int) -> Estimate:
        """Put together what the places say of all bytes.

        Args:
            tokenizer_bytes: of the files of the tokenizer, which the store keeps.
        """
        tokens, documents = self._of_all("tokens"), self._of_all("documents")
        return Estimate(
            tokens=round(tokens),
            documents=round(documents),
            bytes=self._store_bytes(tokens, documents) + tokenizer_bytes,
            cpu_seconds=self._cpu_seconds(),
            places=len(self.seen),
            counts=self.counts,
            beginnings=len(self.beginnings),
            tokens_margin=self._margin("tokens"),
            documents_margin=self._margin("documents"),
        )

    def _of_all(self, name: str) -> float:
        """Estimate an amount of the whole corpus: each place counts by what it stands for."""
        stands_for = amount = 0.0
        for seen in self.seen:
            if seen.bytes > 0:
                stands_for += seen.stands_for
                amount += seen.stands_for * getattr(seen, name) / seen.bytes
        return amount * self.size / max(stands_for, 1)

    def _margin(self, name: str) -> float | None:
        """Return the share of an estimated amount by which it is hardly wrong, None if that is not known.

        The variance of a ratio, from places that were chosen evenly: what was read of the corpus has none.
        """
        places = [seen for seen in self.seen if seen.bytes > 0]
        read = sum(seen.bytes for seen in places)
        if read >= self.size or not places:
            return 0.0
        if len(places) == 1 or self.beginnings:
            return None
        rates = np.array([getattr(seen, name) / seen.bytes for seen in places])
        weights = np.array([seen.stands_for for seen in places])
        weights = weights / weights.sum()
        mean = float(weights @ rates)
        if not mean:
            return None
        variance = float(weights**2 @ (rates - mean) ** 2) * len(places) / (len(places) - 1)
        return 2 * math.sqrt(variance * (1 - read / self.size)) / mean

    def _store_bytes(self, tokens: float, documents: float) -> int:
        """Return the bytes of a store with so many tokens and documents."""
        recipe = self.attempt.recipe
        of_token = token_dtype(recipe.tokenizer.vocab_size).itemsize
        if recipe.chat is not None:
            of_token += LOSS.itemsize
        of_document = OFFSET.itemsize
        if recipe.provenance:
            of_document += ORIGIN.itemsize
        return round(tokens * of_token + documents * of_document)

    def _cpu_seconds(self) -> float:
        """Estimate the CPU time of all: it goes into reading and encoding."""
        read = sum(seen.bytes for seen in self.seen)
        if not read:
            return 0.0
        times = self.size / read
        encoder = self.attempt.encoder
        if encoder is None or self.attempt.conversations is not None or not self.texts:
            return _OVERHEAD * times * (self.read_seconds + self.take_seconds)
        # At first, many texts are compared with the reference, so what was encoded already says too little.
        sizes = np.cumsum(list(map(len, self.texts)))
        texts = self.texts[: 1 + int(np.searchsorted(sizes, _TIMED_CHARACTERS))]
        utf8, done = utf8_of(texts, ids=False), 0
        begun = time.process_time()
        while time.process_time() - begun < _TIMED_SECONDS:
            encoded(texts, utf8, encoder)
            done += sum(map(len, texts))
        encoding = (time.process_time() - begun) / max(done, 1) * self._of_all("characters")
        return _OVERHEAD * (self.read_seconds * times + encoding)


def _thin(batch: RecordBatch, most: int) -> float:
    """Leave about so many characters of a batch, in documents spread evenly over it; return their share of all.

    >>> from packtool.text.corpus.records import Fields
    >>> batch = RecordBatch(Fields(), documents=["a", "bc", "def", "gh"], numbers=[1, 2, 3, 4])
    >>> _thin(batch, 4), batch.documents
    (0.5, ['a', 'def'])
    """
    sizes = [len(str(document)) for document in batch.documents]
    step = sum(sizes) // most
    if step < 2:
        return 1.0
    batch.keep(range(0, len(sizes), step))
    return sum(sizes[::step]) / sum(sizes)
