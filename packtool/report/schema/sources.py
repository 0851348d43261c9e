"""What reports say of the inputs."""

from __future__ import annotations

import msgspec

from packtool.report.schema.rows import Lengths


class SourceFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One of the inputs.

    Attributes:
        name: what its directory was called; null in `report.json`, which does not depend on names.
        digest: xxh3-128 of its manifest, which holds those of its files.
        documents: it has so many here.
        document_share: their share of all documents.
        tokens: it has so many here, EOS included.
        token_share: their share of all tokens: of a mixture, the share achieved.
    """

    name: str | None
    digest: str
    documents: int
    document_share: float
    tokens: int
    token_share: float


class LeftOutFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What was not packed.

    Attributes:
        documents: documents that were left out.
        tokens: their tokens, EOS included.
    """

    documents: int
    tokens: int


class PackedSourceFigures(SourceFigures, frozen=True, kw_only=True):
    """A token store that was packed: what was asked of it and what came of it. The account of each store balances:
    stored = left out + packed - repeated.

    Attributes:
        asked_share: share of all tokens that it was to have.
        asked_epochs: how often it was to be packed.
        epochs: tokens packed / tokens that were left to draw from.
        stored_documents: documents of the store.
        stored_tokens: its tokens, EOS included.
        left_out: what was not packed, by reason, each document under the first that holds: excluded, too_short,
            too_long, duplicates, other_side (of a hold-out), other_shard, not_sampled, and not_drawn by a weight below
            1.
        repeated_documents: of the documents packed, those that an earlier pass has.
        repeated_tokens: their tokens.
    """

    asked_share: float
    asked_epochs: float
    epochs: float
    stored_documents: int
    stored_tokens: int
    left_out: dict[str, LeftOutFigures]
    repeated_documents: int
    repeated_tokens: int


class StoredSourceFigures(SourceFigures, frozen=True, kw_only=True):
    """A token store that is measured.

    Attributes:
        lengths: of its documents, in tokens.
        duplicates: documents whose text an earlier document of the same inputs has; null without provenance.
    """

    lengths: Lengths
    duplicates: int | None
