"""Print documents that were found: in rows or in stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from packtool.cli.printing import echo
from packtool.errors import visible
from packtool.support.sizes import plural

if TYPE_CHECKING:
    from packtool.choosing.absent import AbsentDocument
    from packtool.choosing.stored_document import StoredDocument
    from packtool.commands.find import FindResult


def show_places(result: FindResult) -> None:
    """Print where a document is in the rows of a dataset; of documents that it does not have, what it records."""
    for place in result.places:
        again = ""
        if place.repeated:
            again = f", the first {place.repeated:,} repeated"
        echo(
            f"row {place.row:,} of {place.sequence_length:,} tokens: document {place.document:,}, "
            f"tokens {place.start:,} to {place.start + place.length - 1:,}{again}"
        )
    if result.documents and not result.places:
        echo(f"{result.record} is in no row: the strategy dropped its tokens")
    for absent in result.absent:
        echo(_absent_line(result.record, absent))
    if not result.documents and not result.absent:
        echo(f"{result.record} is in none of the stores: tokenize took no document from that line")
        _show_rejected(result)


def _absent_line(record: str, absent: AbsentDocument) -> str:
    """Say why a document is not in a dataset, as far as that is known."""
    from packtool.report.choice_words import reason_in_words

    lead = f"{record} (document {absent.stored.number} of {absent.store}) is not in the dataset"
    if absent.because:
        return f"{lead}: left out by {' and '.join(absent.because)}"
    if len(absent.possible) == 1:
        [reason] = absent.possible
        return f"{lead}: {reason_in_words(reason, {})}"
    reasons = [f"{count:,} {reason_in_words(reason, {})}" for reason, count in absent.possible.items()]
    return f"{lead}. Left out of {absent.store}: {', '.join(reasons)}; the dataset does not record which"


def _show_rejected(result: FindResult) -> None:
    for file in result.rejected:
        echo(f"records that can't be used, with the reasons: {file}")


def show_stored(result: FindResult, documents: Sequence[StoredDocument]) -> None:
    """Print documents of a store that were found, one a line: number, file and line, tokens, and columns."""
    if not documents:
        echo(f"{result.record} is not in the store: it was left out, has no tokens, or does not exist")
        _show_rejected(result)
    for document in documents:
        facts = [plural(document.tokens, "token")]
        if document.origin is not None:
            facts.insert(0, document.origin)
        for name, value in document.columns.items():
            if value is not None:
                facts.append(f"{name} {value}")
        echo(f"document {document.number}: {visible(', '.join(facts))}")
