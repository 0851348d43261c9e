"""Read what `--exclude` names: lists of documents, and token stores, whose texts are left out of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.commands.document_origins import listed_documents
from packtool.commands.recorded import Recorded
from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.schema import StoreManifest
from packtool.formats.token_store import TokenStore
from packtool.planning.arrays import Arrays, blocks
from packtool.planning.plan import Mask


@dataclass(frozen=True)
class Exclusions:
    """What leaves documents out by name or by text.

    Attributes:
        lists: contents of lists, by their paths.
        stores: token stores.
    """

    lists: dict[str, bytes]
    stores: Recorded

    def __bool__(self) -> bool:
        return bool(self.lists or self.stores.places)

    def digests(self) -> list[str]:
        """Return what tells these exclusions from others, in one order however they are named."""
        of_lists = [xxhash.xxh3_128_hexdigest(listed) for listed in self.lists.values()]
        of_stores = [entry.xxh3_128 for entry in self.stores.entries]
        return sorted({*of_lists, *of_stores})

    def excluded(self, stores: Sequence[TokenStore], origins: Sequence[npt.NDArray[Any]], arrays: Arrays) -> list[Mask]:
        """Mark the documents of each store that a list names, or whose text one of the token stores has.

        Args:
            origins: of the documents of each store, as `TokenStore.origins` has them.
            arrays: makes the results, which are as long as the stores.

        Raises:
            DataError: a list names a document that no store has; a token store is damaged, or was replaced.
            UsageError: a token store does not record the hashes of its texts.
        """
        marked: list[Mask] = []
        for store in stores:
            marked.append(arrays.filled(store.documents, np.bool_, lambda a, b: np.zeros(b - a, np.bool_)))
        for path, listed in self.lists.items():
            for number, named in enumerate(listed_documents(stores, origins, listed, path)):
                marked[number] |= named
        for place in self.stores.places:
            texts = np.unique(TokenStore(place).origins(arrays)["hash"])
            for number, origin in enumerate(origins):
                for a, b in blocks(len(origin)):
                    marked[number][a:b] |= _among(origin["hash"][a:b], texts)
        self.stores.require_unchanged()
        return marked


def read_exclusions(paths: Sequence[Path | str]) -> Exclusions:
    """Read the lists among these paths, and find the token stores, which are directories.

    Raises:
        DataError: a list can't be read.
        UsageError: a directory holds no token store.
    """
    lists, stores = {}, []
    for path in map(Path, paths):
        if path.is_dir():
            if not (path / manifests.MANIFEST).is_file():
                remedy = "name a token store, or a list with one id or FILE:LINE a line"
                raise UsageError(
                    "bad-exclude", f"{path} is a directory, and no token store", remedy=remedy, where="--exclude"
                )
            manifests.read_as(path, StoreManifest)  # says what else it is
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
        what = f"can't be read ({(error.strerror or str(error)).lower()})"
        raise DataError("missing-input", what, remedy="check the path", where=str(path)) from None
