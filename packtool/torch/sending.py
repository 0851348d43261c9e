"""Send a batch from a worker to the training process.

PyTorch sends each tensor through shared memory of its own, which takes a handshake between the two processes. A batch
is many small tensors, so that would cost more than making them. Here it goes through the pipe as one message, in the
narrowest integers that hold it. It becomes tensors of the usual types where it is unpacked: in the training process,
or in its thread that pins memory.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from packtool.reading.batch import DTYPES


class Parcel(Mapping[str, Any]):
    """A batch in a worker: a mapping of fields to tensors, like that which it becomes when it is sent.

    Args:
        fields: of the batch, narrow.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Any:
        return _tensor(name, self._fields[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __reduce__(self) -> tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]:
        return tensors, (self._fields,)


def end_with_parent() -> None:
    """End this worker within a second or two of the training process, however that ended.

    PyTorch's own watchdog lets a worker return, but a worker waits for what it has sent to be read. Nobody reads a
    batch in a pipe whose other end is gone, or is kept open by other workers.
    """
    parent, number = multiprocessing.parent_process(), os.getppid()

    def wait() -> None:
        while parent is not None and parent.is_alive() and os.getppid() == number:
            parent.join(1)
        os._exit(1)

    if parent is not None:
        threading.Thread(target=wait, name="end with parent", daemon=True).start()


def tensors(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a batch as tensors of their usual types."""
    return {name: _tensor(name, value) for name, value in fields.items()}


def _tensor(name: str, value: Any) -> Any:
    return torch.from_numpy(value.astype(DTYPES[name], copy=False)) if isinstance(value, np.ndarray) else value
