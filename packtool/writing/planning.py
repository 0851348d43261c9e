"""Plan a corpus: in memory or, where the plans might exceed it, window by window and on disk.

Windows are planned by tasks of their own; their plans are joined on disk, where workers map them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from packtool import packing
from packtool.arrays import IN_MEMORY, Arrays
from packtool.engines import Worker
from packtool.packing import PackOptions, window_ranges
from packtool.packing.plans import RenumberedPlan
from packtool.plan import Ints, Plan
from packtool.selecting.mixture import Passes, by_pass
from packtool.shuffling.permutation import document_order
from packtool.storage.token_store import Corpus
from packtool.writing.memory import Budget
from packtool.writing.sharing import FileArrays, Saved, load, save


@contextmanager
def planned(
    strategy: str,
    corpus: Corpus,
    options: PackOptions,
    budget: Budget,
    work: Path,
    chosen: Sequence[Passes] | None = None,
    epoch: int = 0,
) -> Iterator[list[Plan]]:
    """Plan a corpus: one plan for each row length, as long as the block runs.

    Args:
        budget: plans that might exceed its memory lie on disk, as do those that its engine sends to workers.
        work: directory for what lies on disk.
        chosen: the documents of each store, as often as they are packed; None for all of them once.
        epoch: of the order in which documents are planned, of the seed in `options`; 0 for corpus order.
    """
    documents = corpus.documents if chosen is None else max(corpus.documents, sum(map(len, chosen)))
    with budget.arrays_for(documents, work) as arrays:
        if arrays is not IN_MEMORY:
            corpus.work_in(arrays)
        if chosen is not None:
            corpus.choose([each.documents(arrays) for each in chosen])
        plans = _plans(strategy, corpus.lengths(), chosen or [], options, budget, arrays, epoch)
        if arrays is not IN_MEMORY:
            corpus.locate(np.empty(0, np.int64))  # makes the table that it needs
        yield plans


def _plans(
    strategy: str,
    lengths: Ints,
    chosen: Sequence[Passes],
    options: PackOptions,
    budget: Budget,
    arrays: Arrays,
    epoch: int,
) -> list[Plan]:
    """Plan documents; each pass over them apart, so that no row holds a document twice."""
    windowed, once = packing.strategy(strategy).windowed, all(each.number < 2 for each in chosen)
    if not epoch and (not windowed or once):
        return _in_windows(strategy, lengths, [], options, budget, arrays)
    order: Ints | int
    order, ends = (len(lengths), []) if once else by_pass(chosen, arrays)
    if epoch:
        order = document_order(order, seed=options.seed, epoch=epoch, ends=ends, arrays=arrays)
    assert not isinstance(order, int)
    ordered = arrays.filled(len(order), lengths.dtype, lambda a, b: lengths.take(order[a:b]))
    return [RenumberedPlan(plan, order) for plan in _in_windows(strategy, ordered, ends, options, budget, arrays)]


def _in_windows(
    strategy: str, lengths: Ints, ends: Sequence[int], options: PackOptions, budget: Budget, arrays: Arrays
) -> list[Plan]:
    """Plan documents window by window: where arrays lie in files, each window in a process of its own."""
    windows = []
    if isinstance(arrays, FileArrays) and packing.strategy(strategy).windowed:
        windows = window_ranges(lengths, options.window_tokens, ends)
    if len(windows) < 2 or not isinstance(arrays, FileArrays):
        return packing.plan(strategy, lengths, options, arrays, ends)
    scratch = arrays.directory
    (scratch / "planner").mkdir()
    task = save(partial(_plan_window, strategy, lengths, options, scratch), scratch / "planner")
    saved = dict(budget.engine.processes.run(task, windows, shared=task.file))
    parts = [(first, load(saved[number])) for number, (first, _) in enumerate(windows)]
    return packing.join_windows(parts, lengths, arrays)


def _plan_window(
    strategy: str, lengths: Ints, options: PackOptions, directory: Path, window: tuple[int, int], worker: Worker
) -> Saved[None, None]:
    """Plan the documents ``first:last`` of a window, in any process; save the plans below a directory."""
    first, last = window
    plans = packing.plan_window(strategy, lengths[first:last], options, first)
    return save(plans, Path(tempfile.mkdtemp(prefix=f"window-{first}.", dir=directory)))
