"""How many random cases a law is tried on."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

ALL = "PACKTOOL_ALL_EXAMPLES"
"""Set by `make test-slow`: all cases are tried. Without it, a third of them; they are others in every run."""


def examples(count: int, *suppressed: HealthCheck) -> settings:
    """Decorate a law that holds for random cases."""
    tried = count if ALL in os.environ else count // 3
    return settings(max_examples=tried, deadline=None, suppress_health_check=suppressed)
