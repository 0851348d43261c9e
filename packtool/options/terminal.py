"""What the command line takes beside the arguments of the functions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Option
from packtool.options.kinds import FLAG, PATH, TEXT


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """How a command is called, and what it prints."""

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
    quiet: Annotated[
        bool, Option(FLAG, "Print no progress, no warnings, no summary.", "General", short="-q", in_file=False)
    ] = False
    verbose: Annotated[
        bool, Option(FLAG, "Log to standard error what is being done.", "General", short="-v", in_file=False)
    ] = False
    full: Annotated[
        bool, Option(FLAG, "Print everything that was measured, not only the answer.", "Report", in_file=False)
    ] = False
    ids: Annotated[bool, Option(FLAG, "Show the ids of the tokens, not their text.", "General", in_file=False)] = False
    json: Annotated[
        bool, Option(FLAG, "Print the result as one JSON object on standard output.", "General", in_file=False)
    ] = False
