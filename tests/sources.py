"""Source code of the package as syntax trees."""

from __future__ import annotations

import ast
import functools


@functools.cache
def parsed(source: str) -> ast.Module:
    """The tree of a source, which many tests look at and none changes."""
    return ast.parse(source)
