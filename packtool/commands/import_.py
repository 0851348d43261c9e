"""`import`: turn token ids written by another tool into a token store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from packtool.commands.result import StoreResult
from packtool.engines import Threads
from packtool.errors import DataError, UsageError
from packtool.exchange import format_named
from packtool.exchange.files import digest
from packtool.exchange.imported import ImportedFile, files_of, import_file, require_readable, say_loss
from packtool.exchange.model import Format, ReadOptions
from packtool.exchange.whole_documents import rows_not_documents
from packtool.formats import manifest as manifests
from packtool.formats.names import token_dtype
from packtool.formats.schema import ExportManifest, InputEntry, OtherFile, StoreManifest, TokenizerInfo, TokenShard
from packtool.options.check import refuse
from packtool.options.exchange import ImportArguments
from packtool.options.names import IMPORTS
from packtool.options.record import as_recorded
from packtool.options.signature import takes
from packtool.outputs.claim import key_of, open_output
from packtool.outputs.output import Output
from packtool.outputs.pieces import Pieces
from packtool.outputs.tokenizer_files import read_tokenizer, write_tokenizer
from packtool.places.typed import place_of
from packtool.support.clock import Clock
from packtool.support.progress import Progress
from packtool.support.sizes import plural
from packtool.warnings import warn

_COUNTED = ("documents", "tokens", "empty", "eos_added")
_COUNTED_WHERE_THERE = ("padding", "divided", "eos_first", "unended")


@dataclass(frozen=True, kw_only=True, repr=False)
class ImportResult(StoreResult):
    """The result of `import_`; it counts documents, tokens, empty documents left out, and EOS tokens added.

    Where there are any, also padding that was left out, rows divided into documents, and EOS left out at the beginning.
    `run["read_as"]` says in words what numbers in columns were taken for, such as padding.
    """


@takes(ImportArguments)
def import_(options: ImportArguments) -> ImportResult:
    """Make a token store of token ids that another tool has written.

    Check every id against the tokenizer's vocabulary. A document without EOS at its end gets an EOS, counted. Where the
    format does not say where documents end, each EOS ends a document. A column of tokens that train is kept, a column
    of padding takes the padding out, a column with the number of the document divides a row. Any other column is
    refused, since the store would lose it; `ids_only` takes the ids alone.

    Raises:
        UsageError: options that make no sense.
        DataError: an input is missing, damaged or of another format; an id is not in the vocabulary; something
            other than the ids would be lost.
    """
    clock = Clock()
    chosen = format_named(options.format, IMPORTS)
    inputs = [options.inputs] if isinstance(options.inputs, str | Path) else list(options.inputs)
    paths = list(map(Path, inputs))
    _check_options(options, chosen)
    files: list[Path] = []
    for path in paths:
        files += files_of(path, chosen)
    if not options.ids_only:
        _require_documents(paths)
    info, tokenizer = _tokenizer(paths, options)
    dtype = np.dtype(options.dtype or token_dtype(info.vocab_size))
    read = ReadOptions(dtype.newbyteorder("<"), options.field, options.ids_only, asked=options.dtype is not None)
    with_loss = say_loss(files, chosen, read)
    plain = {"format": chosen.name, "dtype": read.dtype.str, "field": read.field, "ids_only": read.ids_only or None}
    recorded = as_recorded(plain)
    every = _with_companions(files, chosen)
    identity = _identity(every)
    key = key_of("import", recorded, info, identity)
    with open_output(place_of(options.output), "import", options, key=key, inputs=[*inputs, *every]) as place:
        if place.preview:
            for file in files:
                require_readable(file, chosen, read)
            known = {"files": len(files), "bytes": sum(size for _, size, _ in identity)}
            return ImportResult.previewed(place, options, known)
        if place.finished:
            return ImportResult.kept_at(place)
        try:
            done = _read_all(place, chosen, files, info, read, with_loss=with_loss, quiet=options.quiet)
        except DataError:
            if not Pieces(place, "file", ImportedFile).numbers():
                place.discard()  # nothing that a resumed run could use
            raise
        _warn_of_unended(files, done, info)
        entries = [InputEntry(file.name, file.stat().st_size, digest(file, 0, file.stat().st_size)) for file in every]
        _require_unchanged(every, identity)
        manifest = _manifest(entries, done, info, recorded, write_tokenizer(place, tokenizer))
        read_as = dict.fromkeys(chain.from_iterable(file.read_as for file in done))
        run = {"written": clock.seconds(), "read_as": list(read_as)}
        place.finish(manifest, run)
        return ImportResult(path=place.place.shown, counts=manifest.counts, run=run)


def _check_options(options: ImportArguments, chosen: Format) -> None:
    """Refuse options that say what the files of a format say themselves, or do not have."""
    if not chosen.bare:
        refuse(options, ["dtype"], f"files of {chosen.name} say it themselves", "leave it out")
    if not chosen.columns:
        refuse(options, ["field"], f"{chosen.name} has no columns", "leave it out")


def _read_all(
    place: Output,
    chosen: Format,
    files: list[Path],
    info: TokenizerInfo,
    options: ReadOptions,
    *,
    with_loss: bool,
    quiet: bool,
) -> list[ImportedFile]:
    finished: list[ImportedFile] = []
    sizes = [sum(part.stat().st_size for part in chosen.read_with(file)) for file in files]
    pieces = Pieces(place, "file", ImportedFile, lambda done: done.files)
    known = pieces.found(range(len(files)), Threads(1))
    with Progress(sum(sizes), "import", quiet=quiet) as bar:
        for number, file in enumerate(files):
            done = known.get(number)
            if done is None:
                done = import_file(file, chosen, options, info, place, number, loss=with_loss)
                pieces.record(number, done)
            finished.append(done)
            bar.advance(sizes[number])
    return finished


def _warn_of_unended(files: Sequence[Path], done: Sequence[ImportedFile], info: TokenizerInfo) -> None:
    """Warn of files without boundaries in which EOS is nowhere: another token may end documents."""
    unended = [file for file, one in zip(files, done, strict=True) if one.unended]
    if unended:
        more = f", and {plural(len(unended) - 1, 'other file')}," if len(unended) > 1 else ""
        what = f"EOS ({info.eos_id}) is nowhere in it{more} so all its tokens are one document"
        remedy = "give --eos-token if another token ends or begins documents"
        warn("no-document-ends", what, remedy=remedy, where=str(unended[0]))


def _with_companions(files: Sequence[Path], chosen: Format) -> list[Path]:
    """List files and their companions; an index of several files once."""
    every: dict[Path, None] = {}
    for file in files:
        every |= dict.fromkeys(chosen.read_with(file))
    return list(every)


def _identity(files: Sequence[Path]) -> list[tuple[str, int, int]]:
    """Return the name, size and time of each file."""
    states = [file.stat() for file in files]
    return [(file.name, state.st_size, state.st_mtime_ns) for file, state in zip(files, states, strict=True)]


def _require_unchanged(files: Sequence[Path], identity: Sequence[tuple[str, int, int]]) -> None:
    """Require that files are as they were before they were read: else the manifest would name others than were read."""
    for file, before, now in zip(files, identity, _identity(files), strict=True):
        if before != now:
            remedy = "import it when nothing writes to it any more, with --overwrite=True"
            raise DataError("input-changed", "changed while it was read", remedy=remedy, where=str(file))


def _manifest(
    entries: list[InputEntry],
    done: list[ImportedFile],
    info: TokenizerInfo,
    recorded: dict[str, Any],
    tokenizer_files: list[OtherFile],
) -> StoreManifest:
    shards: list[TokenShard] = []
    first = 0
    for tokens, offsets, *loss in chain.from_iterable(file.shards for file in done):
        shards.append(TokenShard(tokens, offsets, first, loss=loss[0] if loss else None))
        first += offsets.shape[0] - 1
    counts: dict[str, int] = {}
    for name in (*_COUNTED, *_COUNTED_WHERE_THERE):
        count = sum(getattr(file, name) for file in done)
        if count or name in _COUNTED:
            counts[name] = count
    size = sum(shard.tokens.shape[0] for shard in shards)
    documents, total = counts["documents"], counts["tokens"]
    if (documents, total) != (first, size):
        what = f"{documents} documents of {total} tokens were read, but {first} of {size} are stored"
        remedy = "do not use this output; report it with the command line and the manifest"
        raise DataError("ledger-unbalanced", what, remedy=remedy)
    has_loss = any(shard.loss is not None for shard in shards)
    if has_loss:
        counts["trained_tokens"] = sum(file.trained for file in done)
    return StoreManifest(
        options={"imported": recorded},
        inputs=entries,
        tokenizer=info,
        dtype=token_dtype(info.vocab_size).str,
        counts=counts,
        shards=shards,
        tokenizer_files=tokenizer_files,
    )


def _require_documents(inputs: list[Path]) -> None:
    """Refuse packed rows that packtool exported: documents are cut, or several together, in them."""
    for path in inputs:
        directory = path if path.is_dir() else path.parent
        if directory.name == "data":  # as Parquet is exported
            directory = directory.parent
        if (directory / manifests.MANIFEST).is_file():
            manifest = manifests.read(directory)
            if isinstance(manifest, ExportManifest) and manifest.sequence_lengths:
                raise rows_not_documents("an export of a packed dataset, whose sequences are rows", str(path))


def _tokenizer(inputs: list[Path], options: ImportArguments) -> tuple[TokenizerInfo, dict[str, bytes]]:
    """Return the tokenizer that was asked for, or that of one of packtool's own exports, with its files."""
    if options.tokenizer is not None:
        from packtool.text.encoding.load import find_tokenizer, info_of

        found = find_tokenizer(options.tokenizer, options.revision)
        return info_of(found, eos_token=options.eos_token), found.files
    for path in inputs:
        if (path / manifests.MANIFEST).is_file():
            manifest = manifests.read(path)
            if isinstance(manifest, ExportManifest):
                return manifest.tokenizer, read_tokenizer(path, manifest.tokenizer_files)
    what, remedy = "nothing says which tokenizer made these ids", "give --tokenizer, so that ids and EOS can be checked"
    raise UsageError("missing-option", what, remedy=remedy, where="--tokenizer")
