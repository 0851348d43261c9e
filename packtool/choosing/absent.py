"""Say of a document that a packed dataset does not have why, as far as what the dataset records tells."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from packtool.choosing.asked import Asked
from packtool.choosing.documents import Portion, StoredDocuments
from packtool.choosing.rules import Rule, asked_for
from packtool.choosing.sides import OTHER_SIDE
from packtool.choosing.stored_document import StoredDocument, stored_document
from packtool.errors import PacktoolError
from packtool.formats.schema import NOT_DRAWN, Choice
from packtool.warnings import PacktoolWarning


@dataclass(frozen=True)
class AbsentDocument:
    """A document of a store that a dataset was packed from, and does not have.

    Attributes:
        store: the name of its store.
        stored: what the store knows of it.
        because: the options that leave it out for certain, with their values, such as ``--min-tokens 12``.
        possible: how many documents of the store are not in the dataset for each of the reasons that are not known of
            a document, such as a list that was excluded; one of them is the reason where `because` is empty.
    """

    store: str
    stored: StoredDocument
    because: list[str]
    possible: dict[str, int]


def absent_document(documents: StoredDocuments, number: int, document: int, choice: Choice) -> AbsentDocument:
    """Explain why a document is not in a dataset, by what the dataset records.

    Args:
        documents: of the stores.
        number: of its store.
        document: its number there.
        choice: of the dataset.
    """
    asked = Asked.read(choice.options)
    portion = documents.only(number, document)
    because: list[str] = []
    unknown = {NOT_DRAWN}
    for rule in asked_for(asked):
        removed = _removes(rule, asked, documents, portion)
        if removed is None:
            unknown.add(rule.reason)
        elif removed:
            because.append(_in_words(rule, asked))
    left_out = choice.sources[number].left_out
    possible = {reason: each.documents for reason, each in left_out.items() if reason in unknown}
    store = documents.stores[number]
    return AbsentDocument(documents.names.shortest[number], stored_document(store, document), because, possible)


def _removes(rule: Rule, asked: Asked, documents: StoredDocuments, portion: Portion) -> bool | None:
    """Return whether a rule leaves out a document; None where that can't be told."""
    if not rule.alone:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PacktoolWarning)  # packing it has said it
            [removed] = rule.removes(asked, documents, [portion])
    except PacktoolError:  # it was left out before this rule looked at it, so a value may be missing or wrong
        return None
    return bool(removed.any())


def _in_words(rule: Rule, asked: Asked) -> str:
    """Return the option that leaves a document out, as it is written; of a hold-out, also the side that it is on."""
    words = f"{rule.flag} {rule.value(asked)}"
    if rule.reason != "other_side":
        return words
    if asked.holdout_by is not None:
        words += f" --holdout-by {asked.holdout_by}"
    return f"{words}: it is {OTHER_SIDE[asked.part or 'train']}"
