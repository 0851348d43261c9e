"""The options of `merge`."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from packtool.options.declare import Option
from packtool.options.kinds import PATH
from packtool.options.shared import Quiet, Workers


@dataclass(frozen=True)
class MergeArguments:
    """The arguments of `packtool.merge`."""

    output: Annotated[
        Path | str, Option(PATH, "Directory that all the tasks wrote to.", metavar="OUTPUT", positional=True)
    ]
    _: KW_ONLY
    workers: Workers = None
    quiet: Quiet = True
