"""Estimate what `tokenize` will write, and how long it will take, from places of the corpus.

Each place gives tokens and the bytes that they came from; the estimate is their ratio times all bytes. How far places
differ gives the spread: the places are spread evenly, which is at least as exact as places drawn anywhere.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from packtool.engines import Worker
from packtool.formats.names import LOSS, OFFSET, ORIGIN, TOKENIZER, token_dtype
from packtool.outputs.delivery import Delivery
from packtool.places.local import LocalPlace
from packtool.support.temporary import temporary_directory
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import CorpusFile, RecordBatch
from packtool.text.encoding.encode import encoded, utf8_of
from packtool.text.encoding.encoders import EncoderMismatchError, EncoderUnsuitableError
from packtool.text.tokenizing import block as tasks
from packtool.text.tokenizing.counts import SpanCounts
from packtool.text.tokenizing.recipe import StoreRecipe
from packtool.text.tokenizing.sample import CHUNK, KeptShare, Look, looks, small, thin, within
from packtool.text.tokenizing.tokenizer import Tokenizer

_CPU_SECONDS = 5.0
"""After which no further place is looked at; one takes a small part of a second."""
_THINNED = 0.02
"""The assumed error, as a share of its tokens, of a part that was read in whole but only partly tokenized."""
_READ_AHEAD = 1 << 15
"""Bytes of a compressed file that are read, and not yet decompressed, on average."""
_TIMED_CHARACTERS = 1 << 18
"""Characters on which the encoder is timed, about."""
_TIMED_SECONDS = 0.2
"""For which the encoder is timed."""
_OVERHEAD = 1.15
"""CPU time of the command over that of reading and encoding: it also hashes and writes."""


@dataclass(frozen=True)
class Estimate:
    """What tokenizing a corpus will take and give.

    Attributes:
        tokens: EOS included.
        least, most: that the number of tokens lies between, 19 times of 20.
        documents: about.
        bytes: of the store, about, without columns that are kept.
        cpu_seconds: about.
        places: that were looked at.
        counts: of the documents there.
        beginnings: files of which only the beginning was read.
    """

    tokens: int
    least: int
    most: int
    documents: int
    bytes: int
    cpu_seconds: float
    places: int
    counts: SpanCounts
    beginnings: int


@dataclass
class _Seen:
    """What was seen at one place, or in one batch of what is read in order.

    Attributes:
        weight: places that it stands for.
        bytes: as they lie in the file.
        tokens, documents, characters: scaled to all of these bytes.
    """

    weight: float
    bytes: float
    tokens: float
    documents: float
    characters: float


@dataclass
class _Sure:
    """What was read of a part of the corpus that stands for itself.

    Attributes:
        thinned: not all of its documents were tokenized.
        bytes, tokens, documents, characters: of all of it.
    """

    thinned: bool
    bytes: float
    tokens: float
    documents: float
    characters: float


def estimate(
    recipe: StoreRecipe, tokenizer: Tokenizer, files: Sequence[CorpusFile], *, fall_back: bool, seed: int = 0
) -> Estimate:
    """Estimate what tokenizing these files will write, in seconds: after `_CPU_SECONDS` it begins no new place.

    Args:
        files: that lie on this machine.
        fall_back: go on with another encoder where one is wrong, or refuses the tokenizer.
        seed: of the places.

    Raises:
        PacktoolError: a record that was looked at can't be used, as in a run.
    """
    begun = time.process_time()
    with temporary_directory() as directory:
        place = LocalPlace(directory)
        place.write(TOKENIZER, tokenizer.data)
        work = tasks.Work(
            recipe=recipe,
            encoder=tokenizer.encoder,
            max_errors=None,
            tokenizer_at=place,
            delivery=Delivery(place, directory, place),
        )
        while True:
            try:
                return _Sample(tasks.Attempt(work, directory, 0, Worker()), files, begun, seed).estimate()
            except (EncoderUnsuitableError, EncoderMismatchError) as error:
                if not fall_back:
                    raise
                work = msgspec.structs.replace(work, encoder=work.encoder.fallback(error))


class _Sample:
    """Places of a corpus, looked at.

    Args:
        begun: CPU time at which the estimate began.
        seed: of the places.
    """

    def __init__(self, attempt: tasks.Attempt, files: Sequence[CorpusFile], begun: float, seed: int) -> None:
        self._attempt = attempt
        self._files = files
        self._begun = begun
        self._seed = seed
        self._draw = np.random.default_rng(seed)
        self._seen: list[_Seen] = []
        self._certain: list[_Sure] = []
        self._total = SpanCounts(-1)
        self._texts: list[str] = []
        self._read_bytes = 0
        self._read_seconds = self._take_seconds = 0.0
        self._places = self._looked = 0
        self._beginnings: set[int] = set()

    def estimate(self) -> Estimate:
        """Look at places, and put together what they say of all bytes."""
        chosen, census = looks(self._files, self._seed), small(self._files)
        for look in chosen:
            self._look(look, census=census)
            if time.process_time() - self._begun > _CPU_SECONDS:
                break
        size = sum(file.bytes for file in self._files)
        whole = census and self._looked == len(chosen)
        tokens, spread = self._of_all("tokens", size)
        documents, _ = self._of_all("documents", size)
        characters, _ = self._of_all("characters", size)
        if whole:
            tokens, spread, documents = float(self._total.tokens), 0.0, float(self._total.documents)
        return Estimate(
            tokens=round(tokens),
            least=max(0, math.floor(tokens - spread)),
            most=math.ceil(tokens + spread),
            documents=round(documents),
            bytes=self._bytes(tokens, documents),
            cpu_seconds=self._cpu_seconds(size, characters),
            places=self._places,
            counts=self._total,
            beginnings=len(self._beginnings),
        )

    def _look(self, look: Look, *, census: bool) -> None:
        """Look at one place, or at what several fell in."""
        file, recipe = self._files[look.span.file], self._attempt.recipe
        counts = SpanCounts(look.span.file)
        found: list[_Seen] = []
        thinned = False
        reader = SpanReader(file, look.span, recipe.fields, limit=recipe.max_record_bytes)
        batches = within(iter(reader), look.most)
        while True:
            clock = time.process_time()
            batch = next(batches, None)
            self._read_seconds += time.process_time() - clock
            if batch is None:
                break
            self._read_bytes += batch.progress
            kept = KeptShare()
            if look.in_order:
                share = batch.progress / max(1, min(look.size, look.most))
                kept = thin(batch, CHUNK * max(1, look.places * share), self._draw)
                thinned = thinned or kept.text < 1
            found.append(self._take(look, batch, kept, counts, reader))
        if look.cut and file.compression and found:
            found[-1].bytes -= _READ_AHEAD
        if look.certain:
            self._certain.append(_Sure(thinned, *_sums(found)))
        elif not census and (look.in_order or look.span.whole):
            self._seen += _of_places(found, look.places)
        else:
            self._seen += found
        self._total.add(counts)
        self._looked += 1
        self._places += look.places
        if look.cut:
            self._beginnings.add(look.span.file)

    def _take(self, look: Look, batch: RecordBatch, kept: KeptShare, counts: SpanCounts, reader: SpanReader) -> _Seen:
        """Tokenize what is kept of a batch, and scale it to all of the batch."""
        recipe = self._attempt.recipe
        texts = [text for text in batch.documents if isinstance(text, str)]
        self._texts += texts
        tokens_before, documents_before = counts.tokens, counts.documents
        clock = time.process_time()
        self._attempt.take(look.span, self._files[look.span.file], batch, counts, reader)
        self._take_seconds += (time.process_time() - clock) / kept.text
        documents = counts.documents - documents_before
        added = documents * (1 + (recipe.tokenizer.bos_id is not None))
        text_tokens = counts.tokens - tokens_before - added
        return _Seen(
            weight=1,
            bytes=batch.progress,
            tokens=text_tokens / kept.text + added / kept.documents,
            documents=documents / kept.documents,
            characters=sum(map(len, texts)) / kept.text,
        )

    def _of_all(self, name: str, size: int) -> tuple[float, float]:
        """Estimate an amount of all bytes, and how far it may be off, 19 times of 20."""
        sure = sum(getattr(each, name) for each in self._certain)
        thinned = sum(getattr(each, name) for each in self._certain if each.thinned)
        left = max(0.0, size - sum(each.bytes for each in self._certain))
        if not self._seen:
            return sure, _THINNED * thinned
        estimated, spread = self._of_places(name, left)
        return sure + estimated, math.hypot(spread, _THINNED * thinned)

    def _of_places(self, name: str, size: float) -> tuple[float, float]:
        """Estimate an amount of so many bytes by places of them, and how far it may be off, 19 times of 20."""
        weights = np.array([seen.weight for seen in self._seen])
        read = np.array([seen.bytes for seen in self._seen])
        amounts = np.array([getattr(seen, name) for seen in self._seen])
        if not (weights @ read):
            return 0.0, 0.0
        ratio = float(weights @ amounts / (weights @ read))
        places = float(weights.sum() ** 2 / (weights @ weights))
        if places <= 1:
            return ratio * size, ratio * size
        errors = weights * (amounts - ratio * read)
        deviation = math.sqrt(float(errors @ errors) * places / (places - 1)) / float(weights @ read)
        return ratio * size, size * deviation * _quantile(places - 1)

    def _bytes(self, tokens: float, documents: float) -> int:
        """Return the bytes of a store with so many tokens and documents."""
        recipe = self._attempt.recipe
        of_token = token_dtype(recipe.tokenizer.vocab_size).itemsize
        if recipe.chat is not None:
            of_token += LOSS.itemsize
        of_document = OFFSET.itemsize
        if recipe.provenance:
            of_document += ORIGIN.itemsize
        return round(tokens * of_token + documents * of_document)

    def _cpu_seconds(self, size: int, characters: float) -> float:
        """Estimate the CPU time of all: it goes into reading and encoding."""
        if not self._read_bytes:
            return 0.0
        reading = self._read_seconds * size / self._read_bytes
        encoder = self._attempt.encoder
        if encoder is None or self._attempt.conversations is not None or not self._texts:
            return _OVERHEAD * (reading + self._take_seconds * size / self._read_bytes)
        # At first, many texts are compared with the reference, so what was encoded already says too little.
        sizes = np.cumsum(list(map(len, self._texts)))
        texts = self._texts[: 1 + int(np.searchsorted(sizes, _TIMED_CHARACTERS))]
        utf8, done = utf8_of(texts, ids=False), 0
        begun = time.process_time()
        while time.process_time() - begun < _TIMED_SECONDS:
            encoded(texts, utf8, encoder)
            done += sum(map(len, texts))
        return _OVERHEAD * (reading + (time.process_time() - begun) / max(done, 1) * characters)


def _sums(found: Sequence[_Seen]) -> tuple[float, float, float, float]:
    """Return bytes, tokens, documents and characters of all that was seen."""
    return (
        sum(seen.bytes for seen in found),
        sum(seen.tokens for seen in found),
        sum(seen.documents for seen in found),
        sum(seen.characters for seen in found),
    )


def _of_places(found: Sequence[_Seen], places: int) -> list[_Seen]:
    """Return what was seen in batches of a file as what places of one size give.

    How often a file is chosen follows from its bytes, so they must not count again.
    """
    merged: list[_Seen] = []
    for seen in found:
        if merged and (merged[-1].bytes <= 0 or seen.bytes <= 0):  # a decompressor reads ahead, for several batches
            for name in ("bytes", "tokens", "documents", "characters"):
                setattr(merged[-1], name, getattr(merged[-1], name) + getattr(seen, name))
        else:
            merged.append(seen)
    of_places = []
    for seen in merged:
        if seen.bytes > 0:
            scale = CHUNK / seen.bytes
            amounts = (seen.tokens * scale, seen.documents * scale, seen.characters * scale)
            of_places.append(_Seen(places / len(merged), CHUNK, *amounts))
    return of_places


def _quantile(freedom: float) -> float:
    """Return a bound that 19 of 20 values of Student's t do not exceed in size: the quantile, or slightly more.

    >>> round(_quantile(1), 1), round(_quantile(9), 2), round(_quantile(100), 2)
    (12.8, 2.37, 1.99)
    """
    return 1.96 + 2.8 / freedom + 8 / freedom**2
