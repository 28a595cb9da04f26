"""Keeps pandas out of a process that has no use for it.

PyArrow loads it, where it is installed, with the first array that is made of a list: a third of the processor time that
a decoder takes to start, and forty megabytes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is kept out of this process", name=fullname)
        return None


def keep_pandas_out() -> None:
    """For the rest of this process, as if it were not installed."""
    sys.meta_path.insert(0, _NoPandas())
