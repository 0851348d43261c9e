"""What is known of a dataset before it is opened: its manifest says it, or the stage of a run that will make it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.made_by import describe_tokenizer, tokenizer_named
from packtool.formats.schema import Manifest, PackedManifest, StoreManifest, StorePart, TokenizerInfo
from packtool.options.check import suggest
from packtool.options.kinds import KeptField, shown
from packtool.places.place import Place
from packtool.places.typed import Typed, place_of

TEXTS, IDS = "texts", "ids"
"""The kinds of contents that the hashes of documents are of."""


@dataclass(frozen=True, kw_only=True)
class KnownRows:
    """What is known of the rows of a packed dataset."""

    strategy: str  # the one that planned them
    lengths: Sequence[int] | None  # that rows may have, ascending; None where that depends on the documents
    filled: Sequence[int] | None  # those of them that rows have; None where that depends on the documents
    atom_size: int | None  # tokens in an atom, at most; None if atoms are rows of several lengths
    multiple: int  # documents begin at multiples of this many tokens
    shuffled: str | None  # the method of their shuffle; None for the order of the corpus
    holdout: Mapping[str, Any] | None  # the options of its hold-out, as manifests record them; None without one
    segments: bool  # whether it is known which document lies where
    index_only: bool  # whether their tokens lie in the token stores alone


@dataclass(frozen=True, kw_only=True)
class KnownDataset:
    """What is known of a dataset. None where it depends on what a stage will read."""

    place: Place  # where it lies, or will lie
    kind: type[Manifest]  # type of its manifest
    tokenizer: TokenizerInfo | None = None  # its tokenizer
    columns: Sequence[str] | None = None  # fields that are kept with its documents
    has_origins: bool = True  # whether it says where its documents came from
    imported: bool = False  # whether it was imported, so that nothing else could say it
    hashed: str = TEXTS  # contents that the hashes of its documents are of
    conversations: bool | None = None  # whether its documents are conversations
    masked: bool | None = None  # whether tokens of its documents do not train
    part: StorePart | None = None  # part of the inputs that it holds, if it is a store of one
    rows: KnownRows | None = None  # its rows, if it is a packed dataset

    def require_kind(self, kind: type[StoreManifest] | type[PackedManifest]) -> None:
        """Raise a UsageError where it is a dataset of another kind."""
        if self.kind is not kind:
            raise manifests.other_kind(self.kind, kind, str(self.place))

    def require_kept(self, name: str, where: str, remedy: str, also: Sequence[str] = ()) -> None:
        """Raise a UsageError unless a field was kept with its documents, or that is not known.

        Args:
            also: other names that may have been meant.
        """
        if self.columns is None or name in self.columns:
            return
        kept = ", ".join(self.columns) or "none"
        what = f"{shown(name)} was not kept with the documents of {self.place} (kept: {kept})"
        remedy = f"tokenize with --columns={name}, or {remedy}"
        meant = difflib.get_close_matches(name, [*self.columns, *also], n=1)
        if meant:
            remedy = f"did you mean {meant[0]}?"
        raise UsageError("field-not-kept", what, remedy=remedy, where=where)

    def require_origins(self, where: str | None = None) -> None:
        """Raise a UsageError unless it says where its documents came from.

        Args:
            where: the option that needs it, if one does.
        """
        if self.has_origins:
            return
        what = "made with --no-provenance, so it does not record where its documents came from"
        remedy = "tokenize without it"
        if self.imported:
            what = "imported, so it records neither where its documents came from, nor hashes of their texts"
            remedy = "tokenize the texts, where there are any"
        if where is not None:
            what = f"{self.place} is {what}"
        raise UsageError("no-provenance", what, remedy=remedy, where=where or str(self.place))

    def require_hashed(self, kind: str, other: str) -> None:
        """Raise a UsageError unless its hashes are of this kind, which `other` has: they would never be equal."""
        if self.hashed == kind:
            return
        what = f"it has hashes of {self.hashed}, and {other} of {kind}, so no document of one is in the other"
        remedy = "make both from texts, or both from ids"
        raise UsageError("hashes-differ", what, remedy=remedy, where=str(self.place))

    def require_holdout(self) -> Mapping[str, Any]:
        """Return the options of its hold-out; raise a UsageError unless it is a packed dataset that has one."""
        self.require_kind(PackedManifest)
        assert self.rows is not None
        if self.rows.holdout is None:
            remedy = "name a dataset that was packed with --holdout"
            raise UsageError("no-holdout", "nothing was held out of it", remedy=remedy, where=str(self.place))
        return self.rows.holdout


Lookup = Callable[[Typed], KnownDataset]
"""A function that returns what is known of the dataset at a place: `known`, unless some have yet to be made."""


def known(typed: Typed) -> KnownDataset:
    """Return what the manifest of a dataset says.

    Raises:
        DataError: there is none, or it can't be read.
    """
    place = place_of(typed)
    return known_by(place, manifests.read(place))


def known_by(place: Place, manifest: Manifest) -> KnownDataset:
    """Return what a manifest says of the dataset that lies at a place."""
    if isinstance(manifest, StoreManifest):
        options = manifest.options
        fields = dict.fromkeys([options.get("id_field"), *options.get("columns", ())])
        return KnownDataset(
            place=place,
            kind=StoreManifest,
            tokenizer=manifest.tokenizer,
            columns=[str(name) for name in fields if name],
            has_origins=all(shard.documents is not None for shard in manifest.shards),
            imported="imported" in options,
            hashed=IDS if "ids_field" in options else TEXTS,
            conversations=manifest.conversations,
            masked=manifest.has_loss and manifest.counts.get("trained_tokens") != manifest.counts["tokens"],
            part=manifest.part,
        )
    if isinstance(manifest, PackedManifest):
        columns = [column.name for column in manifest.columns]
        rows = _rows(manifest)
        return KnownDataset(
            place=place,
            kind=PackedManifest,
            tokenizer=manifest.tokenizer,
            columns=columns,
            masked=bool(manifest.ledger.masked),
            rows=rows,
        )
    return KnownDataset(place=place, kind=type(manifest), tokenizer=manifest.tokenizer)


def _rows(manifest: PackedManifest) -> KnownRows:
    lengths = [bucket.sequence_length for bucket in manifest.buckets]
    atom_size: int | None = None
    if len(lengths) == 1 and not manifest.buckets[0].directory:
        atom_size = manifest.options.get("atom_size", lengths[0])
    holdout: Mapping[str, Any] | None = None
    if manifest.choice is not None and "holdout" in manifest.choice.options:
        holdout = manifest.choice.options
    return KnownRows(
        strategy=manifest.strategy,
        lengths=lengths,
        filled=[bucket.sequence_length for bucket in manifest.buckets if bucket.rows],
        atom_size=atom_size,
        multiple=manifest.multiple,
        shuffled=None if manifest.shuffle is None else manifest.shuffle.method,
        holdout=holdout,
        segments=manifest.lengths is not None,
        index_only=manifest.index_only,
    )


def require_alike(stores: Sequence[KnownDataset]) -> None:
    """Refuse token stores of several tokenizers.

    Raises:
        UsageError: naming the first that differs, and what is different.
    """
    told = [(store, store.tokenizer) for store in stores if store.tokenizer is not None]
    for store, tokenizer in told[1:]:
        first, of_first = told[0]
        for name in ("sha256", "vocab_size", "eos_id", "bos_id"):
            theirs, ours = getattr(tokenizer, name), getattr(of_first, name)
            if theirs != ours:
                what = f"tokenizer {name} is {theirs}, but {ours} in {first.place}"
                if name == "sha256":
                    here = describe_tokenizer(tokenizer, tokenizer_named([store.place]))
                    there = describe_tokenizer(of_first, tokenizer_named([first.place]))
                    what = f"its tokenizer is {here}, but {there} in {first.place}"
                remedy = "tokenize both with the same tokenizer and options"
                raise UsageError("stores-differ", what, remedy=remedy, where=str(store.place))


def require_columns(stores: Sequence[KnownDataset], wanted: Sequence[KeptField]) -> None:
    """Refuse columns that no token store keeps.

    Raises:
        UsageError: naming the first of them, and the columns that there are.
    """
    there: dict[str, None] = {}
    for store in stores:
        if store.columns is None:
            return
        there |= dict.fromkeys(store.columns)
    for field in wanted:
        name = field.name
        if name in there:
            continue
        if not there:
            what = f"the stores keep no columns, so there is no {name!r}"
            remedy = f"tokenize again with --columns={name}"
        else:
            what = f"no store has a column {name!r}; there are {', '.join(there)}"
            remedy = suggest(name, list(there))
        raise UsageError("unknown-column", what, remedy=remedy, where="--keep")
