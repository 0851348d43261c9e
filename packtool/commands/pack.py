"""`pack`: token stores to a packed dataset. Lengths → plan → permutation → rows → tokens, which move once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from packtool import packing
from packtool.clock import Clock
from packtool.commands.dataset_job import DatasetJob, DatasetResult
from packtool.commands.pack_options import DEFAULT_SEED, DEFAULT_SHARD_TOKENS, check_options, describe, padding_id
from packtool.commands.write_corpus import write_corpus
from packtool.executor import available_cpus
from packtool.plan import Plan
from packtool.shuffling.atom import atom_shuffles
from packtool.sizes import machine_memory, parse_bytes
from packtool.storage.manifest import Shuffle
from packtool.storage.token_store import Corpus
from packtool.writing.memory import Budget

log = logging.getLogger(__name__)


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
) -> DatasetResult:
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
    job = DatasetJob(
        command="pack",
        inputs=[Path(path) for path in ([stores] if isinstance(stores, str | Path) else stores)],
        output=Path(output),
        budget=Budget(
            memory=machine_memory() // 2 if memory is None else parse_bytes(memory),
            workers=workers or available_cpus(),
        ),
        overwrite=overwrite,
        resume=resume,
        dry_run=dry_run,
        quiet=quiet,
        clock=clock,
    )
    corpus = Corpus(job.inputs)
    described = describe(chosen, options, padding_id(pad_token, corpus.tokenizer), shard_tokens, segments)
    record = Shuffle(method="atom", atom_size=options.atom_size, seed=seed, epoch=0) if shuffle else None
    place = job.begin(
        strategy, described, record, figures=lambda: _figures(corpus, packing.plan(strategy, corpus.lengths(), options))
    )
    if isinstance(place, DatasetResult):
        return place
    plans = packing.plan(strategy, corpus.lengths(), options)
    facts: dict[str, Any] = {"planned": clock.seconds()}
    log.info("%s: %d documents planned in %.1f s", strategy, corpus.documents, facts["planned"]["wall"])
    if proven := [plan.least_rows for plan in plans if plan.least_rows is not None]:
        facts["least_rows"] = sum(proven)
    return write_corpus(
        job,
        place,
        corpus,
        plans,
        atom_shuffles(plans, seed=seed) if shuffle else [None] * len(plans),
        strategy=strategy,
        multi_bucket=chosen.multi_bucket,
        options=described,
        record=record,
        facts=facts,
    )


def _figures(corpus: Corpus, plans: Sequence[Plan]) -> dict[str, int]:
    """What would be written, for a dry run."""
    tokens = sum(plan.rows * plan.sequence_length for plan in plans)
    return {
        "documents": corpus.documents,
        "rows": sum(plan.rows for plan in plans),
        "tokens": tokens,
        "bytes": tokens * corpus.dtype.itemsize,
    }
