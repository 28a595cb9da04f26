"""The library that knows sketches."""

from __future__ import annotations

from functools import cache
from types import ModuleType


@cache
def library() -> ModuleType:
    """Apache DataSketches for Python."""
    import datasketches  # not at the top: most have no use for it

    module: ModuleType = datasketches
    return module
