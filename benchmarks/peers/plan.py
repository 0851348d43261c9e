"""Runs in a peer's environment: plan documents of the given lengths with its own packing, no token moved.

    PYTHON -m benchmarks.peers.plan PEER LENGTHS.npy SEQUENCE_LENGTH [BINS.npz]

Documents longer than a row are cut to chunks of a row beforehand, where a peer does not do that itself. Prints the
seconds of planning, the rows, and the tokens that lie in them; writes length and number of each piece in the order of
bins, and the bins' offsets, if asked.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

Bins = tuple[float, float, Any, Any, Any]
"""Wall and CPU seconds; length and number of each piece in the order of bins; where each bin begins."""


class Clock:
    """Wall and CPU seconds since it was made, less those that were `lost` on what is not planning."""

    def __init__(self) -> None:
        self.lost = [0.0, 0.0]
        self.began = self.now()

    @staticmethod
    def now() -> list[float]:
        return [time.perf_counter(), time.process_time()]

    def read(self) -> tuple[float, float]:
        wall, cpu = (now - began - lost for now, began, lost in zip(self.now(), self.began, self.lost, strict=True))
        return wall, cpu


def trl(lengths: Any, sequence_length: int) -> Bins:
    """`_pack_bfd`, without the seconds in which it moves tokens.

    Tokens are the numbers of their documents where these are few, so that the bins can be compared; else single bytes.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from trl.data_utils import _pack_bfd

    take = pc.take

    def timed_take(*arguments: object) -> object:
        began = clock.now()
        taken = take(*arguments)
        clock.lost = [lost + now - then for lost, now, then in zip(clock.lost, clock.now(), began, strict=True)]
        return taken

    ends = np.concatenate([[0], np.cumsum(lengths)])
    small = ends[-1] < 1 << 28
    tokens = np.repeat(np.arange(len(lengths)), lengths) if small else np.zeros(ends[-1], np.int8)
    table = pa.table({"tokens": pa.LargeListArray.from_arrays(pa.array(ends), pa.array(tokens))})
    pc.take = timed_take
    clock = Clock()
    packed = _pack_bfd(table, sequence_length, on_seq_length_overflow="split")
    seconds = clock.read()
    pieces = packed["seq_lengths"].chunk(0)
    size = pieces.values.to_numpy()
    documents = np.full(len(size), -1)
    if small:
        documents = packed["tokens"].chunk(0).values.to_numpy()[np.cumsum(size) - size]
    return *seconds, size, documents, pieces.offsets.to_numpy()


def _pieces(lengths: Any, sequence_length: int) -> Any:
    """Lengths of the chunks of at most a row that documents are cut to, document by document."""
    rows, tails = np.divmod(lengths, sequence_length)
    counts = rows + (tails > 0)
    pieces = np.full(int(counts.sum()), sequence_length)
    pieces[np.cumsum(counts)[tails > 0] - 1] = tails[tails > 0]
    return pieces


def _bins(seconds: tuple[float, float], pieces: Any, bins: Any) -> Bins:
    numbers = np.concatenate([np.asarray(each) for each in bins])
    return *seconds, pieces[numbers], numbers, np.concatenate([[0], np.cumsum([len(each) for each in bins])])


def olmo(lengths: Any, sequence_length: int) -> Bins:
    """`InstancePacker`: best fit decreasing."""
    from olmo_core.data.utils import InstancePacker

    ends = np.cumsum(_pieces(lengths, sequence_length))
    chunks = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1)
    clock = Clock()
    bins, ordered, _ = InstancePacker(sequence_length).pack_documents(chunks)
    return _bins(clock.read(), ordered[:, 1] - ordered[:, 0], bins)


def axolotl(lengths: Any, sequence_length: int) -> Bins:
    """`pack_parallel` in one process, as its sampler calls it: first fit in groups of 100,000."""
    from axolotl.utils.samplers.multipack import pack_parallel

    pieces = _pieces(lengths, sequence_length)
    pack_parallel(pieces[:10], sequence_length, 10, 10, num_processes=1)  # compiles
    clock = Clock()
    bins = pack_parallel(pieces, sequence_length, 100_000, 200, num_processes=1, safe_mode=False)
    return _bins(clock.read(), pieces, bins)


def nemo(lengths: Any, sequence_length: int) -> Bins:
    """`first_fit_decreasing`: it knows lengths alone, which it keeps in the bins."""
    from nemo.utils.sequence_packing_utils import first_fit_decreasing

    pieces = _pieces(lengths, sequence_length)
    clock = Clock()
    bins = first_fit_decreasing(pieces.tolist(), sequence_length)
    seconds = clock.read()
    size = np.concatenate([np.asarray(each) for each in bins])
    return *seconds, size, np.full(len(size), -1), np.concatenate([[0], np.cumsum([len(each) for each in bins])])


def seqpacker(lengths: Any, sequence_length: int) -> Bins:
    """`pack_sequences` with its default strategy."""
    from seqpacker import pack_sequences

    pieces = _pieces(lengths, sequence_length)
    clock = Clock()
    bins = pack_sequences(pieces, capacity=sequence_length).bins
    return _bins(clock.read(), pieces, bins)


def main(peer: str, source: str, rows: str, target: str = "") -> None:
    lengths = np.load(source).astype(np.int64)
    wall, cpu, size, document, offsets = globals()[peer](lengths, int(rows))
    if target:
        np.savez(target, size=size, document=document, offsets=offsets)
    assert np.add.reduceat(size, offsets[:-1]).max() <= int(rows)
    lost = int(lengths.sum() - size.sum())
    print(json.dumps({"plan_wall": wall, "plan_cpu": cpu, "rows": len(offsets) - 1, "lost_tokens": lost}))


if __name__ == "__main__":
    main(*sys.argv[1:])
