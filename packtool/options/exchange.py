"""The options of `import` and `export`: token ids from and for other tools."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from packtool.options.declare import Only, Option, declared
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import FLAG, LOCATION, PATHS, PLACES, TEXT
from packtool.options.names import EXPORTS, IMPORTS, ExportName, ImportName, any_of
from packtool.options.shared import CheckInput, EosToken, Many, OutputOption, Revision, StoresMoved, Writing


@dataclass(frozen=True)
class ImportArguments(Writing):
    """The arguments of `packtool.import_`."""

    inputs: Annotated[
        Many, Option(PATHS, "Files of token ids, or directories that hold them.", metavar="INPUT", positional=True)
    ]
    output: OutputOption
    _: KW_ONLY
    format: Annotated[
        ImportName,
        Option(
            TEXT,
            f"Format: {any_of(IMPORTS)}.",
            short="-f",
            metavar="NAME",
            suggestions=IMPORTS,
        ),
    ]
    tokenizer: Annotated[
        str | Path | None,
        Option(
            LOCATION,
            "The tokenizer that made the ids: a tokenizer.json, a directory with one, or a hub id.",
            "Tokens",
            metavar="FILE|DIR|HUB_ID",
            default="the one an export of packtool's holds",
        ),
    ] = None
    revision: Revision = None
    eos_token: EosToken = None
    dtype: Annotated[
        Literal["uint16", "uint32", "int32", "int64"] | None,
        Option(
            TEXT,
            "Type of the ids in files that do not state it: uint16, uint32, int32 or int64.",
            default="the smallest that holds the vocabulary",
        ),
    ] = None
    field: Annotated[
        str | None,
        Option(TEXT, "Column or field of the ids.", metavar="NAME", default="input_ids, tokens, token_ids or ids"),
    ] = None
    ids_only: Annotated[
        bool,
        Option(
            FLAG, "Import the ids alone: ignore which tokens train or are padding, and treat packed rows as documents."
        ),
    ] = False


@dataclass(frozen=True)
class ExportArguments(DocumentOptions, Writing):
    """The arguments of `packtool.export`."""

    only: ClassVar[Mapping[str, Only]] = dict.fromkeys(
        declared(DocumentOptions), Only(("token stores",), "choose them when they are packed", "option-not-taken")
    )
    source: Annotated[Many, Option(PLACES, "Token stores, or a packed dataset.", metavar="SOURCE", positional=True)]
    output: OutputOption
    _: KW_ONLY
    format: Annotated[
        ExportName,
        Option(
            TEXT,
            f"Format: {any_of(EXPORTS)}.",
            "Output",
            short="-f",
            metavar="NAME",
            suggestions=EXPORTS,
        ),
    ]
    store: StoresMoved = ()
    check_input: CheckInput = True
