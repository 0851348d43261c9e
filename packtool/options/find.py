"""The options of `find`."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from packtool.options.declare import Option
from packtool.options.kinds import PLACE, PLACES, TEXT
from packtool.options.shared import Many


@dataclass(frozen=True)
class FindArguments:
    """The arguments of `packtool.find`."""

    path: Annotated[Path | str, Option(PLACE, "A packed dataset.", metavar="DATASET", positional=True)]
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
            default="found by its digest, beside the dataset or in the working directory",
        ),
    ] = ()
