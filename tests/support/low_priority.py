"""What a test builds once gives way to the tests that run beside it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_LEAST = 19  # the priority, as nice has it


def give_way() -> None:
    """Linux shares the processors out among sessions first: in one of its own, this process and its children wait."""
    os.nice(_LEAST)
    with suppress(OSError):
        os.setsid()
        Path("/proc/self/autogroup").write_text(f"{_LEAST}")
