"""What was asked of each store, and what was packed of it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from msgspec import UNSET, UnsetType

from packtool.metrics.ratios import ratio
from packtool.plan import Ints, offsets_of
from packtool.report.schema import PackedSourceFigures
from packtool.storage.schema import Choice, ChosenSource, DatasetEntry


def packed_sources(
    inputs: Sequence[DatasetEntry],
    store_documents: Sequence[int],
    lengths: Ints,
    choice: Choice | None,
    names: Sequence[str] | None = None,
    trained: Sequence[int] | UnsetType = UNSET,
) -> list[PackedSourceFigures]:
    """Describe the sources of a packed dataset.

    Args:
        inputs: the stores, as the manifest has them.
        store_documents: documents packed of each of them.
        lengths: of all documents packed, in tokens.
        choice: what was chosen of them; None for each document once.
        names: of the stores; None to leave them out.
        trained: tokens of each that train, as the ledger has them.
    """
    ends = offsets_of(np.array(store_documents, np.int64)).tolist()
    tokens = [int(lengths[first:last].sum(dtype=np.int64)) for first, last in pairwise(ends)]
    chosen = [_whole(*each) for each in zip(store_documents, tokens, strict=True)] if choice is None else choice.sources
    asked = [Fraction(source.epochs) * source.available_tokens for source in chosen]
    return [
        PackedSourceFigures(
            name=None if names is None else names[number],
            digest=entry.xxh3_128,
            documents=store_documents[number],
            document_share=ratio(store_documents[number], ends[-1]),
            tokens=tokens[number],
            token_share=ratio(tokens[number], sum(tokens)),
            trained_tokens=UNSET if isinstance(trained, UnsetType) else trained[number],
            asked_share=float(asked[number] / sum(asked)) if sum(asked) else 0.0,
            asked_epochs=float(Fraction(source.epochs)),
            epochs=ratio(tokens[number], source.available_tokens),
            stored_documents=source.documents,
            stored_tokens=source.tokens,
            left_out=source.left_out,
            repeated_documents=source.repeated_documents,
            repeated_tokens=source.repeated_tokens,
        )
        for number, (entry, source) in enumerate(zip(inputs, chosen, strict=True))
    ]


def _whole(documents: int, tokens: int) -> ChosenSource:
    """Describe a source of which each document is chosen once."""
    return ChosenSource(
        documents=documents,
        tokens=tokens,
        left_out={},
        asked="1",
        epochs="1",
        chosen_documents=documents,
        chosen_tokens=tokens,
        repeated_documents=0,
        repeated_tokens=0,
    )
