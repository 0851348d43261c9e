"""The arguments of each command. A module is loaded when they are asked for: a command costs nothing to the others."""

from importlib import import_module
from typing import Any

ARGUMENTS = {
    "tokenize": "tokenize:TokenizeArguments",
    "pack": "pack:PackArguments",
    "shuffle": "shuffle:ShuffleArguments",
    "materialize": "shuffle:MaterializeArguments",
    "export": "exchange:ExportArguments",
    "import": "exchange:ImportArguments",
    "stats": "stats:StatsArguments",
    "show": "inspecting:ShowArguments",
    "find": "inspecting:FindArguments",
    "run": "run:RunArguments",
    "info": "inspecting:InfoArguments",
    "verify": "inspecting:VerifyArguments",
    "doctor": "inspecting:DoctorArguments",
}
"""Where the arguments of a command are declared, as ``MODULE:CLASS`` in this package."""
STAGES = ("tokenize", "pack", "shuffle", "materialize", "export", "stats")
"""The commands that are stages, in the order in which `packtool run` goes through them."""
WRITING = (*STAGES, "import")
"""The commands that record how they were called: the stages, and `import`, which is not one."""


def arguments_of(command: str) -> type[Any]:
    """Return the dataclass of the arguments of a command.

    >>> arguments_of("pack").__name__
    'PackArguments'
    """
    module, _, name = ARGUMENTS[command].partition(":")
    found: type[Any] = getattr(import_module(f"packtool.options.{module}"), name)
    return found
