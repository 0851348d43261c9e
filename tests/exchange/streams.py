"""The tokens of a store, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from packtool.storage.token_store import TokenStore


def stream(store: Path) -> np.ndarray[Any, Any]:
    return np.concatenate([np.empty(0, np.int64), *(shard.astype(np.int64) for shard in TokenStore(store).shards)])
