"""`pack`: token stores to a packed dataset. Lengths → plan → permutation → rows → tokens, which move once."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from packtool import packing
from packtool.clock import Clock
from packtool.commands.pack_options import DEFAULT_SEED, DEFAULT_SHARD_TOKENS, check_options, describe, padding_id
from packtool.commands.preview import Preview
from packtool.metrics import Tally
from packtool.metrics.ledger import balance
from packtool.plan import Plan
from packtool.progress import Progress
from packtool.report.packed import read_report, report_of_rows
from packtool.report.schema import PackedReport
from packtool.shuffling.atom import atom_shuffles
from packtool.sizes import machine_memory, parse_bytes
from packtool.storage import manifest as manifests
from packtool.storage.files import write_array
from packtool.storage.manifest import Bucket, PackedManifest, Shuffle
from packtool.storage.output import key_of, look, prepare
from packtool.storage.packed import LENGTHS, bucket_directory
from packtool.storage.token_store import Corpus
from packtool.writing.assemble import RowWriter, bucket_entry, moves, write_shuffled
from packtool.writing.partition import Budget
from packtool.writing.sources import corpus_source

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PackResult:
    """What `pack` wrote.

    Attributes:
        path: the packed dataset.
        report: the contents of its `report.json`; None after a dry run.
        run: what `run.json` holds: workers, wall and CPU seconds of planning and in total; empty after a dry run.
        preview: what would be written, after a dry run.
        kept: it was finished before, and nothing was done.
    """

    path: Path
    report: PackedReport | None
    run: dict[str, Any]
    preview: Preview | None = None
    kept: bool = False


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
    memory: str | int | None = None,
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
        memory: memory for tokens, in bytes or such as ``1GiB``; default half of the machine's. Up to it, tokens move
            once, straight from the memory-mapped stores; beyond it twice, each time in sequence.
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
    chosen, options = check_options(
        strategy=strategy,
        seed=seed,
        shard_tokens=shard_tokens,
        sequence_length=sequence_length,
        atom_size=atom_size,
        remainder=remainder,
        buckets=buckets,
        padding_threshold=padding_threshold,
        max_repetition=max_repetition,
        extra_capacity=extra_capacity,
        min_bucket=min_bucket,
        window_tokens=window_tokens,
        optimize=optimize,
    )
    most = machine_memory() // 2 if memory is None else parse_bytes(memory)
    paths = [Path(p) for p in ([stores] if isinstance(stores, str | Path) else stores)]
    corpus = Corpus(paths)
    pad_id = padding_id(pad_token, corpus.tokenizer)
    order = Shuffle(method="atom", atom_size=options.atom_size, seed=seed, epoch=0) if shuffle else None
    described = describe(chosen, options, pad_id, shard_tokens, segments)
    inputs = [manifests.input_entry(path) for path in paths]
    key = key_of(strategy, described, order, inputs)
    if dry_run:
        return _preview(Path(output), key, corpus, packing.plan(strategy, corpus.lengths(), options))
    place = prepare(output, "pack", key=key, inputs=paths, overwrite=overwrite, resume=resume)
    if place.finished:
        return PackResult(place.path, read_report(place.path), manifests.read_run(place.path), kept=True)

    lengths = corpus.lengths()
    plans = packing.plan(strategy, lengths, options)
    planned = clock.seconds()
    log.info("%s: %d documents planned in %.1f s", strategy, len(lengths), planned["wall"])
    threads = workers or os.cpu_count() or 1
    entries: list[Bucket] = []
    tallies: list[Tally] = []
    budget = Budget(most, threads)
    sources = [corpus_source(corpus, plan, pad_id) for plan in plans]
    shuffles = atom_shuffles(plans, seed=seed) if shuffle else [None] * len(plans)
    work = sum(each.bytes_written * moves(each, how, budget) for each, how in zip(sources, shuffles, strict=True))
    with Progress(work, "pack", quiet=quiet) as bar:
        for source, how in zip(sources, shuffles, strict=True):
            plan = source.plan
            directory = bucket_directory(plan.sequence_length) if chosen.multi_bucket else ""
            writer = RowWriter(
                directory=place.path / directory,
                dtype=corpus.dtype,
                shard_tokens=shard_tokens,
                lengths=lengths,
                with_segments=segments,
                workers=threads,
                progress=bar.advance,
                notes=place.work / "shards" / directory,
            )
            scratch = place.work / "parts" / directory
            shards, tally = write_shuffled(writer, source, how, budget=budget, scratch=scratch)
            entries.append(bucket_entry(directory, plan, shards))
            tallies.extend([tally] if tally else [])

    ledger = balance(corpus.tokens, corpus.documents, plans, [tally.accounts() for tally in tallies])
    report = report_of_rows(strategy=strategy, options=described, shuffle=order, ledger=ledger, tallies=tallies)
    run: dict[str, Any] = {"workers": threads, "planned": planned, "written": clock.seconds()}
    if proven := [plan.least_rows for plan in plans if plan.least_rows is not None]:
        run["least_rows"] = sum(proven)
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
    return PackResult(output, None, {}, Preview("pack", output, look(output, "pack", key), figures))
