"""Stand-in: what generating calls, and training does not."""

from __future__ import annotations

from typing import Any


def selective_state_update(*_: Any, **__: Any) -> Any:
    raise NotImplementedError
