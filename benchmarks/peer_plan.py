"""Runs in a peer's environment: plan a corpus with its own best-fit-decreasing packing.

    PYTHON -m benchmarks.peer_plan trl|olmo LENGTHS.npy SEQUENCE_LENGTH BINS.npz

Prints the CPU seconds of the planning; writes the length and number of each piece in bin order, and bin offsets.
"""

from __future__ import annotations

import sys
import time

import numpy as np


def trl(lengths: np.ndarray, sequence_length: int) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """`_pack_bfd`, without the seconds in which it moves tokens.

    Tokens are the numbers of their documents where these are few, so that the bins can be compared; else single bytes.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from trl.data_utils import _pack_bfd

    moving = 0.0
    take = pc.take

    def timed_take(*arguments: object) -> object:
        nonlocal moving
        began = time.process_time()
        taken = take(*arguments)
        moving += time.process_time() - began
        return taken

    ends = np.concatenate([[0], np.cumsum(lengths)])
    small = ends[-1] < 1 << 28
    tokens = np.repeat(np.arange(len(lengths)), lengths) if small else np.zeros(ends[-1], np.int8)
    table = pa.table({"tokens": pa.LargeListArray.from_arrays(pa.array(ends), pa.array(tokens))})
    pc.take = timed_take
    began = time.process_time()
    packed = _pack_bfd(table, sequence_length, on_seq_length_overflow="split")
    seconds = time.process_time() - began - moving
    pieces = packed["seq_lengths"].chunk(0)
    size = pieces.values.to_numpy()
    documents = np.full(len(size), -1)
    if small:
        documents = packed["tokens"].chunk(0).values.to_numpy()[np.cumsum(size) - size]
    return seconds, size, documents, pieces.offsets.to_numpy()


def olmo(lengths: np.ndarray, sequence_length: int) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """`InstancePacker` on the documents, cut to chunks of at most a row."""
    from olmo_core.data.utils import InstancePacker

    rows, tails = np.divmod(lengths, sequence_length)
    pieces = np.full(int((rows + (tails > 0)).sum()), sequence_length)
    pieces[np.cumsum(rows + (tails > 0))[tails > 0] - 1] = tails[tails > 0]
    ends = np.cumsum(pieces)
    chunks = np.stack([ends - pieces, ends], axis=1)
    packer = InstancePacker(sequence_length)
    began = time.process_time()
    bins, ordered, _ = packer.pack_documents(chunks)
    seconds = time.process_time() - began
    numbers = np.concatenate(bins)
    size = (ordered[:, 1] - ordered[:, 0])[numbers]
    return seconds, size, numbers, np.concatenate([[0], np.cumsum([len(bin) for bin in bins])])


if __name__ == "__main__":
    peer, source, rows, target = sys.argv[1:]
    seconds, size, document, offsets = {"trl": trl, "olmo": olmo}[peer](np.load(source).astype(np.int64), int(rows))
    np.savez(target, size=size, document=document, offsets=offsets)
    print(seconds)
