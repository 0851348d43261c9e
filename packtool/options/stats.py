"""The options of `stats`: options of plans, with several row lengths to try, and the choice of documents."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from packtool.options.declare import Needs, Only, Option, declared
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import COUNT, COUNTS, FLAG, NAMES, PATH, PLACES, TEXT
from packtool.options.names import STRATEGIES
from packtool.options.plans import PackOptions
from packtool.options.shared import EosToken, FormatOption, Many, Quiet, TokenizerOption, Working

Value = TypeVar("Value")
Several: TypeAlias = Value | Sequence[Value] | None
Share = str | float | Fraction
_count = partial(Option, COUNT, group="Report", low=1)
_OF_TEXT_FILES = Only(("text files",), "leave it out: this directory holds tokens already", "option-not-taken")
_OF_DOCUMENTS = Only(("text files", "token stores"), "leave it out: this dataset is packed already", "option-not-taken")
_COMPARED = Needs("compare", "leave it out", code="option-not-taken")


def _tried(name: str, **changed: Any) -> Option:
    """Declare an option of plans again, for the compared strategies that take it."""
    of_pack = declared(PackOptions)[name].option
    needs = Needs("compare", "add --compare=all", code="option-not-taken")
    return replace(of_pack, not_taken_by=(), instead="", required=False, recorded=False, needs=needs, **changed)


@dataclass(frozen=True)
class StatsArguments(DocumentOptions, Working):
    """The arguments of `packtool.stats`."""

    only: ClassVar[Mapping[str, Only]] = {
        **{name: _OF_DOCUMENTS for name in declared(DocumentOptions) if name != "seed"},
        **dict.fromkeys(("tokenizer", "eos_token", "text_field", "format"), _OF_TEXT_FILES),
    }
    path: Annotated[
        Many,
        Option(
            PLACES,
            "Text files as tokenize reads them, token stores (packed together), a packed dataset, or a blend.",
            metavar="PATH",
            positional=True,
        ),
    ]
    _: KW_ONLY
    compare: Annotated[
        Several[str],
        Option(
            NAMES,
            "Strategies to try on documents, such as concat,bfd; or all.",
            "Rows",
            suggestions=("all", *STRATEGIES),
        ),
    ] = None
    too_long: Annotated[
        Literal["drop", "cut", "first"],
        Option(
            TEXT,
            "Conversations longer than a row: drop them, or cut them; strategies that cut shorter ones compete only "
            "with cut. Or of all longer documents take the first tokens, and drop others.",
            "Rows",
            needs=_COMPARED,
        ),
    ] = "drop"
    exact: Annotated[
        bool,
        Option(
            FLAG,
            "Compare strategies on all documents; else, of more than ten million, on a sample.",
            "Rows",
            needs=_COMPARED,
        ),
    ] = False
    sequence_length: Annotated[
        Several[int | str],
        _tried("sequence_length", kind=COUNTS, help="Tokens in a row; several lengths are tried one by one."),
    ] = None
    buckets: Annotated[Sequence[int] | int | str | None, _tried("buckets")] = None
    atom_size: Annotated[int | None, _tried("atom_size")] = None
    extra_capacity: Annotated[int | None, _tried("extra_capacity")] = None
    max_repetition: Annotated[Share | None, _tried("max_repetition")] = None
    padding_threshold: Annotated[Share | None, _tried("padding_threshold")] = None
    min_bucket: Annotated[int | None, _tried("min_bucket")] = None
    open_rows: Annotated[int | None, _tried("open_rows")] = None
    mix_rows: Annotated[bool | None, _tried("mix_rows")] = None
    document_multiple: Annotated[int | None, _tried("document_multiple")] = None
    max_documents_per_row: Annotated[int | None, _tried("max_documents_per_row")] = None
    batch_size: Annotated[
        int | None,
        _count(
            "Rows in a batch (with several row lengths: of the longest), for steps per epoch and mixing.",
            short="-B",
            unit="rows",
        ),
    ] = None
    longest: Annotated[
        int | None,
        _count(
            "List this many documents, the longest first: file and line, id, tokens.",
            unit="documents",
            only=_OF_DOCUMENTS,
        ),
    ] = None
    most_repeated: Annotated[
        int | None,
        _count(
            "List this many texts that several documents have, the most frequent first; needs provenance.",
            unit="texts",
            only=_OF_DOCUMENTS,
        ),
    ] = None
    html: Annotated[
        Path | str | None,
        Option(PATH, "Also write the report to this file, as one self-contained page.", "Report", metavar="FILE"),
    ] = None
    tokenizer: TokenizerOption = None
    eos_token: EosToken = None
    text_field: Annotated[
        str | None, Option(TEXT, "Field or column with the text.", metavar="FIELD", default="text")
    ] = None
    format: FormatOption = None
    quiet: Quiet = True
