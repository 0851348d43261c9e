"""Outputs of one-token documents, begun and finished without a command."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from packtool.formats.schema import StoreManifest, TokenizerInfo, TokenShard
from packtool.options.shared import Writing
from packtool.outputs.claim import open_output
from packtool.outputs.output import Output
from packtool.outputs.pieces import Pieces
from packtool.places.typed import place_of

URL = "s3://bucket/set"
"""In the fixture `bucket`."""
MANIFEST = StoreManifest(
    options={},
    inputs=[],
    tokenizer=TokenizerInfo("00" * 32, 2, 1, "<eos>"),
    dtype="<u2",
    counts={"documents": 0, "tokens": 0},
    shards=[],
)
STORE = ["manifest.json", "offsets-00000.npy", "run.json", "tokens-00000.npy"]


def begin(
    place: Path | str, key: str = "k", command: str = "tokenize", inputs: Iterable[Path | str] = (), **options: Any
) -> Output:
    """Claim an output, with the options of `Writing`."""
    return open_output(place_of(place), command, Writing(**options), key=key, inputs=inputs)


def shard(output: Output, number: int, value: int = 1) -> TokenShard:
    """Put a shard of a one-token document where it belongs."""
    tokens = output.array(f"tokens-{number:05d}.npy", np.array([value], "<u2"))
    return TokenShard(tokens, output.array(f"offsets-{number:05d}.npy", np.array([0, 1])), number)


def pieces_of(output: Output) -> Pieces[TokenShard]:
    return Pieces(output, "shard", TokenShard, lambda done: done.files)


def piece(output: Output, number: int, value: int = 1) -> TokenShard:
    """A shard and its record."""
    done = shard(output, number, value)
    pieces_of(output).record(number, done)
    return done


def manifest_of(*shards: TokenShard) -> StoreManifest:
    counts = {"documents": len(shards), "tokens": len(shards)}
    return msgspec.structs.replace(MANIFEST, shards=list(shards), counts=counts)


def finish(output: Output, documents: int = 1) -> None:
    """Make and finish a store of one-token documents, one in each shard."""
    output.finish(manifest_of(*(shard(output, number) for number in range(documents))))


def names(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
