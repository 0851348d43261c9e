"""Outputs of one-token documents, begun and finished without a command."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from packtool.errors import PacktoolError
from packtool.options.shared import Writing
from packtool.storage.claim import claim
from packtool.storage.files import write_array
from packtool.storage.output import Output
from packtool.storage.schema import StoreManifest, TokenizerInfo, TokenShard

URL = "s3://bucket/set"
"""Of the fixture `staged`."""
MANIFEST = StoreManifest(
    options={},
    inputs=[],
    tokenizer=TokenizerInfo("00" * 32, 2, 1, "<eos>"),
    dtype="<u2",
    counts={"documents": 0, "tokens": 0},
    shards=[],
)


def prepare(
    place: Path | str,
    command: str,
    *,
    key: str,
    inputs: Iterable[Path | str] = (),
    **options: Any,
) -> Output:
    """Claim an output, with the options of `Writing`."""
    return claim(place, command, Writing(**options), key=key, inputs=inputs)


def begin(staged: Path, key: str = "k", **options: bool) -> Output:
    """Begin the output at `URL`, made in a directory of `directory_for`, as `pack` does."""
    return prepare(URL, "pack", key=key, staging=staged.parents[2], **options)


def finish(output: Output, documents: int = 1) -> None:
    """Stage and finish a store of one-token documents, one in each shard."""
    shards = []
    for number in range(documents):
        tokens = write_array(output.staged / f"tokens-{number:05d}.npy", np.array([1], "<u2"))
        offsets = write_array(output.staged / f"offsets-{number:05d}.npy", np.array([0, 1]))
        shards.append(TokenShard(tokens, offsets, number))
    counts = {"documents": documents, "tokens": documents}
    output.finish(msgspec.structs.replace(MANIFEST, shards=shards, counts=counts))


def names(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


STORE = ["manifest.json", "offsets-00000.npy", "run.json", "tokens-00000.npy"]


def code(path: Path, **options: object) -> str:
    with pytest.raises(PacktoolError) as caught:
        prepare(path, "tokenize", **{"key": "k", **options})  # type: ignore[arg-type]
    return caught.value.code
