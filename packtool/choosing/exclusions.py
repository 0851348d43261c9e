"""Read what `--exclude` names: lists of documents, and token stores, whose texts are left out of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.choosing.documents import Portion, StoredDocuments
from packtool.choosing.listed import listed_documents
from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.known import KnownDataset, Lookup, known
from packtool.formats.schema import StoreManifest
from packtool.formats.token_store import TokenStore
from packtool.outputs.recorded import Recorded
from packtool.planning.plan import Mask


@dataclass(frozen=True)
class Exclusions:
    """What leaves documents out by name or by text."""

    lists: dict[str, bytes]  # contents of lists, by their paths
    stores: Recorded  # token stores

    def recorded(self) -> str | list[str] | None:
        """Return the digests of these exclusions, in one order however they are named; None without exclusions."""
        of_lists = [xxhash.xxh3_128_hexdigest(listed) for listed in self.lists.values()]
        of_stores = [entry.xxh3_128 for entry in self.stores.entries]
        digests = sorted({*of_lists, *of_stores})
        if len(digests) == 1:
            return digests[0]
        return digests or None


def excluded(exclusions: Exclusions, documents: StoredDocuments) -> Callable[[Portion], Mask]:
    """Return a function that marks the documents that a list names, or whose text one of the token stores has.

    Raises:
        DataError: a list names a document that no store has; a token store is damaged, or was replaced.
    """
    named = [listed_documents(documents, listed, path) for path, listed in exclusions.lists.items()]
    texts = []
    for place in exclusions.stores.places:
        texts.append(np.unique(TokenStore(place).origins(documents.arrays)["hash"]))
    exclusions.stores.require_unchanged()

    def marked(portion: Portion) -> Mask:
        mask = np.zeros(len(portion), np.bool_)
        for numbers in named:
            mask |= portion.marked(numbers[portion.number])
        for hashes in texts:
            mask |= _among(portion.hashes, hashes)
        return mask

    return marked


def read_exclusions(paths: Iterable[Path]) -> Exclusions:
    """Read the lists among these paths, and find the token stores, which are directories.

    Raises:
        DataError: a list can't be read.
        UsageError: a directory holds no token store.
    """
    lists, stores = {}, []
    for path in paths:
        if path.is_dir():
            excluded_store(path, known)
            stores.append(path)
        else:
            lists[str(path)] = _read_list(path)
    return Exclusions(lists, Recorded.of(stores))


def _among(hashes: npt.NDArray[np.uint64], texts: npt.NDArray[np.uint64]) -> Mask:
    """Return whether each hash is among texts, which are sorted; `np.isin` would sort them for each call."""
    at = np.searchsorted(texts, hashes)
    inside: Mask = at < len(texts)
    inside[inside] = texts[at[inside]] == hashes[inside]
    return inside


def _read_list(path: Path) -> bytes:
    """Read a list of documents."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None


def excluded_store(path: Path, look: Lookup) -> KnownDataset:
    """Return what is known of a token store to exclude, which is there or will be.

    Raises:
        DataError: nothing is there.
        UsageError: what is there is no token store.
    """
    try:
        other = look(path)
    except DataError:
        if not path.exists():
            raise _unreadable(path, "no such file or directory") from None
        if (path / manifests.MANIFEST).is_file():
            raise
        what, remedy = (
            f"{path} is a directory, and no token store",
            "name a token store, or a list with one id or FILE:LINE a line",
        )
        raise UsageError("bad-exclude", what, remedy=remedy, where="--exclude") from None
    other.require_kind(StoreManifest)
    return other


def _unreadable(path: Path, why: str) -> DataError:
    """Return the error for a list that can't be read."""
    what = f"can't be read ({why.lower()})"
    return DataError("missing-input", what, remedy="check the path", where=str(path))
