"""The options of the commands that look at something and write nothing: `info`, `show`, `find`, `verify`, `doctor`."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from packtool.options.declare import Excludes, Only, Option
from packtool.options.kinds import COUNT, LOCATION, NUMBER, PLACE, PLACES, TEXT
from packtool.options.shared import Many, Quiet

_OF_ROWS = Only(("packed datasets",), "give --document or --find")


@dataclass(frozen=True)
class InfoArguments:
    """The arguments of `packtool.info`."""

    path: Annotated[Path | str, Option(PLACE, "A file or directory of any kind.", metavar="PATH", positional=True)]


@dataclass(frozen=True)
class ShowArguments:
    """The arguments of `packtool.show`."""

    path: Annotated[
        Path | str, Option(PLACE, "A packed dataset, or a token store.", metavar="DATASET|STORE", positional=True)
    ]
    row: Annotated[
        int | None,
        Option(
            NUMBER,
            "Number of the row, from 0; -1 is the last.",
            short="-r",
            default="0 for a packed dataset",
            only=_OF_ROWS,
        ),
    ] = None
    document: Annotated[
        int | None,
        Option(
            NUMBER,
            "Number of the document of a token store, from 0; -1 is the last.",
            short="-d",
            default="0 for a token store",
            only=Only(("token stores",), "give --row"),
        ),
    ] = None
    find: Annotated[
        str | None,
        Option(
            TEXT,
            "Show the document of a token store with this id, where --id-field kept it, or from this input file and "
            "line, such as a.jsonl:17.",
            metavar="ID|FILE:LINE",
            only=Only(("token stores",), "give --row: packtool find says which rows hold a document"),
            excludes=Excludes(("document",)),
        ),
    ] = None
    bucket: Annotated[
        int | None, Option(COUNT, "Length of its rows, where the dataset has several.", unit="tokens", only=_OF_ROWS)
    ] = None
    tokenizer: Annotated[
        str | Path | None,
        Option(
            LOCATION, "The tokenizer it was made with, where the dataset does not hold it.", metavar="FILE|DIR|HUB_ID"
        ),
    ] = None
    store: Annotated[
        Many,
        Option(
            PLACES,
            "The stores it was packed from, to name file and line of each segment.",
            metavar="STORE",
            default="found by their digests, next to the dataset or in the working directory",
            only=_OF_ROWS,
        ),
    ] = ()


@dataclass(frozen=True)
class FindArguments:
    """The arguments of `packtool.find`."""

    path: Annotated[
        Path | str, Option(PLACE, "A packed dataset, or a token store.", metavar="DATASET|STORE", positional=True)
    ]
    record: Annotated[
        str,
        Option(
            TEXT,
            "Id of a document, where --id-field kept it, or input file and line (row, file), such as a.jsonl:17.",
            metavar="ID|FILE:LINE",
            positional=True,
        ),
    ]
    _: KW_ONLY
    store: Annotated[
        Many,
        Option(
            PLACES,
            "The store it was packed from; repeatable, in the same order.",
            metavar="STORE",
            default="found by its digest, next to the dataset or in the working directory",
            only=Only(("packed datasets",)),
        ),
    ] = ()


@dataclass(frozen=True)
class VerifyArguments:
    """The arguments of `packtool.verify`."""

    path: Annotated[
        Path | str, Option(PLACE, "A token store, packed dataset or export.", metavar="PATH", positional=True)
    ]
    _: KW_ONLY
    store: Annotated[
        Many,
        Option(
            PLACES,
            "Also compare all rows with the store they were packed from; repeatable.",
            metavar="STORE",
            only=Only(("packed datasets",)),
        ),
    ] = ()
    quiet: Quiet = True


@dataclass(frozen=True)
class DoctorArguments:
    """The arguments of `packtool doctor`, which takes no arguments."""
