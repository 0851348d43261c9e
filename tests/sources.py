"""Source code of the package as syntax trees."""

import ast
import functools
import gc


@functools.cache
def parsed(source: str) -> ast.Module:
    """The tree of a source, which many tests look at and none changes."""
    # The collector would go through the nodes again and again: two thirds of the time.
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.enable()
