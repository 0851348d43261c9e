"""Preview `tokenize` for `--dry-run`: the files, how each begins, and an estimate of the output."""

from __future__ import annotations

from packtool.commands.result import SeenFile
from packtool.commands.tokenize_options import Source
from packtool.corpus import blocks
from packtool.corpus.read import SpanReader
from packtool.corpus.records import CorpusFile, Fields, Span
from packtool.storage.names import OFFSET, ORIGIN, token_dtype
from packtool.tokenizing.encoders import reference_tokenizer
from packtool.tokenizing.estimate import estimate

ESTIMATED = ("documents", "tokens", "bytes")
"""The figures that samples tell."""
_SEEN_BYTES, _SEEN_FILES = 1 << 20, 1000
"""Of how many files so many bytes are looked at, about."""


def figures(source: Source, *, provenance: bool) -> dict[str, int]:
    """Return how much there is to read, and from samples how much would be written."""
    files, fields, tokenizer = source.files, source.fields, source.tokenizer
    renderer = None
    if source.chat is not None:
        from packtool.conversations.renderer import Renderer

        renderer = Renderer(source.chat)
    reference = None if fields.ids else reference_tokenizer(tokenizer.data)
    documents, tokens = estimate(files, reference, fields, source.filters, renderer)
    return {
        "files": len(files),
        "blocks": len(blocks.plan(files)),
        "input_bytes": sum(file.bytes for file in files),
        "documents": documents,
        "tokens": tokens,
        "bytes": tokens * token_dtype(tokenizer.info.vocab_size).itemsize
        + documents * (OFFSET.itemsize + ORIGIN.itemsize * provenance)
        + sum(map(len, tokenizer.files.values())),
    }


def seen_files(source: Source) -> list[SeenFile]:
    """Describe the files; the first of them with the documents that they begin with."""
    return [_seen(file, source.fields, look=number < _SEEN_FILES) for number, file in enumerate(source.files)]


def _seen(file: CorpusFile, fields: Fields, *, look: bool) -> SeenFile:
    """Describe a file, with the documents in its first bytes."""
    known = (file.name, file.format, file.compression, file.bytes)
    if not look:
        return SeenFile(*known, 0, whole=False, problem=file.problem)
    documents = size = 0
    problem = ""
    for batch in SpanReader(file, Span(0), fields, salvage=False):
        if size >= _SEEN_BYTES:
            return SeenFile(*known, documents, whole=False, problem=problem)
        documents += len(batch.documents)
        size += batch.bytes
        if batch.rejects and not problem:
            place = f"{batch.rejects[0].record}: " if batch.rejects[0].record else ""
            problem = f"{place}{batch.rejects[0].reason}"
    return SeenFile(*known, documents, whole=True, problem=problem)
