"""The options of `doctor`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from packtool.options.declare import Option
from packtool.options.kinds import TEXT


@dataclass(frozen=True)
class DoctorArguments:
    """The arguments of `packtool doctor`."""

    tokenizer: Annotated[
        str | Path | None,
        Option(
            TEXT,
            "Look at this tokenizer: which encoder it gets and why, its EOS, the speed of each.",
            metavar="FILE|DIR|HUB_ID",
        ),
    ] = None
