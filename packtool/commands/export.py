"""`export`: write a token store or a packed dataset in the format of another tool."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET

from packtool.commands.document_choice import Chosen, check_choice, choose
from packtool.commands.places import fetch_inputs, places_to_write_from
from packtool.commands.result import Result
from packtool.engines import Processes, Worker
from packtool.errors import DataError
from packtool.exchange import format_named, require_held
from packtool.exchange.exported import contents_of
from packtool.exchange.files import is_intact
from packtool.exchange.model import Contents, Format, Part
from packtool.formats import manifest as manifests
from packtool.formats.schema import Choice, ExportedFile, ExportManifest, PackedManifest, StoreManifest
from packtool.formats.token_store import Corpus
from packtool.options.check import check_input
from packtool.options.exchange import ExportArguments
from packtool.options.names import EXPORTS
from packtool.options.signature import takes
from packtool.outputs.claim import key_of, open_output
from packtool.outputs.output import Output
from packtool.outputs.pieces import Pieces
from packtool.outputs.tokenizer_files import copy_tokenizer
from packtool.places.place import Place
from packtool.places.typed import place_of
from packtool.support.clock import Clock
from packtool.support.progress import Progress
from packtool.support.sizes import plural
from packtool.writing.input_check import InputCheck


@dataclass(frozen=True, kw_only=True, repr=False)
class ExportResult(Result):
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
    """Write the documents of a token store, or the rows of a packed dataset, for another tool to read.

    Every token comes in the stored order. The manifest's `lost` says what the format can't keep.

    Raises:
        UsageError: the format can't hold this; options that make no sense.
        DataError: the source is missing, unfinished or damaged.
    """
    clock = Clock()
    format = format_named(options.format, EXPORTS)
    with places_to_write_from(options, options.source, options.store) as ([source], stores):
        chosen = _choose(source, options)
        documents = None if chosen.passes is None else chosen.passes[0].documents()
        contents = contents_of(source, documents, stores)
        require_held(format, contents)
        base = manifests.read(source)
        assert isinstance(base, StoreManifest | PackedManifest)
        key = key_of("export", format.name, manifests.input_entry(source), *chosen.options)
        with open_output(place_of(options.output), "export", options, key=key, inputs=[str(source)]) as output:
            if output.preview:
                known = {contents.kind: contents.sequences, "tokens": contents.tokens}
                return ExportResult.previewed(output, options, known)
            if output.finished:
                made, run = manifests.read(output.place), manifests.read_run(output.place)
                assert isinstance(made, ExportManifest)
                return ExportResult(path=output.place.shown, manifest=made, run=run, kept=True)
            fetch_inputs([source], quiet=options.quiet)
            with InputCheck(contents.files() if options.check_input else ()) as check:
                files = _write(output, format, contents, check, quiet=options.quiet)
                check.require_sound()
            manifest = _manifest(source, base, format, contents, files, output, chosen.choice)
            run = {"inputs": [source.name], "written": clock.seconds()}
            output.finish(manifest, run)
            return ExportResult(path=output.place.shown, manifest=manifest, run=run)


def _choose(source: Place, options: ExportArguments) -> Chosen:
    """Choose documents of a store.

    Raises:
        UsageError: documents of a packed dataset are chosen, which are packed already.
    """
    check_choice(options)
    if isinstance(manifests.read(source), StoreManifest):
        return choose(Corpus([source]), options)
    check_input(options, "packed datasets")
    return Chosen()


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
        first = {number: part.first_token * itemsize for number, part in parts.items()}
        known = {n: done for n, done in known.items() if all(is_intact(filled, file, first[n]) for file in done)}
    by_part: dict[int, list[ExportedFile]] = {}
    with Progress(contents.tokens * itemsize, "export", quiet=quiet) as bar:
        for number, done in pieces.run(written, parts, engine, done=known, keep=check.keep):
            by_part[number] = done
            bar.advance(parts[number].tokens * itemsize)
    files = [file for number in sorted(by_part) for file in by_part[number]]
    last = format.finish(filled, contents, files) if format.finish else []
    delivery.deliver(filled, last)
    return last if format.shared else files + last


def _manifest(
    source: Place,
    base: StoreManifest | PackedManifest,
    format: Format,
    contents: Contents,
    files: list[ExportedFile],
    output: Output,
    choice: Choice | None,
) -> ExportManifest:
    """Make the manifest, once the files hold all of the source."""
    _require_counts(files, contents, str(source))
    return ExportManifest(
        exported_as=format.name,
        input=manifests.input_entry(source),
        tokenizer=base.tokenizer,
        dtype=format.dtype(contents).str,
        sequence_lengths=contents.row_lengths,
        sequences=contents.sequences,
        tokens=contents.tokens,
        padding=contents.padding,
        lost=format.lost(contents),
        files=files,
        tokenizer_files=copy_tokenizer(source, base.tokenizer_files, output),
        choice=UNSET if choice is None else choice,
    )


def _require_counts(files: list[ExportedFile], whole: Contents | Part, where: str) -> None:
    """Check that the counts of the written files add up to those of the source.

    Raises:
        DataError: they differ, which means a defect in packtool.
    """
    for name in ("sequences", "tokens"):
        total, expected = sum(getattr(file, name) for file in files), getattr(whole, name)
        if total != expected:
            raise DataError(
                "ledger-unbalanced",
                f"{total} {name} were written, but the source has {expected}",
                remedy="do not use this output; report it with the command line and the manifest",
                where=where,
            )
