"""Say what a token store knows of one of its documents: where it came from, how long it is, what was kept with it."""

from __future__ import annotations

from dataclasses import dataclass

from packtool.formats.token_store import TokenStore


@dataclass(frozen=True)
class StoredDocument:
    """One document of a token store."""

    number: int  # number in the store, from 0
    file: str | None  # input file that the document came from; None where the store does not record it
    line: int | None  # line or row of that file, from 1; None where the store does not record it
    tokens: int  # tokens, BOS and EOS included
    columns: dict[str, str | None]  # fields kept with it, its id among them, by name; None for a missing value

    @property
    def origin(self) -> str | None:
        """Where it came from, as FILE:LINE; None where the store does not record it.

        >>> StoredDocument(6, "a.jsonl", 7, 12, {}).origin
        'a.jsonl:7'
        """
        if self.file is None:
            return None
        return f"{self.file}:{self.line}"


def stored_document(store: TokenStore, number: int) -> StoredDocument:
    """Describe one document of a store.

    Raises:
        DataError: the store is damaged.
    """
    file = line = None
    if store.known.has_origins:
        file, line = store.file_and_record(number)
    return StoredDocument(number, file, line, len(store.document(number)), store.kept(number))
