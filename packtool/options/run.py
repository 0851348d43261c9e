"""What `run` takes."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

from packtool.options.declare import Option
from packtool.options.kinds import FLAG, PATH, PLACE, PLACES
from packtool.options.shared import DryRun, Many, Quiet, Scheduler, Staging, StagingLimit, Workers


@dataclass(frozen=True)
class RunArguments:
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
            "Directory or URL that the stages' outputs lie in.",
            short="-o",
            metavar="DIR",
            default="one named as the file, without .toml",
        ),
    ] = None
    workers: Workers = None
    scheduler: Scheduler = None
    staging: Staging = None
    staging_limit: StagingLimit = None
    overwrite: Annotated[bool, Option(FLAG, "Make anew what was made with other options or inputs.")] = False
    dry_run: DryRun = False
    quiet: Quiet = True
    announce: Annotated[
        Callable[[int, int, Any], None] | None,
        Option(
            FLAG,
            "Called before each stage with its number, how many there are, and the stage.",
            python_only=True,
        ),
    ] = None
