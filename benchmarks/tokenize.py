"""From JSON Lines to stored token ids. Everyone gets the same text and tokenizer, and adds an EOS to each document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.common import WORK
from benchmarks.corpus import FAMILIES, text, tokenizer
from benchmarks.measure import Sample, measure, python
from benchmarks.runner import OUT, Case, Cases, Contestant, Scale, packtool, program

ALL = "Llama 3"
"""The tokenizer with which everyone meets."""
PEERS = {
    "datatrove": "datatrove",
    "dolma": "dolma",
    "litdata optimize": "litdata",
    "MosaicML MDSWriter": "mosaicml",
    "datasets.map": "datasets",
    "Megatron, as preprocess_data": "megatron",
}
ALONE = ("gigatoken alone", "fastokens alone")


def cases(scale: Scale) -> Cases:
    """Start-up, then all peers on a slice, then each family on all of the text, and where its CPU time goes.

    Peers that use `tokenizers` are as fast on little text as on much, so a slice does for them.
    """
    short = WORK / "short.jsonl"
    WORK.mkdir(exist_ok=True)
    short.write_text('{"text": "short"}\n')
    families = list(FAMILIES)[: scale.of(1, None, None)]
    for family in families:
        facts = {"tokenizer": family, "megabytes": 0.0}
        yield Case("start-up", facts, [_packtool(workers, short, family, None) for workers in (1, 2)])
    part, size = text(scale.of(0.3, 8, 24), scale.text)
    reference = _reference(part, ALL)
    others = [
        Contestant(
            "tokenizers alone", _program("tokenizers", part, ALL), check=partial(_check, reference, "tokenizers", None)
        )
    ]
    others += [_peer(name, peer, part, ALL, reference) for name, peer in PEERS.items()]
    yield Case("peers", {"tokenizer": ALL, "megabytes": size / 1e6}, [*_fast(part, ALL, reference), *others])
    whole, large = text(scale.of(0.6, 100, 1000), scale.text)
    for family in families:
        reference = _reference(part, family)
        alone = Contestant("tokenizers alone", _program("tokenizers", part, family))
        checked = [replace(each, rounds=1) for each in _fast(part, family, reference)]
        yield Case("slice", {"tokenizer": family, "megabytes": size / 1e6}, [*checked, alone])
        facts = {"tokenizer": family, "megabytes": large / 1e6}
        yield Case("families", facts, _fast(whole, family, None))
        file, _, eos = tokenizer(family)
        yield Case(
            "stages", facts, [Contestant("packtool", program("stages", "tokenize", whole, file, eos, OUT / "store"))]
        )


def _fast(path: Path, family: str, reference: Any) -> list[Contestant]:
    ours = [_packtool(workers, path, family, reference) for workers in (1, 2)]
    return [*ours, *(_peer(name, None, path, family, reference) for name in ALONE)]


def _packtool(workers: int, path: Path, family: str, reference: Any) -> Contestant:
    file, _, eos = tokenizer(family)
    options = ("--tokenizer", file, "--eos-token", eos, "--workers", workers, "-q", "--overwrite")
    command = packtool("tokenize", path, "-o", OUT / "store", *options)
    check = None if reference is None else partial(_check, reference, "packtool", None)
    return Contestant(f"packtool, {workers} worker{'s' if workers > 1 else ''}", command, check=check)


def _peer(name: str, peer: str | None, path: Path, family: str, reference: Any) -> Contestant:
    who = peer or name.partition(" ")[0]
    check = None if reference is None else partial(_check, reference, who, peer)
    return Contestant(name, _program(who, path, family), peer=peer, check=check)


def _program(who: str, path: Path, family: str) -> Any:
    file, eos, token = tokenizer(family)
    return program("tokenize", who, path, file, eos, token, 1, OUT)


def _reference(path: Path, family: str) -> Any:
    """The ids that `tokenizers` gives."""
    file, eos, token = tokenizer(family)
    place = WORK / "reference"
    place.mkdir(exist_ok=True)
    measure(python("benchmarks.peers.tokenize", "tokenizers", path, file, str(eos), token, "1", place))
    return np.load(place / "ids.npy"), eos


def _check(reference: Any, who: str, peer: str | None, _: Sample) -> Mapping[str, Any]:
    expected, eos = reference
    if who == "packtool":
        from packtool.formats.token_store import TokenStore

        found = np.concatenate([np.asarray(shard) for shard in TokenStore(OUT / "store").shards])
    elif (OUT / "ids.npy").exists():
        found = np.load(OUT / "ids.npy")
    else:
        command = [peers.environment(peer or ""), "-m", "benchmarks.peers.tokenize", "ids", who, OUT, OUT / "found.npy"]
        measure(command)
        found = np.load(OUT / "found.npy")
    return compared(expected, found, eos)


def compared(expected: Any, found: Any, eos: int) -> dict[str, Any]:
    """How many tokens are missing, and which share of the documents has the same ids, in any order.

    >>> compared(np.array([1, 2, 0, 3, 0]), np.array([3, 0, 1, 2]), eos=0)
    {'lost_tokens': 1, 'same_documents': 0.5}
    """
    ours, theirs = (Counter(_documents(each, eos)) for each in (expected, found))
    same = (ours & theirs).total() / max(1, ours.total())
    return {"lost_tokens": len(expected) - len(found), "same_documents": same}


def _documents(ids: Any, eos: int) -> Iterator[int]:
    ids = np.asarray(ids, np.uint32)
    first = 0
    for end in np.flatnonzero(ids == eos).tolist():
        yield hash(ids[first : end + 1].tobytes())
        first = end + 1
    if first < len(ids):
        yield hash(ids[first:].tobytes())
