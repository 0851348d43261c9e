"""`export`: write token stores or a packed dataset in the format of another tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from packtool.choosing.asked import Asked
from packtool.choosing.choose import choose_documents
from packtool.choosing.chosen import EVERYTHING
from packtool.choosing.settle import settle
from packtool.commands.places import fetch_inputs, places_to_write_from, require_distinct
from packtool.commands.result import CommandResult
from packtool.engines import Processes, Worker
from packtool.errors import DataError, UsageError
from packtool.exchange import format_named, require_held
from packtool.exchange.exported import contents_of
from packtool.exchange.files import is_intact
from packtool.exchange.model import Contents, Format, Holdable, Part
from packtool.formats import manifest as manifests
from packtool.formats.known import KnownDataset, Lookup, known, require_alike
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import ExportedFile, ExportManifest, PackedManifest, StoreManifest
from packtool.formats.token_store import Corpus
from packtool.options.check import check_input
from packtool.options.declare import declared, given
from packtool.options.documents import DocumentOptions
from packtool.options.exchange import ExportArguments
from packtool.options.names import EXPORTS
from packtool.options.signature import takes
from packtool.outputs.claim import key_of, open_output
from packtool.outputs.output import Output
from packtool.outputs.pieces import Pieces
from packtool.outputs.recorded import Recorded
from packtool.outputs.tokenizer_files import copy_tokenizer
from packtool.places.typed import place_of, places_of
from packtool.rows.stored_tokens import store_places
from packtool.support.clock import Clock
from packtool.support.progress import Progress
from packtool.support.sizes import plural
from packtool.writing.input_check import InputCheck


@dataclass(frozen=True, kw_only=True, repr=False)
class ExportResult(CommandResult):
    """The result of `export`.

    Attributes:
        manifest: of the export; None after a dry run.
    """

    manifest: ExportManifest | None = None

    def held(self) -> object:
        manifest = self.manifest
        return "" if manifest is None else f"{plural(manifest.sequences, 'sequence')} as {manifest.exported_as}"


@takes(ExportArguments)
def export(options: ExportArguments) -> ExportResult:
    """Write the documents of token stores, or the rows of a packed dataset, for another tool to read.

    Every token comes in the stored order, one store after the other. The manifest's `lost` says what the format can't
    keep.

    Raises:
        UsageError: the format can't hold this source; options that make no sense.
        DataError: the source is missing, unfinished or damaged.
    """
    clock = Clock()
    format, asked = check(options)
    with places_to_write_from(options, options.source, options.store) as (sources, stores):
        require_distinct(sources)
        datasets = list(map(known, sources))
        _require_sources(options, format, datasets)
        recorded = Recorded.of(sources)
        inputs = recorded.entries
        chosen = EVERYTHING
        if datasets[0].rows is None:
            chosen = choose_documents(Corpus(sources), settle(asked, datasets, known))
        documents = None if chosen.passes is None else [passes.documents() for passes in chosen.passes]
        contents = contents_of(sources, documents, stores)
        require_held(format, contents)
        base = manifests.read(sources[0])
        assert isinstance(base, StoreManifest | PackedManifest)
        recorded.require_unchanged()  # what is made of others would be kept under a wrong key
        key = key_of("export", format.name, *inputs, *chosen.options)
        named = list(map(str, sources))
        with open_output(place_of(options.output), "export", options, key=key, inputs=named) as output:
            if output.preview:
                amounts = {contents.kind: contents.sequences, "tokens": contents.tokens}
                return ExportResult.previewed(output, options, amounts)
            if output.finished:
                made, run = manifests.read(output.place), manifests.read_run(output.place)
                assert isinstance(made, ExportManifest)
                return ExportResult(path=output.place.shown, manifest=made, run=run, kept=True)
            fetch_inputs(sources, quiet=options.quiet)
            with InputCheck(contents.files() if options.check_input else ()) as checking:
                files = _write(output, format, contents, checking, quiet=options.quiet)
                checking.require_sound()
            tokenizer_files = copy_tokenizer(sources[0], base.tokenizer_files, output)
            _require_counts(files, contents, contents.name)
            manifest = ExportManifest(
                exported_as=format.name,
                inputs=inputs,
                tokenizer=base.tokenizer,
                dtype=format.dtype(contents).str,
                sequence_lengths=contents.row_lengths,
                sequences=contents.sequences,
                tokens=contents.tokens,
                padding=contents.padding,
                lost=format.lost(contents),
                files=files,
                tokenizer_files=tokenizer_files,
                choice=chosen.choice,
            )
            recorded.require_unchanged(output)
            if isinstance(base, PackedManifest) and base.index_only:
                store_places(PackedDataset(sources[0]), stores)  # the stores that its rows were gathered from
            run = {"inputs": [source.name for source in sources], "written": clock.seconds()}
            output.finish(manifest, run)
            return ExportResult(path=output.place.shown, manifest=manifest, run=run)


def check(options: ExportArguments) -> tuple[Format, Asked]:
    """Check options that make no sense, alone or together; return the format, and which documents are asked for."""
    asked = Asked.of(options)
    return format_named(options.format, EXPORTS), asked


def makes(options: ExportArguments, look: Lookup) -> KnownDataset:
    """Check what is needed of the sources; return what is known of the export that is made of them."""
    format, asked = check(options)
    places = places_of(options.source)
    require_distinct(places)
    sources = list(map(look, places))
    _require_sources(options, format, sources)
    if sources[0].rows is None:
        settle(asked, sources, look)
    return KnownDataset(place=place_of(options.output), kind=ExportManifest, tokenizer=sources[0].tokenizer)


def _require_sources(options: ExportArguments, format: Format, sources: Sequence[KnownDataset]) -> None:
    """Require of the sources what the options need, as far as it is known before they are opened."""
    rows = sources[0].rows
    for source in sources:
        if source.kind is StoreManifest or (len(sources) == 1 and rows is not None):
            continue
        wanted = "a token store or a packed dataset is needed"
        if len(sources) > 1:
            wanted = "several token stores are exported together"
        what = f"{manifests.described(source.kind)}, where {wanted}"
        remedy = "give what packtool tokenize, pack or shuffle wrote"
        raise UsageError("not-exportable", what, remedy=remedy, where=str(source.place))
    if rows is None:
        require_alike(sources)
    else:
        check_input(options, "packed datasets")
    tokenizer = sources[0].tokenizer
    if tokenizer is not None:
        # Whether all tokens of chosen documents train is known once they are chosen.
        masked = any(source.masked for source in sources) and not given(options, declared(DocumentOptions))
        contents = Holdable(tokenizer.vocab_size, [], 1, masked)
        if rows is not None:
            contents = Holdable(tokenizer.vocab_size, sorted(rows.filled or []), rows.multiple, masked)
        require_held(format, contents)


def _write(output: Output, format: Format, contents: Contents, check: InputCheck, *, quiet: bool) -> list[ExportedFile]:
    """Write all files, and keep the parts that an earlier run finished if they are still intact."""
    assert format.part is not None
    write, filled = format.part, output.scratch / "export"  # a file that all parts fill is made there
    filled.mkdir(exist_ok=True)
    itemsize = format.dtype(contents).itemsize
    parts = {part.number: part for part in contents.parts}
    pieces = Pieces(output, "part", list[ExportedFile], lambda done: () if format.shared else done)
    delivery, engine = output.delivery(Processes(1)), Processes(1)

    def written(part: Part, worker: Worker) -> list[ExportedFile]:
        if format.shared:
            done = write(filled, contents, part)
        else:
            with delivery.attempt(f"part-{part.number:05d}.") as attempt:
                done = write(attempt, contents, part)
                delivery.deliver(attempt, done)
        _require_counts(done, part, f"shard {part.number} of {contents.name}")
        return done

    known = pieces.found(parts, engine)
    if format.shared:
        for number, done in list(known.items()):
            first = parts[number].first_token * itemsize
            if not all(is_intact(filled, file, first) for file in done):
                del known[number]
    by_part: dict[int, list[ExportedFile]] = {}
    with Progress(contents.tokens * itemsize, "export", quiet=quiet) as bar:
        for number, done in pieces.run(written, parts, engine, done=known, keep=check.keep):
            by_part[number] = done
            bar.advance(parts[number].tokens * itemsize)
    files = list(chain.from_iterable(by_part[number] for number in sorted(by_part)))
    last: list[ExportedFile] = []
    if format.finish:
        last = format.finish(filled, contents, files)
    delivery.deliver(filled, last)
    if format.shared:
        return last
    return files + last


def _require_counts(files: list[ExportedFile], whole: Contents | Part, where: str) -> None:
    """Check that the counts of the written files add up to those of the source."""
    for name in ("sequences", "tokens"):
        total, expected = sum(getattr(file, name) for file in files), getattr(whole, name)
        if total != expected:
            what = f"{total} {name} were written, but the source has {expected}"
            remedy = "do not use this output; report it with the command line and the manifest"
            raise DataError("ledger-unbalanced", what, remedy=remedy, where=where)
