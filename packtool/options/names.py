"""Names of strategies and shuffles: the registries, which cost nothing to read."""

from __future__ import annotations

STRATEGIES = (
    "concat",
    "padding",
    "ffd",
    "bfd",
    "bfd-extra",
    "seamless",
    "buckets",
    "length-buckets",
    "decompose",
)
"""Every strategy, in the order of the documentation; `bfd-extra` is the file `packtool/packing/bfd_extra.py`."""
METHODS = ("atom", "partial", "bucket")
"""Every shuffle."""


def listed(names: tuple[str, ...]) -> str:
    """Names as a sentence lists them.

    >>> listed(METHODS)
    'atom, partial or bucket'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
