"""The options of `verify`."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from packtool.options.declare import Option
from packtool.options.kinds import PLACE, PLACES
from packtool.options.shared import Many, Quiet


@dataclass(frozen=True)
class VerifyArguments:
    """The arguments of `packtool.verify`."""

    path: Annotated[
        Path | str, Option(PLACE, "A token store, packed dataset, order or export.", metavar="PATH", positional=True)
    ]
    _: KW_ONLY
    store: Annotated[
        Many,
        Option(PLACES, "Also compare all rows with the store they were packed from; repeatable.", metavar="STORE"),
    ] = ()
    quiet: Quiet = True
