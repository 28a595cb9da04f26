"""Turns a failed test's alarm off before its report is written.

pytest-timeout does so after it (``pytest_exception_interact``). An alarm that goes off in between is an internal error,
which ends the whole run.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    cancel = getattr(item.config.hook, "pytest_timeout_cancel_timer", None)
    if call.excinfo is not None and cancel is not None:
        cancel(item=item)
    return (yield)
