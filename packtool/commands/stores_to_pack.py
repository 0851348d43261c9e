"""What `pack` needs of token stores, and what is known of its dataset, before their documents are read.

Of what `tokenize --part` divided it needs all parts, each once; else documents of a job that failed are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from packtool.choosing.asked import Asked
from packtool.choosing.settle import settle
from packtool.choosing.whole_conversations import longest_conversation
from packtool.commands.pack_recipe import PackRecipe, padding_id
from packtool.commands.places import require_distinct
from packtool.errors import UsageError
from packtool.formats.known import KnownDataset, KnownRows, Lookup, require_alike, require_columns
from packtool.formats.schema import Options, PackedManifest, StoreManifest, StorePart
from packtool.places.typed import place_of
from packtool.rows.stored_tokens import name_for
from packtool.support.sizes import plural

_NAMED = 8  # most missing parts that an error names


def require_stores(recipe: PackRecipe, stores: Sequence[KnownDataset], look: Lookup) -> Asked:
    """Require of the stores what the recipe needs; return which of their documents are asked for.

    Raises:
        UsageError: they lack something, or do not fit together.
        DataError: a dataset that an option names is not there.
    """
    options = recipe.options
    require_distinct([store.place for store in stores])
    for store in stores:
        store.require_kind(StoreManifest)
        if options.index_only:
            name_for(store.place, str(options.output))
    require_alike(stores)
    _require_whole(stores)
    longest = longest_conversation(stores, recipe.strategy, options)
    asked = settle(recipe.asked, stores, look)
    if longest is not None:
        asked = replace(asked, too_long="drop", longest=longest)
    for key in recipe.ordered_by:
        for store in stores:
            store.require_kept(key.field, "--order-by", "order by other fields")
    require_columns(stores, recipe.kept)
    if stores[0].tokenizer is not None:
        padding_id(options.pad_token, stores[0].tokenizer)
    return asked


def known_dataset(recipe: PackRecipe, stores: Sequence[KnownDataset], asked: Asked) -> KnownDataset:
    """Return what is known of the dataset that is packed from stores.

    Args:
        asked: which of their documents, settled.
    """
    return KnownDataset(
        place=place_of(recipe.options.output),
        kind=PackedManifest,
        tokenizer=stores[0].tokenizer,
        columns=[field.name for field in recipe.kept],
        masked=any(store.masked for store in stores),
        rows=_known_rows(recipe, asked),
    )


def _known_rows(recipe: PackRecipe, asked: Asked) -> KnownRows:
    options, strategy = recipe.options, recipe.strategy
    lengths: list[int] | None = None
    filled: list[int] | None = None
    atom_size: int | None = None
    if "sequence_length" not in strategy.accepts:
        lengths = list(options.buckets)
    elif not strategy.powers:
        lengths = filled = [options.row_length]
        atom_size = options.atom
    shuffled: str | None = None
    if recipe.shuffle is not None:
        shuffled = recipe.shuffle.method
    holdout: Options | None = None
    if asked.holdout is not None:
        holdout = asked.recorded()
    return KnownRows(
        strategy=strategy.name,
        lengths=lengths,
        filled=filled,
        atom_size=atom_size,
        multiple=options.multiple,
        shuffled=shuffled,
        holdout=holdout,
        segments=options.segments,
        index_only=options.index_only,
    )


def _require_whole(stores: Sequence[KnownDataset]) -> None:
    """Require that stores which are parts are all parts of what was divided, each once."""
    divisions: dict[str, dict[StorePart, KnownDataset]] = {}
    for store in stores:
        part = store.part
        if part is None:
            continue
        division = divisions.setdefault(part.divided, {})
        same = division.setdefault(part, store)
        if same is not store:
            what = f"part {part} of the inputs, as {same.place} is: its documents would be packed twice"
            raise UsageError("parts-incomplete", what, remedy="name one of the two", where=str(store.place))
    for division in divisions.values():
        _require_one_number(division)
        if len(division) == next(iter(division)).parts:
            continue
        for other in divisions.values():
            if other is not division:
                raise _two(division, other, "of other inputs, or with other options, than")
        raise _missing(division)


def _require_one_number(division: dict[StorePart, KnownDataset]) -> None:
    """Require that all were divided into equally many parts."""
    by_parts: dict[int, dict[StorePart, KnownDataset]] = {}
    for part, store in division.items():
        by_parts.setdefault(part.parts, {})[part] = store
    if len(by_parts) > 1:
        first, second, *_ = by_parts.values()
        raise _two(second, first, "of the same inputs as")


def _two(division: dict[StorePart, KnownDataset], other: dict[StorePart, KnownDataset], how: str) -> UsageError:
    """Return the error for parts of two divisions."""
    part, store = next(iter(division.items()))
    other_part, other_store = next(iter(other.items()))
    what = f"part {part} {how} {other_store.place}, part {other_part}: parts of two divisions do not make one corpus"
    remedy = "tokenize all parts of the same inputs, with the same options and N"
    return UsageError("parts-incomplete", what, remedy=remedy, where=str(store.place))


def _missing(division: dict[StorePart, KnownDataset]) -> UsageError:
    """Return the error for parts that are not there."""
    part, store = next(iter(division.items()))
    there = {part.number for part in division}
    missing = [f"{number}/{part.parts}" for number in range(1, part.parts + 1) if number not in there]
    named = ", ".join(missing[:_NAMED]) + ", …" * (len(missing) > _NAMED)
    what = f"part {part} of the inputs, of which {plural(len(missing), 'part')} are missing: {named}"
    if len(missing) == 1:
        what = f"part {part} of the inputs, of which part {named} is missing"
    remedy = "name the stores of all parts; tokenize those that there are not, with --part"
    return UsageError("parts-incomplete", what, remedy=remedy, where=str(store.place))
