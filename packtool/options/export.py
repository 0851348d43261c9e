"""What `export` takes."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from packtool.options.declare import Option
from packtool.options.kinds import PLACE, TEXT
from packtool.options.names import EXPORTS, listed
from packtool.options.shared import CheckInput, DryRun, Output, Overwrite, Quiet, Resume, Staging


@dataclass(frozen=True)
class ExportArguments:
    """The arguments of `packtool.export`."""

    source: Annotated[
        Path | str, Option(PLACE, "A token store or a packed dataset.", metavar="SOURCE", positional=True)
    ]
    output: Output
    _: KW_ONLY
    format: Annotated[str, Option(TEXT, f"{listed(EXPORTS)}.", short="-f", metavar="NAME", suggestions=EXPORTS)]
    check_input: CheckInput = True
    staging: Staging = None
    overwrite: Overwrite = False
    resume: Resume = False
    dry_run: DryRun = False
    quiet: Quiet = True
