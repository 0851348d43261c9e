"""Plan a corpus: in memory or, where the plans might exceed it, window by window and on disk.

Windows are planned by tasks of their own; their plans are joined on disk, where workers map them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path

import numpy as np

from packtool.engines import Engine, Worker
from packtool.engines.sending import Saved, load, save
from packtool.formats.token_store import Corpus
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.document_loss import DocumentLoss
from packtool.planning.packing import PackOptions, Strategy, plan_corpus
from packtool.planning.packing.plans import RenumberedPlan, RowsPlan
from packtool.planning.packing.windows import Over, Window
from packtool.planning.plan import I64, Ints, Plan
from packtool.planning.selecting.mixture import Passes, by_pass, by_pass_in_order
from packtool.planning.shuffling.permutation import document_order
from packtool.rows.gather import LossGatherer
from packtool.writing.array_files import FileArrays
from packtool.writing.memory import Budget


@contextmanager
def planned(
    strategy: Strategy,
    corpus: Corpus,
    options: PackOptions,
    budget: Budget,
    work: Path,
    chosen: Sequence[Passes] | None = None,
    epoch: int = 0,
    stored_order: I64 | None = None,
    *,
    cut: bool = False,
    most: int | None = None,
) -> Iterator[list[Plan]]:
    """Plan a corpus: one plan for each row length, as long as the block runs.

    Args:
        budget: plans that might exceed its memory lie on disk; so do plans that its engine sends to workers.
        work: directory for files of plans.
        chosen: the passes of each store; None if every document is packed once.
        epoch: of the order in which documents are planned, by the seed in `options`; 0 for `stored_order`, or that of
            the corpus.
        stored_order: the packed documents of all stores, by their stored numbers, in an order in which they are planned
            in place of corpus order.
        cut: conversations may be cut; pieces of them in which nothing trains are left out.
        most: tokens of a document that are planned, its first; None for all.
    """
    documents = corpus.documents
    if chosen is not None:
        documents = max(documents, sum(map(len, chosen)))
    with budget.arrays_for(documents, work) as arrays:
        if arrays is not IN_MEMORY:
            corpus.work_in(arrays)
        if chosen is not None:
            corpus.choose([passes.documents(arrays) for passes in chosen])
        lengths = corpus.lengths()
        by_pass_too = strategy.windowed or epoch > 0
        order, ends = _order(chosen or [], stored_order, arrays, by_pass_too=by_pass_too)
        if epoch:
            numbers = len(lengths) if order is None else order
            order = document_order(numbers, seed=options.seed, epoch=epoch, ends=ends, arrays=arrays)
        loss = None
        if cut and corpus.has_loss:
            loss = replace(loss_of(corpus), numbers=order)
        over: Over = map
        if isinstance(arrays, FileArrays):
            over = partial(_over, arrays, budget.engine.processes)
        ordered = _in_planned_order(lengths, order, arrays)
        plans: list[Plan] = plan_corpus(strategy, ordered, options, arrays, ends, over, loss, most)
        if order is not None:
            plans = [RenumberedPlan(plan, order) for plan in plans]
        if arrays is not IN_MEMORY:
            corpus.locate(np.empty(0, np.int64))  # makes the table that it needs
        yield plans


def loss_of(corpus: Corpus) -> DocumentLoss:
    """Return the loss of the documents of a corpus."""
    read = LossGatherer.of(corpus, longest=1)  # nothing is filled with padding
    return DocumentLoss(read, corpus.store_documents, list(map(attrgetter("masked"), corpus.stores)))


def _order(
    chosen: Sequence[Passes], stored_order: I64 | None, arrays: Arrays, *, by_pass_too: bool
) -> tuple[Ints | None, list[int]]:
    """Return the documents in the order in which they are planned, None for that of the corpus, and the end of each
    pass: strategies with windows plan each pass apart, so that no row of theirs holds a document twice.

    Args:
        by_pass_too: passes in corpus order are planned one after the other, too, not store by store.
    """
    if chosen and stored_order is not None:
        return by_pass_in_order(chosen, stored_order, arrays)
    if by_pass_too and any(passes.number > 1 for passes in chosen):
        return by_pass(chosen, arrays)
    return stored_order, []


def _in_planned_order(lengths: Ints, order: Ints | None, arrays: Arrays) -> Ints:
    """Return the lengths of documents in the order in which they are planned; None for that of the corpus."""
    if order is None:
        return lengths
    return arrays.filled(len(order), lengths.dtype, lambda a, b: lengths.take(order[a:b]))


def _over(
    arrays: FileArrays, engine: Engine, plan: Callable[[Window], list[RowsPlan]], windows: Sequence[Window]
) -> list[list[RowsPlan]]:
    """Plan each window in a process of its own; the plans lie next to the arrays."""
    scratch = arrays.directory
    (scratch / "planner").mkdir()
    task = save(partial(_plan_and_save, plan, scratch), scratch / "planner")  # plans may hold arrays that lie there
    saved = dict(engine.run(task, windows))
    return [load(saved[number]) for number in range(len(windows))]


def _plan_and_save(
    plan: Callable[[Window], list[RowsPlan]], directory: Path, window: Window, worker: Worker
) -> Saved[None, None]:
    """Plan a window, in any process; save the plans below a directory."""
    return save(plan(window), Path(tempfile.mkdtemp(prefix=f"window-{window[0]}.", dir=directory)))
