"""Token stores made on the spot: tokens tell which document they belong to, and where."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from packtool.formats import manifest as manifests
from packtool.formats.names import shard_file, token_dtype
from packtool.formats.schema import OtherFile, StoreManifest, TokenizerInfo, TokenShard
from packtool.formats.token_store import write_columns, write_loss, write_shard
from packtool.places.npy import FileEntry
from packtool.planning.plan import offsets_of

EOS = 0
VOCAB = 1 << 16
TOKENIZER = TokenizerInfo(sha256="0" * 64, vocab_size=VOCAB, eos_id=EOS, eos_token="<eos>", added_tokens={"<eos>": EOS})


def contents(path: Path) -> dict[str, bytes]:
    """Every file below a directory with its bytes, but for the times of the run."""
    files = (file for file in path.rglob("*") if file.is_file() and file.name != "run.json")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def load(path: Path) -> dict[str, Any]:
    """The manifest of a dataset, to be changed."""
    manifest: dict[str, Any] = json.loads((path / manifests.MANIFEST).read_bytes())
    return manifest


def reseal(path: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest that was changed as packtool would: with its own checksum."""
    del manifest["xxh3_128"]
    (path / manifests.MANIFEST).write_bytes(manifests.sealed(manifest))


@contextmanager
def amended(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the manifest of a dataset; what the block changes in it is sealed."""
    manifest = load(path)
    yield manifest
    reseal(path, manifest)


def rewrite(path: Path, name: str, change: Callable[[np.ndarray], object]) -> None:
    """Change an array of a dataset, and all checksums with it, so that only its contents give it away."""
    file = path / name
    header, data = file.read_bytes()[:4096], np.load(file)
    change(data)
    file.write_bytes(header + data.tobytes())

    def correct(value: object, directory: str) -> None:
        if isinstance(value, dict):
            inside = value.get("directory", directory)
            if "xxh3_128" in value and str(Path(inside, str(value.get("name")))) == name:
                value["xxh3_128"] = xxhash.xxh3_128_hexdigest(file.read_bytes())
            for each in value.values():
                correct(each, inside)
        elif isinstance(value, list):
            for each in value:
                correct(each, directory)

    with amended(path) as manifest:
        correct(manifest, "")


def document_tokens(document: int, length: int) -> list[int]:
    """Tokens of one document: all different from EOS but the last, and different from its neighbours'."""
    return [1 + (document * 7919 + i * 31) % (VOCAB - 1) for i in range(length - 1)] + [EOS]


def document_loss(document: int, length: int) -> list[int]:
    """Which tokens of a document train: of some none, of most here and there; EOS where any other does."""
    trains = [int((document * 13 + i * 5) % 11 < document % 4 * 3) for i in range(length - 1)]
    return [*trains, int(any(trains))]


def write_store(
    path: Path,
    lengths: Sequence[int],
    *,
    per_shard: int = 7,
    tokenizer: TokenizerInfo = TOKENIZER,
    first: int = 0,
    loss: Callable[[int, int], list[int]] | None = None,
    conversations: bool = False,
    columns: Callable[[int], dict[str, str | None]] | None = None,
) -> Path:
    """A token store of documents of these lengths (EOS included), numbered from `first` in their tokens.

    Args:
        loss: which tokens of a document of this number and length train; None for all, without saying so.
        conversations: the documents are said to be conversations.
        columns: the fields that are kept with the document of this number.
    """
    path.mkdir(parents=True)
    options: dict[str, Any] = {"train_on": "all"} if conversations else {}
    shards, trained = [], 0
    for number, begin in enumerate(range(0, len(lengths), per_shard)):
        part = lengths[begin : begin + per_shard]
        ids = [t for i, n in enumerate(part) for t in document_tokens(first + begin + i, n)]
        offsets = offsets_of(np.array(part, np.int64))
        tokens, ends = write_shard(path, number, np.array(ids, np.uint32), offsets, tokenizer.vocab_size)
        mask: FileEntry | None = None
        if loss is not None:
            trains = [np.array(loss(first + begin + i, n), np.uint8) for i, n in enumerate(part)]
            trained += sum(int(each.sum()) for each in trains)
            mask = write_loss(path, number, trains)
        kept: OtherFile | None = None
        if columns is not None:
            records = [columns(first + begin + i) for i in range(len(part))]
            options["columns"] = list(records[0])
            values = [[record[name] for record in records] for name in options["columns"]]
            kept = write_columns(path / shard_file("columns", number), options["columns"], values)
        shards.append(TokenShard(tokens, ends, begin, columns=kept, loss=mask))
    manifests.write(
        path,
        StoreManifest(
            options=options,
            inputs=[],
            tokenizer=tokenizer,
            dtype=token_dtype(tokenizer.vocab_size).str,
            counts={"documents": len(lengths), "tokens": int(sum(lengths))}
            | ({} if loss is None else {"trained_tokens": trained}),
            shards=shards,
        ),
    )
    return path
