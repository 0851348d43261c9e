"""How many random cases a law is tried on."""

import os

from hypothesis import HealthCheck, settings

ALL = "PACKTOOL_ALL_EXAMPLES"
"""Set by `make test-slow`: all cases are tried. Without it, a third of them; they are others in every run."""


def tried(count: int) -> int:
    """How many of so many random cases are tried."""
    return count if ALL in os.environ else count // 3


def examples(count: int, *suppressed: HealthCheck) -> settings:
    """Decorate a law that holds for random cases."""
    return settings(max_examples=tried(count), deadline=None, suppress_health_check=suppressed)
