"""How many random cases a law is tried on."""

from __future__ import annotations

import os

from hypothesis import settings

ALL = "PACKTOOL_ALL_EXAMPLES"
"""Set by `make test-slow`: all cases are tried. Without it, a third of them; they are others in every run."""


def examples(count: int) -> settings:
    """Decorate a law that holds for random cases."""
    return settings(max_examples=count if ALL in os.environ else count // 3, deadline=None)
