"""Keeps Python's stack of frames in one piece while a test runs.

Python up to 3.12 keeps it in pieces of 16 KiB. It takes a piece from the system when a call does not fit into the last
one, and gives it back when that call returns (https://github.com/python/cpython/issues/142183). A loop at the end of a
piece does so each time round: nearly half of all page faults of the tests of masking, which are requests, came from
that. A call that needs a large frame gets a piece that is larger still, and the calls below it use the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SLOTS = 17_000  # 8 bytes each: the piece has 32,768 of them, so that nearly as many are left


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    hooks: Any = session.config.hook
    hooks.pytest_runtest_protocol = _in_a_large_frame(hooks.pytest_runtest_protocol)


def _in_a_large_frame(hook: Callable[..., Any]) -> Any:
    def call(**arguments: Any) -> Any:
        return hook(**arguments)

    call.__code__ = call.__code__.replace(co_stacksize=SLOTS)
    return call
