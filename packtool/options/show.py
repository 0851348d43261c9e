"""The options of `show`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from packtool.options.declare import Option
from packtool.options.kinds import COUNT, NUMBER, PLACE, PLACES, TEXT
from packtool.options.shared import Many


@dataclass(frozen=True)
class ShowArguments:
    """The arguments of `packtool.show`."""

    path: Annotated[Path | str, Option(PLACE, "A packed dataset.", metavar="DATASET", positional=True)]
    row: Annotated[int, Option(NUMBER, "Number of the row, from 0; -1 is the last.", short="-r")] = 0
    bucket: Annotated[
        int | None, Option(COUNT, "Length of its rows, where the dataset has several.", unit="tokens")
    ] = None
    tokenizer: Annotated[
        str | Path | None,
        Option(
            TEXT,
            "The tokenizer it was made with, where the dataset does not hold it.",
            metavar="FILE|DIR|HUB_ID",
        ),
    ] = None
    store: Annotated[
        Many,
        Option(
            PLACES,
            "Name file and line of each segment, by the stores that were packed.",
            metavar="STORE",
            default="found by their digests, beside the dataset or in the working directory",
        ),
    ] = ()
