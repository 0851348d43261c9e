"""The options of `export`."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from packtool.options.declare import Option
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import PLACE, TEXT
from packtool.options.names import EXPORTS, listed
from packtool.options.shared import Copying, Output, StoresMoved


@dataclass(frozen=True)
class ExportArguments(DocumentOptions, Copying):
    """The arguments of `packtool.export`."""

    source: Annotated[
        Path | str, Option(PLACE, "A token store or a packed dataset.", metavar="SOURCE", positional=True)
    ]
    output: Output
    _: KW_ONLY
    format: Annotated[
        str, Option(TEXT, f"Format: {listed(EXPORTS)}.", "Output", short="-f", metavar="NAME", suggestions=EXPORTS)
    ]
    store: StoresMoved = ()
