"""The options of `run`."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

from packtool.options.declare import Option
from packtool.options.kinds import CALL, FLAG, PATH, PLACE, PLACES
from packtool.options.shared import DryRun, Many, Quiet, Staging, StagingLimit, Working


@dataclass(frozen=True)
class RunArguments(Working):
    """The arguments of `packtool.run`."""

    configuration: Annotated[
        Path | str, Option(PATH, "TOML file with the tables of the stages.", metavar="CONFIG.toml", positional=True)
    ]
    _: KW_ONLY
    input: Annotated[Many, Option(PLACES, "Corpus to tokenize (or stores to pack); repeatable.", short="-i")] = ()
    output: Annotated[
        Path | str | None,
        Option(
            PLACE,
            "Directory or URL for the outputs of all stages.",
            "Output",
            short="-o",
            metavar="DIR",
            default="one named like the file, without .toml",
        ),
    ] = None
    staging: Staging = None
    staging_limit: StagingLimit = None
    overwrite: Annotated[bool, Option(FLAG, "Replace what was made with other options or inputs.", "Output")] = False
    dry_run: DryRun = False
    quiet: Quiet = True
    announce: Annotated[
        Callable[[int, int, Any], None] | None,
        Option(CALL, "Called before each stage with its number, how many there are, and the stage.", python_only=True),
    ] = None
