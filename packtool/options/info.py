"""The options of `info`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from packtool.options.declare import Option
from packtool.options.kinds import PLACE


@dataclass(frozen=True)
class InfoArguments:
    """The arguments of `packtool.info`."""

    path: Annotated[Path | str, Option(PLACE, "A file or directory of any kind.", metavar="PATH", positional=True)]
