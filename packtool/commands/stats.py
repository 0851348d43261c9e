"""`stats`: measure text files, token stores, a packed dataset or a blend, and compare strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from packtool.blending.blend import names_blend
from packtool.choosing.asked import Asked
from packtool.choosing.settle import settle
from packtool.commands.places import places_to_read, require_distinct
from packtool.commands.stats_packed import packed_report
from packtool.engines import Engine, engine_for
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.files import write_bytes
from packtool.formats.known import KnownDataset, Lookup, known, require_alike
from packtool.formats.names import UNFINISHED
from packtool.formats.schema import StoreManifest
from packtool.options.check import check_input
from packtool.options.declare import declared
from packtool.options.plans import PackOptions
from packtool.options.signature import takes
from packtool.options.stats import StatsArguments
from packtool.places.place import Place
from packtool.places.typed import Typed, place_of
from packtool.places.url import as_typed, is_remote
from packtool.report.blend_types import Report
from packtool.report.compare import Candidate, candidates
from packtool.report.page import page
from packtool.support.json_text import in_utf8
from packtool.support.temporary import discard_runs


@takes(StatsArguments)
def stats(options: StatsArguments) -> Report:
    """Measure the corpus, store, dataset or blend at `path`.

    Returns:
        The report, as docs/report-schema.md describes it.

    Raises:
        UsageError: options that make no sense for an input of this kind.
        DataError: the input is missing, unfinished or damaged.
    """
    tried, paths = check(options), _paths(options)
    if options.html is not None:
        _require_directory(Path(options.html))
    with engine_for(options.scheduler, options.workers, "stats", at_end=discard_runs) as engine:
        report = _report(paths, tried, options, engine)
    if options.html is not None:
        write_bytes(Path(options.html), in_utf8(page(report)).encode())
    return report


def check(options: StatsArguments) -> list[Candidate]:
    """Check options that make no sense, alone or together; return the strategies to compare."""
    if options.html is not None:
        _check_page(Path(options.html))
    if options.compare is None:
        return []
    given: dict[str, Any] = {}
    for name in declared(PackOptions):
        value = getattr(options, name, None)
        if value is not None and name not in ("sequence_length", "seed"):
            given[name] = value
    lengths: Any = options.sequence_length or ()  # whole numbers, since they were parsed
    tried = candidates(options.compare, lengths, given)
    return [replace(candidate, options=replace(candidate.options, seed=options.seed)) for candidate in tried]


def makes(options: StatsArguments, look: Lookup) -> None:
    """Check what is needed of the inputs, as far as they are datasets or will be; it makes none."""
    tried, paths = check(options), _paths(options)
    if names_blend(str(paths[0])):
        return
    if all(map(_is_text, paths)):
        _require_one(paths, "PATH")
        _asked(options, tried)
    else:
        _require_datasets(options, tried, list(map(look, paths)), look)


def _paths(options: StatsArguments) -> list[Typed]:
    if isinstance(options.path, str | Path | Place):
        return [options.path]
    return list(options.path)


def _is_text(typed: Typed) -> bool:
    """Return whether there is something at a path that is no dataset."""
    return isinstance(typed, str | Path) and Path(typed).exists() and not _is_dataset(typed)


def _asked(options: StatsArguments, tried: Sequence[Candidate]) -> Asked:
    """Return which documents are asked for, with intervals for a sample as wide as rows of one length."""
    rows = {candidate.options.longest_row for candidate in tried}
    if len(rows) != 1:
        return Asked.of(options)
    return Asked.of(options, rows.pop())


def _require_datasets(
    options: StatsArguments, tried: Sequence[Candidate], datasets: Sequence[KnownDataset], look: Lookup
) -> Asked | None:
    """Require token stores, or one packed dataset, with what the options need, as far as it is known beforehand.

    Returns:
        Which documents of the stores are asked for; None for a packed dataset.
    """
    others = [dataset for dataset in datasets if dataset.kind is not StoreManifest]
    if not others:
        check_input(options, "token stores")
        asked = _asked(options, tried)
        require_distinct([dataset.place for dataset in datasets])
        require_alike(datasets)
        asked = settle(asked, datasets, look)
        for dataset in datasets:
            if options.most_repeated is not None:
                dataset.require_origins("--most-repeated")
        return asked
    _require_one(datasets, str(others[0].place))
    check_input(options, "packed datasets")
    if options.compare is not None:
        what = "a packed dataset, but strategies are compared on documents"
        remedy = "give the token store it was packed from, or leave --compare out"
        raise UsageError("not-a-store", what, remedy=remedy, where=str(others[0].place))
    return None


def _report(paths: Sequence[Typed], tried: Sequence[Candidate], options: StatsArguments, engine: Engine) -> Report:
    """Report on text files, token stores, a packed dataset, or a blend: whatever lies there.

    Reports of texts, stores and blends are imported where they are made: what they need takes a while to load.
    """
    if isinstance(paths[0], str | Path) and names_blend(paths[0]):
        from packtool.commands.stats_blend import blend_report

        _require_one(paths, str(paths[0]))
        return blend_report(paths[0], options)
    if not any(map(_is_dataset, paths)):
        from packtool.commands.stats_texts import texts_report

        _require_one(paths, "PATH")
        return texts_report(str(paths[0]), tried, options, _asked(options, tried), engine)
    with places_to_read(paths) as places:
        return _datasets_report(places, tried, options, engine)


def _datasets_report(
    places: Sequence[Place], tried: Sequence[Candidate], options: StatsArguments, engine: Engine
) -> Report:
    """Report on token stores, together, or on one packed dataset."""
    asked = _require_datasets(options, tried, list(map(known, places)), known)
    if asked is not None:
        from packtool.commands.stats_store import store_report

        return store_report(places, tried, options, asked, engine)
    return packed_report(places[0], options, engine)


def _is_dataset(typed: Typed) -> bool:
    """Return whether a path is to be read as a dataset: it has a manifest, unfinished work or arrays."""
    if isinstance(typed, Place):
        return True
    if is_remote(as_typed(typed)):
        try:
            return place_of(typed).size(manifests.MANIFEST) is not None
        except UsageError:
            return False  # a pattern, or a store of text files alone
    place = Path(typed)
    if any(place.glob("*.npy")) or any(place.glob("bucket-*/*.npy")):
        return True
    return (place / manifests.MANIFEST).exists() or (place / UNFINISHED).is_dir()


def _require_one(paths: Sequence[object], where: str) -> None:
    """Refuse several paths. `where` stands in the message: the path that is not a token store, or the argument."""
    if len(paths) != 1:
        what = "only token stores can be measured together"
        remedy = "give token stores alone, or one path"
        raise UsageError("not-a-store", what, remedy=remedy, where=where)


def _check_page(html: Path) -> None:
    """Refuse a path that is not the name of a page."""
    if html.suffix.lower() not in (".html", ".htm"):
        what = f"{str(html)!r} is not the name of a page, and what lies there would be overwritten"
        raise UsageError("bad-option", what, remedy="give a name that ends in .html", where="--html")


def _require_directory(html: Path) -> None:
    """Refuse a page that can't be written, before anything is measured."""
    if html.is_dir() or not html.absolute().parent.is_dir():
        what = f"{html} can't be written: it is a directory, or lies in one that does not exist"
        raise UsageError("bad-option", what, remedy="give a file in an existing directory", where="--html")
