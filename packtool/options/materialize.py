"""The options of `materialize`."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from packtool.options.declare import Option
from packtool.options.kinds import PLACE
from packtool.options.shared import IndexOnly, MovingRows, Output, StoresMoved


@dataclass(frozen=True)
class MaterializeArguments(MovingRows):
    """The arguments of `packtool.materialize`."""

    source: Annotated[
        Path | str,
        Option(
            PLACE, "A packed dataset: without tokens; for --index-only with them.", metavar="SOURCE", positional=True
        ),
    ]
    output: Output
    _: KW_ONLY
    index_only: IndexOnly = False
    store: StoresMoved = ()
