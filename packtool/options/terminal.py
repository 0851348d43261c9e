"""Options of the command line that the Python functions don't have."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Option
from packtool.options.kinds import FLAG, PATH, TEXT

_flag = partial(Option, FLAG, group="General", in_file=False)


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """Options of how a command is called and what it prints."""

    config: Annotated[
        Path | str | None,
        Option(
            PATH,
            "Take options from the command's table in this TOML file; flags win.",
            "General",
            metavar="FILE",
            in_file=False,
        ),
    ] = None
    progress: Annotated[
        Literal["auto", "bar", "log", "none"],
        Option(
            TEXT,
            "Show progress as bar, log (a line every 30 seconds), none, or auto: a bar on a terminal, else a log.",
            "General",
            in_file=False,
        ),
    ] = "auto"
    quiet: Annotated[bool, _flag("Print no progress, no warnings, no summary.", short="-q")] = False
    verbose: Annotated[bool, _flag("Log to standard error what is being done.", short="-v")] = False
    full: Annotated[bool, _flag("Print everything that was measured, not only the answer.", group="Report")] = False
    ids: Annotated[bool, _flag("Show the ids of the tokens, not their text.")] = False
    json: Annotated[bool, _flag("Print the result as one JSON object on standard output.")] = False
