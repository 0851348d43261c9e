"""`pack`: token stores to a packed dataset. Lengths → plan → permutation → rows → tokens, which move once."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from packtool import packing
from packtool.assemble import Fetch, RowWriter, bucket_entry
from packtool.clock import Clock
from packtool.errors import UsageError
from packtool.gather import Gatherer
from packtool.layout import Layout
from packtool.ledger import balance
from packtool.metrics import Tally
from packtool.packing import PackOptions
from packtool.packing.options import check
from packtool.plan import Plan
from packtool.preview import Preview
from packtool.progress import Progress
from packtool.report.document import build
from packtool.shuffling.arrange import arrange
from packtool.storage import manifest as manifests
from packtool.storage.files import write_array
from packtool.storage.manifest import Bucket, Options, PackedManifest, Shuffle
from packtool.storage.output import key_of, look, prepare
from packtool.storage.packed import LENGTHS, bucket_directory
from packtool.storage.token_store import Corpus

log = logging.getLogger(__name__)

DEFAULT_SEED = 42
DEFAULT_SHARD_TOKENS = 1 << 28


@dataclass(frozen=True)
class PackResult:
    """What `pack` wrote.

    Attributes:
        path: the packed dataset.
        report: the contents of its `report.json`; empty after a dry run.
        run: what `run.json` holds: workers, wall and CPU seconds of planning and in total; empty after a dry run.
        preview: what would be written, after a dry run.
    """

    path: Path
    report: dict[str, Any]
    run: dict[str, Any]
    preview: Preview | None = None


def pack(
    stores: Sequence[Path | str] | Path | str,
    output: Path | str,
    *,
    strategy: str,
    sequence_length: int | None = None,
    atom_size: int | None = None,
    seed: int = DEFAULT_SEED,
    shuffle: bool = True,
    remainder: str = "pad",
    pad_token: str | int | None = None,
    buckets: Sequence[int] | None = None,
    padding_threshold: str | float | Fraction | None = None,
    max_repetition: str | float | Fraction | None = None,
    extra_capacity: int | None = None,
    min_bucket: int | None = None,
    window_tokens: int | None = None,
    optimize: bool = False,
    shard_tokens: int = DEFAULT_SHARD_TOKENS,
    segments: bool = True,
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: bool = False,
    quiet: bool = True,
) -> PackResult:
    """Pack token stores into rows.

    Args:
        stores: one or more token stores; their documents are numbered through in the order given.
        output: directory to write.
        strategy: a name from `packtool.packing.STRATEGIES`; the options below it are explained there.
        seed: of the permutation of atoms, from 0.
        shuffle: False keeps corpus order; `packtool.shuffle` can make any order of it later.
        pad_token: id, or text of an added token of the tokenizer; default the EOS id.
        shard_tokens: a shard closes before it would exceed this many tokens.
        segments: False leaves the segment table out.
        workers: threads; default one for each CPU. The output does not depend on it.
        overwrite: replace what packtool left in the output.
        resume: keep what an earlier run with the same options and inputs finished; do again what it did not finish.
        dry_run: plan, and write nothing.
        quiet: no progress bar.

    Raises:
        UsageError: options that make no sense, or do not fit together.
        DataError: a store is missing, unfinished or damaged, or the disk is full.
    """
    clock = Clock()
    options = _options(
        sequence_length=sequence_length,
        atom_size=atom_size,
        remainder=remainder,
        buckets=None if buckets is None else tuple(buckets),
        padding_threshold=_share(padding_threshold, "--padding-threshold"),
        max_repetition=_share(max_repetition, "--max-repetition"),
        extra_capacity=extra_capacity,
        min_bucket=min_bucket,
        window_tokens=window_tokens,
        optimize=optimize,
    )
    chosen = packing.strategy(strategy)
    check(chosen, options)
    _require(0 <= seed < 1 << 64, seed, "give a number from 0 to 2^64 - 1", "--seed")
    _require(shard_tokens >= 1, shard_tokens, "give 1 or more", "--shard-tokens")
    paths = [Path(p) for p in ([stores] if isinstance(stores, str | Path) else stores)]
    corpus = Corpus(paths)
    pad_id = _pad_id(pad_token, corpus)
    order = Shuffle(method="atom", atom_size=options.atom_size, seed=seed, epoch=0) if shuffle else None
    described = _described(options, pad_id, shard_tokens, segments)
    inputs = [manifests.input_entry(path) for path in paths]
    key = key_of(strategy, described, order, inputs)
    if dry_run:
        return _preview(Path(output), key, corpus, packing.plan(strategy, corpus.lengths(), options))
    place = prepare(output, "pack", key=key, inputs=paths, overwrite=overwrite, resume=resume)
    if place.finished:
        return PackResult(place.path, manifests.read_report(place.path), manifests.read_run(place.path))

    lengths = corpus.lengths()
    plans = packing.plan(strategy, lengths, options)
    planned = clock.seconds()
    log.info("%s: %d documents planned in %.1f s", strategy, len(lengths), planned["wall"])
    threads = workers or os.cpu_count() or 1
    entries: list[Bucket] = []
    tallies: list[Tally] = []
    with Progress(sum(p.rows * p.sequence_length for p in plans) * corpus.dtype.itemsize, "pack", quiet=quiet) as bar:
        for layout in arrange(plans, seed if shuffle else None):
            directory = bucket_directory(layout.plan.sequence_length) if chosen.multi_bucket else ""
            writer = RowWriter(
                place.path / directory, corpus.dtype, shard_tokens, lengths, segments, threads, bar.advance
            )
            shards, tally = writer.write(layout, _fetch(corpus, layout, pad_id))
            entries.append(bucket_entry(directory, layout.plan, shards))
            tallies.extend([tally] if tally else [])

    ledger = balance(corpus.tokens, corpus.documents, plans, [tally.accounts() for tally in tallies])
    report = build(strategy=strategy, options=described, shuffle=order, ledger=ledger, tallies=tallies)
    run = {"workers": threads, "planned": planned, "written": clock.seconds()}
    place.finish(
        PackedManifest(
            strategy=strategy,
            options=described,
            shuffle=order,
            inputs=inputs,
            store_documents=[store.documents for store in corpus.stores],
            tokenizer=corpus.tokenizer,
            dtype=corpus.dtype.str,
            pad_id=pad_id,
            documents=corpus.documents,
            ledger=ledger,
            lengths=write_array(place.path / LENGTHS, lengths) if segments else None,
            report=manifests.write_report(place.path, report),
            buckets=entries,
        ),
        run,
    )
    return PackResult(place.path, report, run)


def _preview(output: Path, key: str, corpus: Corpus, plans: Sequence[Plan]) -> PackResult:
    tokens = sum(plan.rows * plan.sequence_length for plan in plans)
    figures = {
        "documents": corpus.documents,
        "rows": sum(plan.rows for plan in plans),
        "tokens": tokens,
        "bytes": tokens * corpus.dtype.itemsize,
    }
    return PackResult(output, {}, {}, Preview("pack", output, look(output, "pack", key), figures))


def _options(**given: Any) -> PackOptions:
    """The options that were given; the strategies know the defaults of the others."""
    return PackOptions(**{name: value for name, value in given.items() if value is not None})


def _share(value: str | float | Fraction | None, option: str) -> Fraction | None:
    """An exact share: 0.3 is three tenths, not the binary number next to it."""
    try:
        return None if value is None else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            "bad-option", f"{value!r} is not a share", remedy="give a number from 0 to 1", where=option
        ) from None


def _require(holds: bool, value: object, remedy: str, option: str) -> None:
    if not holds:
        raise UsageError("bad-option", f"{value} is out of range", remedy=remedy, where=option)


def _pad_id(token: str | int | None, corpus: Corpus) -> int:
    """The id of the padding token: EOS unless one is given by id or by the text of an added token."""
    tokenizer = corpus.tokenizer
    if token is None:
        return tokenizer.eos_id
    if isinstance(token, str) and token in tokenizer.added_tokens:
        return tokenizer.added_tokens[token]
    if str(token).isdecimal():
        number = int(token)
        _require(number < tokenizer.vocab_size, number, f"give an id below {tokenizer.vocab_size}", "--pad-token")
        return number
    known = ", ".join(tokenizer.added_tokens) or "none"
    raise UsageError(
        "unknown-token",
        f"{token!r} is not an added token of the tokenizer (it has: {known})",
        remedy="give one of them, or an id",
        where="--pad-token",
    )


def _described(options: PackOptions, pad_id: int, shard_tokens: int, segments: bool) -> Options:
    """The options that the output depends on, as the manifest has them: those that differ from their defaults."""
    described: Options = {}
    for field in fields(options):
        value = getattr(options, field.name)
        if value != field.default:
            described[field.name] = str(value) if isinstance(value, Fraction) else value
    return {**described, "pad_id": pad_id, "shard_tokens": shard_tokens, "segments": segments}


def _fetch(corpus: Corpus, layout: Layout, pad_id: int) -> Fetch:
    gather = Gatherer(
        corpus.shards,
        corpus.locate,
        dtype=corpus.dtype,
        pad_id=pad_id,
        eos_id=corpus.tokenizer.eos_id,
        longest_fill=layout.plan.sequence_length,
    )
    return lambda first, last, rows: gather(layout.segments(first, last) if rows is None else rows)
