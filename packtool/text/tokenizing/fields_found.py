"""What the records of a run had of the fields that options name, and of conversations by their layouts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from packtool.errors import UsageError
from packtool.support.sizes import plural
from packtool.text.conversations.described import described
from packtool.text.conversations.layouts import RecordLayout, shown
from packtool.text.corpus.documents import fields_there
from packtool.text.corpus.first import first_of
from packtool.text.corpus.read_fields import LayoutCounts
from packtool.text.corpus.records import CorpusFile
from packtool.text.paths import values_at
from packtool.text.tokenizing.counts import SpanCounts
from packtool.text.tokenizing.recipe import StoreRecipe
from packtool.warnings import warn


def layouts_of(recipe: StoreRecipe, total: SpanCounts) -> list[LayoutCounts]:
    """List what was read of conversations by their layouts, that of the first record with all that it has beside."""
    first = recipe.fields.first
    layouts = []
    for name, counts in total.layouts.items():
        not_read = counts.not_read
        if first is not None and name == shown(first):
            not_read = dict.fromkeys(recipe.options.get("not_read", ()), counts.conversations) | not_read
        layouts.append(msgspec.structs.replace(counts, not_read=not_read))
    return layouts


def errors_of_names(recipe: StoreRecipe, total: SpanCounts, files: Sequence[CorpusFile]) -> list[UsageError]:
    """List the errors of fields that options name, and that no record has.

    Args:
        total: counts of the records of these files, all of them.
    """
    if not total.read:
        return _errors_of_document(recipe, total, files)
    absent = [path for path in recipe.fields.optional if path not in total.found]
    if not absent:
        return []
    there, remedy = described(first_of(files)[0] or {}), "correct the option that names it"
    return [UsageError("no-field", f"no record has {path!r}; the first has {there}", remedy=remedy) for path in absent]


def _errors_of_document(recipe: StoreRecipe, total: SpanCounts, files: Sequence[CorpusFile]) -> list[UsageError]:
    """List the error of a document that options name, and no record has: a warning would count the records alone."""
    fields = recipe.fields
    if recipe.on_error != "skip" or fields.by_name or list(total.rejected) != ["missing-text"]:
        return []
    first, _ = first_of(files)
    lacks = first is not None and fields.lacking(values_at(first, fields.document))
    if not lacks:
        return []
    option = f"--ids-field={fields.text}"
    if not fields.ids:
        option = shown(fields.layout or RecordLayout(text=fields.text))
    what = f"{lacks} in any record; the first has {described(first or {})}"
    return [UsageError("no-field", what, remedy=f"correct {option}")]


def warn_of_columns(total: SpanCounts, files: Sequence[CorpusFile]) -> None:
    """Warn of fields to keep that no document has.

    Args:
        total: counts of documents that were read.
        files: that they are from.
    """
    empty = [name for name, documents in total.filled.items() if not documents]
    if not empty or not total.documents:
        return
    first, _ = first_of(files)
    remedy = "check the name: a.b is the field b of an object a"
    if first is not None:
        remedy += f"; in the first record, {fields_there(first)}"
    what = f"{', '.join(map(repr, empty))}: missing or null in all of {plural(total.documents, 'document')}"
    warn("column-empty", what, remedy=remedy, where="--columns")
