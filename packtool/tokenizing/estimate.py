"""Estimate how many documents and tokens a corpus holds, from samples across its bytes, for `--dry-run`."""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from statistics import fmean
from typing import TYPE_CHECKING

from packtool.corpus.file_bytes import open_raw
from packtool.corpus.filters import Filters
from packtool.corpus.read import SpanReader
from packtool.corpus.records import CorpusFile, Fields, Span
from packtool.corpus.tables import row_groups

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from packtool.conversations.renderer import Renderer

SAMPLES = 16
"""Places of the corpus that are looked at, equally far apart in bytes."""
SAMPLE_BYTES = 1 << 17
"""Bytes of a file that are read at such a place, about."""
SAMPLE_CHARS = 1 << 15
"""Characters that are encoded of them."""


def estimate(
    files: Sequence[CorpusFile],
    tokenizer: Tokenizer | None,
    fields: Fields,
    filters: Filters,
    renderer: Renderer | None = None,
) -> tuple[int, int]:
    """Count samples, each standing for an equal share of the stored bytes.

    Archives can be read from their beginning only, so of those it is the beginning that counts. Nothing is said of
    records that can't be used: a real run says it.

    Args:
        tokenizer: counts tokens of text; ids need none.
        renderer: of conversations.

    Returns:
        Documents that are not left out, and their tokens, EOS included. Three digits, as more would not be known;
        zeros where the samples hold no document.
    """
    total = sum(file.bytes for file in files)
    ends = list(accumulate(file.bytes for file in files))
    sample = functools.cache(lambda file, span: _sample(file, span, fields, filters, tokenizer, renderer))
    known = []
    for number in range(SAMPLES if total else 0):
        place = total * (2 * number + 1) // (2 * SAMPLES)
        chosen = bisect_right(ends, place)
        file = files[chosen]
        if (sampled := sample(file, _span(file, place - (ends[chosen] - file.bytes)))) is not None:
            known.append(sampled)
    documents, tokens = (int(float(f"{fmean(each) * total:.3g}")) for each in zip(*known or [(0, 0)], strict=True))
    return documents, tokens


def _span(file: CorpusFile, at: int) -> Span:
    """Return the span to read in a file for a sample at this byte."""
    if file.problem or file.compression or file.format in ("text", "csv", "tsv") or file.bytes <= SAMPLE_BYTES:
        return Span(0)
    if file.format != "parquet":
        return Span(0, at, min(at + SAMPLE_BYTES, file.bytes))
    with open_raw(file.location) as raw:
        groups = row_groups(raw)
    group = min(len(groups) - 1, len(groups) * at // file.bytes)
    return Span(0, group, group + 1) if group > 0 else Span(0)


def _sample(
    file: CorpusFile,
    span: Span,
    fields: Fields,
    filters: Filters,
    tokenizer: Tokenizer | None,
    renderer: Renderer | None,
) -> tuple[float, float] | None:
    """Return documents and tokens for each byte of a span of a file; None if no record begins there."""
    read = held = documents = 0
    encoded = tokens = int(fields.ids)  # of which each is a token
    for batch in SpanReader(file, span, fields):
        read += batch.progress
        if renderer is not None:
            from packtool.tokenizing.conversations import render  # which needs jinja2

            render(renderer, batch)
        for document in batch.documents if fields.ids else filter(filters.keeps, batch.documents):
            documents += len(document) > 0
            held += len(document)
            if encoded < SAMPLE_CHARS and tokenizer is not None:
                text = document[: SAMPLE_CHARS - encoded]
                encoded += len(text)
                tokens += len(tokenizer.encode(text, add_special_tokens=False).ids)
        if read >= SAMPLE_BYTES:
            break
    return (documents / read, (held * tokens / max(encoded, 1) + documents) / read) if read else None
