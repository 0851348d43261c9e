"""`stats`: describe a corpus, token store or packed dataset, and what each strategy would make of documents."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.blending.blend import names_blend
from packtool.commands.count_rows import batch_tokens, count_rows
from packtool.commands.document_choice import check_choice, choose
from packtool.commands.made_by import command_again, tokenizer_named
from packtool.commands.places import places_to_read, require_distinct
from packtool.commands.ranked_documents import longest, most_repeated
from packtool.commands.stats_blend import blend_report
from packtool.commands.stats_corpus import corpus_lengths
from packtool.commands.tokenize import tokenize
from packtool.engines import Engine, engine_for
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.files import write_bytes
from packtool.formats.manifest import input_entry, input_names
from packtool.formats.names import UNFINISHED
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import StoreManifest
from packtool.formats.token_store import Corpus
from packtool.options.arguments import as_flags
from packtool.options.check import check_input, refuse
from packtool.options.declare import declared, given
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import parse_amount
from packtool.options.pack import PackOptions
from packtool.options.signature import takes
from packtool.options.stats import StatsArguments
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.typed import Typed, place_of
from packtool.places.url import as_typed, is_remote
from packtool.planning.metrics.lengths import LengthCounts
from packtool.planning.metrics.mixing import BatchMix, Mixed, Mixing
from packtool.planning.metrics.ratios import ratio
from packtool.planning.metrics.summary import training_cost
from packtool.planning.metrics.tally import Tally
from packtool.planning.packing import STRATEGIES
from packtool.planning.plan import Ints, offsets_of
from packtool.planning.selecting.mixture import Passes, by_pass
from packtool.planning.selecting.subsets import first_of_each
from packtool.report.blend_schema import Report
from packtool.report.compare import Candidate, PlannedDocuments, candidates, compare, spread_rows
from packtool.report.packed import lengths_of, packed_sources, read_report, report_of_rows, sample_rows
from packtool.report.page import page
from packtool.report.schema import (
    Comparison,
    CorpusReport,
    MeasuredReport,
    PackedSourceFigures,
    SampleRow,
    StoredSourceFigures,
    StoreReport,
)
from packtool.support.progress import Progress
from packtool.support.temporary import discard_runs, temporary_directory

_OF_PLANS = tuple(
    name
    for name in declared(PackOptions)
    if name in declared(StatsArguments) and name not in ("sequence_length", "seed")
)
"""Options of plans that strategies are compared with, other than the sequence length."""
_TEXT = ("tokenizer", "eos_token", "text_field", "format")
"""Options of how text files are read."""
_STORE = "tokens"
"""The store of text files that are not tokenized yet."""
_LISTS = ("longest", "most_repeated")
"""Options that list documents."""
_CHOICE = tuple(name for name in declared(DocumentOptions) if name != "seed")


@takes(StatsArguments)
def stats(options: StatsArguments) -> Report:
    """Measure the corpus, store, dataset or blend at `path`.

    Returns:
        The report, as docs/report-schema.md describes it.

    Raises:
        UsageError: options that make no sense for what lies there.
        DataError: it is missing, unfinished or damaged.
    """
    if options.html is not None:
        _check_page(Path(options.html))
    tried = _candidates(options)
    paths: list[Typed] = []
    if isinstance(options.path, str | Path | Place):
        paths.append(options.path)
    else:
        paths += options.path
    with engine_for(options.scheduler, options.workers, "stats", at_end=discard_runs) as engine:
        report = _report(paths, tried, options, engine)
    if options.html is not None:
        write_bytes(Path(options.html), page(report).encode())
    return report


def _report(paths: Sequence[Typed], tried: Sequence[Candidate], options: StatsArguments, engine: Engine) -> Report:
    """Report on text files, token stores, a packed dataset, or a blend: whatever lies there."""
    if isinstance(paths[0], str | Path) and names_blend(paths[0]):
        _require_one(paths, str(paths[0]))
        return blend_report(paths[0], options)
    if not any(map(_is_dataset, paths)):
        _require_one(paths, "PATH")
        report_of = _chosen_of_corpus if given(options, (*_CHOICE, *_LISTS)) else _corpus_report
        return report_of(str(paths[0]), tried, options, engine)
    with places_to_read(paths) as places:
        kinds = {place: manifests.read(place) for place in places}
        others = [place for place, manifest in kinds.items() if not isinstance(manifest, StoreManifest)]
        if not others:
            check_input(options, "token stores")
            check_choice(options)
            return _store_report(places, tried, options, engine)
        _require_one(places, str(others[0]))
        check_input(options, "packed datasets")
        if tried:
            raise UsageError(
                "not-a-store",
                "a packed dataset, but strategies are compared on documents",
                remedy="give the token store it was packed from, or leave --compare out",
                where=str(places[0]),
            )
        return _packed_report(places[0], options, engine)


def _packed_report(place: Place, options: StatsArguments, engine: Engine) -> MeasuredReport:
    """Report on a packed dataset, counted from its segment table, and on how well mixed its rows are."""
    dataset = PackedDataset(place)
    manifest = dataset.manifest
    tallies: list[Tally] = []
    mixing: list[Mixed] = []
    if dataset.has_segments:
        tallies, mixing = _counted(dataset, options, engine)
    written = read_report(dataset.place, manifest)
    report = report_of_rows(
        tallies,
        manifest.ledger,
        strategy=manifest.strategy,
        options=manifest.options,
        shuffle=manifest.shuffle,
        sources=_packed_sources(dataset),
        source_mix=[BatchMix(m.sequence_length, m.batch_size, m.source_mix) for m in mixing if len(m.source_mix) > 1],
        stages=written.stages,
        choice=written.choice,
        neighbours=written.neighbours,  # which follow from fields that the stores have
        batch_size=options.batch_size,
    )
    training = None
    if options.parameters is not None and report.metrics is not None:
        training = training_cost(report.metrics, report.ledger.output, parse_amount(options.parameters))
    return MeasuredReport(
        **msgspec.structs.asdict(report),
        path=str(place),
        command=command_again(dataset.place),
        tokenizer=manifest.tokenizer,
        tokenizer_name=tokenizer_named([dataset.place]),
        mixing=mixing,
        training=training,
        sample_rows=_drawn(dataset, tallies),
    )


def _counted(dataset: PackedDataset, options: StatsArguments, engine: Engine) -> tuple[list[Tally], list[Mixed]]:
    """Count the rows of each length, and how well mixed they are."""
    manifest, lengths = dataset.manifest, dataset.lengths()
    tallies, mixing = [], []
    sizes = [bucket.sequence_length for bucket in dataset.buckets]
    tokens = batch_tokens(sizes, manifest.shuffle, options.batch_size)
    with Progress(manifest.ledger.rows, "stats", unit=" rows", quiet=options.quiet) as progress:
        for bucket in dataset.buckets:
            size = bucket.sequence_length
            tally = Tally(lengths, size, manifest.multiple)
            mixed = Mixing(manifest.store_documents, size, max(1, tokens // size))
            count_rows(bucket, tally, mixed, engine, progress.advance)
            tallies.append(tally)
            mixing.append(mixed.result())
    return tallies, mixing


def _drawn(dataset: PackedDataset, tallies: Sequence[Tally]) -> list[SampleRow]:
    """Choose rows to draw, of the length with the most tokens; nothing where segments are not known."""
    if not tallies:
        return []
    counted = zip(dataset.buckets, tallies, strict=True)
    bucket, tally = max(counted, key=lambda pair: pair[1].output)
    return sample_rows(spread_rows(bucket.segments, bucket.rows), tally.lengths)


def _packed_sources(dataset: PackedDataset) -> list[PackedSourceFigures]:
    """Count the packed documents of each store, from the rows if their boundaries are known."""
    manifest, names = dataset.manifest, input_names(dataset.place, dataset.manifest.inputs)
    if dataset.has_segments:
        lengths, trained = dataset.lengths(), manifest.ledger.trained_stored
        return packed_sources(manifest.inputs, manifest.store_documents, lengths, manifest.choice, names, trained)
    reported = read_report(dataset.place, manifest).sources
    return [msgspec.structs.replace(source, name=name) for source, name in zip(reported, names, strict=False)]


def _corpus_report(location: str, tried: Sequence[Candidate], options: StatsArguments, engine: Engine) -> CorpusReport:
    """Report on text files."""
    measured = corpus_lengths(location, options, engine, tokens=bool(tried))
    words = lengths_of(LengthCounts.of(measured.words), "words")
    comparison = None
    lengths = words
    if measured.tokens is not None:
        counts = LengthCounts.of(measured.tokens)
        lengths = lengths_of(counts, "tokens")
        command = f"{_tokenize(location, options)} && packtool pack tokens -o packed"
        comparison = _comparison(measured.tokens, counts, tried, command, options, engine)
    return CorpusReport(
        path=location,
        tokenizer=measured.tokenizer,
        tokenizer_name=None if options.tokenizer is None else str(options.tokenizer),
        counts=measured.counts,
        batch_size=options.batch_size,
        lengths=lengths,
        words=words,
        characters=lengths_of(LengthCounts.of(measured.characters), "characters"),
        comparison=comparison,
    )


def _chosen_of_corpus(
    location: str, tried: Sequence[Candidate], options: StatsArguments, engine: Engine
) -> StoreReport:
    """Report on the documents that are chosen from text files, or listed.

    That needs lengths in tokens, hashes of texts and places in files. A token store has all of these, so one is
    made for the time being, with the name that it has in the advised command.
    """
    check_choice(options)
    with temporary_directory() as folder:
        store = LocalPlace(folder / _STORE)
        how: dict[str, Any] = {}
        for name in (*_TEXT, "workers", "scheduler", "quiet"):
            if getattr(options, name) is not None:
                how[name] = getattr(options, name)
        tokenize(location, store.path, **how)
        report = _store_report([store], tried, options, engine, f"{_tokenize(location, options)} && ")
    return msgspec.structs.replace(report, path=location)


def _tokenize(location: str, options: StatsArguments) -> str:
    """Return the command that would tokenize text files."""
    return shlex.join(["packtool", "tokenize", location, "-o", _STORE, *as_flags(options, _TEXT)])


def _store_report(
    places: Sequence[Place], tried: Sequence[Candidate], options: StatsArguments, engine: Engine, before: str = ""
) -> StoreReport:
    """Report on token stores, or on the documents that are chosen from them, as `pack` takes them.

    Args:
        before: the command that makes the store.
    """
    require_distinct(places)
    corpus = Corpus(places)
    known: Counter[str] = Counter()
    for store in corpus.stores:
        known.update(store.manifest.counts)
    rows = {candidate.options.sequence_length or max(candidate.options.buckets) for candidate in tried}
    chosen = choose(corpus, options, rows.pop() if len(rows) == 1 else None)
    if chosen.passes is not None:
        corpus.choose([passes.documents() for passes in chosen.passes])
        known.update(documents=corpus.documents - known["documents"], tokens=corpus.tokens - known["tokens"])
    lengths = corpus.lengths()
    conversations = _conversations(corpus, options, tried)
    if conversations is not None and options.too_long == "drop":
        tried = _keeping_whole(tried, options)
    counts = LengthCounts.of(lengths)
    stores = [_STORE] if before else list(map(str, places))
    command = before + shlex.join(["packtool", "pack", *stores, "-o", "packed", *as_flags(options, _CHOICE)])
    listed: dict[str, Any] = {}
    if options.longest is not None:
        listed["longest"] = longest(corpus, options.longest)
    if options.most_repeated is not None:
        listed["most_repeated"] = most_repeated(corpus, options.most_repeated)
    return StoreReport(
        path=" ".join(map(str, places)),
        tokenizer=corpus.tokenizer,
        tokenizer_name=tokenizer_named(places),
        dtype=corpus.dtype.str,
        counts=dict(known),
        sources=_stored_sources(corpus, counts),
        batch_size=options.batch_size,
        lengths=lengths_of(counts, "tokens"),
        comparison=_comparison(
            lengths,
            counts,
            tried,
            command,
            options,
            engine,
            conversations,
            _pass_by_pass(lengths, conversations, chosen.passes),
        ),
        **listed,
    )


def _conversations(corpus: Corpus, options: StatsArguments, tried: Sequence[Candidate]) -> npt.NDArray[np.bool_] | None:
    """Mark the documents that are conversations; None if there are none.

    Raises:
        UsageError: `--too-long` for a store without conversations.
    """
    conversations = [store.manifest.conversations for store in corpus.stores]
    if not any(conversations):
        refuse(options, ("too_long",), "no store holds conversations", "leave it out; --max-tokens leaves out texts")
    if not any(conversations) or not tried:
        return None
    return np.repeat(conversations, corpus.store_documents)


def _keeping_whole(tried: Sequence[Candidate], options: StatsArguments) -> list[Candidate]:
    """Leave out strategies that cut documents which fit a row, since `pack` does not do that to conversations.

    Raises:
        UsageError: one of them was named.
    """
    keeping = [name for name, strategy in STRATEGIES.items() if strategy.whole and strategy.keeps_eos]
    for candidate in tried:
        if candidate.strategy.name not in keeping and candidate.strategy.name in _listed(options.compare):
            cuts = "cuts" if candidate.strategy.keeps_eos else "leaves out the EOS of"
            what = f"{candidate.strategy.name} {cuts} documents that would fit a row, and these are conversations"
            remedy = f"give --too-long cut, or strategies that keep documents whole: {', '.join(keeping)}"
            raise UsageError("conversations-cut", what, remedy=remedy, where="--compare")
    return [candidate for candidate in tried if candidate.strategy.name in keeping]


def _pass_by_pass(
    lengths: Ints, conversations: npt.NDArray[np.bool_] | None, passes: Sequence[Passes] | None
) -> PlannedDocuments | None:
    """Return the documents in the order in which `pack` plans them, if some come several times."""
    if passes is None or all(taken.number < 2 for taken in passes):
        return None
    order, ends = by_pass(passes)
    if conversations is not None:
        conversations = conversations[order]
    return PlannedDocuments(lengths[order], ends, conversations)


def _stored_sources(corpus: Corpus, counts: LengthCounts) -> list[StoredSourceFigures]:
    """Count the stores one by one; `counts` has the lengths of all of them."""
    stores, lengths = corpus.stores, corpus.lengths()
    firsts = _firsts(corpus)
    trained: Sequence[int | msgspec.UnsetType] = [msgspec.UNSET] * len(stores)
    if corpus.has_loss:
        trained = corpus.trained()
    ends = offsets_of(np.array(corpus.store_documents, np.int64)).tolist()
    sources = []
    for number, (begin, end) in enumerate(pairwise(ends)):
        its_lengths = lengths[begin:end]
        tokens = int(its_lengths.sum(dtype=np.int64))
        its_counts = counts
        if len(stores) > 1:
            its_counts = LengthCounts.of(its_lengths)
        duplicates = None
        if firsts is not None:
            duplicates = int(np.count_nonzero(~firsts[begin:end]))
        figures = StoredSourceFigures(
            name=stores[number].place.name,
            digest=input_entry(stores[number].place).xxh3_128,
            documents=end - begin,
            document_share=ratio(end - begin, corpus.documents),
            tokens=tokens,
            token_share=ratio(tokens, corpus.tokens),
            lengths=lengths_of(its_counts, "tokens"),
            duplicates=duplicates,
            trained_tokens=trained[number],
        )
        sources.append(figures)
    return sources


def _firsts(corpus: Corpus) -> npt.NDArray[np.bool_] | None:
    """Mark the documents that are the first with their text; None if a store does not know the hashes of texts."""
    if not all(store.has_origins for store in corpus.stores):
        return None
    hashes = [store.origins()["hash"] for store in corpus.stores]
    if corpus.chosen is not None:
        chosen = np.split(corpus.chosen, np.cumsum(corpus.store_documents)[:-1])
        hashes = [of_store[documents] for of_store, documents in zip(hashes, chosen, strict=True)]
    return np.concatenate(first_of_each(hashes))


def _comparison(
    lengths: Ints,
    counts: LengthCounts,
    tried: Sequence[Candidate],
    command: str,
    options: StatsArguments,
    engine: Engine,
    conversations: npt.NDArray[np.bool_] | None = None,
    passes: PlannedDocuments | None = None,
) -> Comparison | None:
    """Compare what each candidate would make of documents, which `command` would pack."""
    if not tried:
        return None
    parameters = None
    if options.parameters is not None:
        parameters = parse_amount(options.parameters)
    with Progress(len(tried), "compare", unit=" plans", quiet=options.quiet) as progress:
        return compare(
            lengths,
            tried,
            counts,
            options.batch_size,
            command=command,
            parameters=parameters,
            conversations=conversations,
            too_long=options.too_long,
            passes=passes,
            exact=options.exact,
            advance=progress.advance,
            engine=engine,
        )


def _candidates(options: StatsArguments) -> list[Candidate]:
    """List every strategy to try, at each row length, with the options given."""
    if options.compare is None:
        return []
    chosen = {name: getattr(options, name) for name in _OF_PLANS}
    asked = {name: value for name, value in chosen.items() if value is not None}
    tried = candidates(_listed(options.compare), _listed(options.sequence_length), asked)
    return [replace(candidate, options=replace(candidate.options, seed=options.seed)) for candidate in tried]


def _listed(values: Any) -> list[Any]:
    return list(dict.fromkeys(values or ()))


def _is_dataset(typed: Typed) -> bool:
    """Return whether a directory is the output of a packtool command, finished or not."""
    if isinstance(typed, Place):
        return True
    if is_remote(as_typed(typed)):
        try:
            return place_of(typed).size(manifests.MANIFEST) is not None
        except UsageError:
            return False  # a pattern, or a store of text files alone
    place = Path(typed)
    arrays = any(any(place.glob(pattern)) for pattern in ("*.npy", "bucket-*/*.npy"))
    return arrays or (place / manifests.MANIFEST).exists() or (place / UNFINISHED).is_dir()


def _require_one(paths: Sequence[Typed], where: str) -> None:
    """Refuse several paths; `where` is the one that is not a token store."""
    if len(paths) != 1:
        raise UsageError(
            "not-a-store",
            "only token stores can be measured together",
            remedy="give token stores alone, or one path",
            where=where,
        )


def _check_page(html: Path) -> None:
    """Refuse a path that can't be written as a page, before anything is measured."""
    if html.is_dir() or not html.absolute().parent.is_dir():
        what = f"{html} can't be written: it is a directory, or lies in one that does not exist"
        raise UsageError("bad-option", what, remedy="give a file in an existing directory", where="--html")
    if html.suffix.lower() not in (".html", ".htm"):
        what = f"{str(html)!r} is not the name of a page, and what lies there would be overwritten"
        raise UsageError("bad-option", what, remedy="give a name that ends in .html", where="--html")
