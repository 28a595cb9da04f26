"""What the environment says. Any name may end in ``_FILE``: then the value is read from that file."""

from __future__ import annotations

import os
from pathlib import Path

# The names that were asked for: no spec may read one of them.
variables_read: set[str] = set()


class EnvironmentProblem(Exception):
    """A setting is missing or can't be read; the message names the variable and what to do."""


def text(name: str, default: str | None = None) -> str:
    """The variable's text, or that of the file named by ``<name>_FILE``."""
    variables_read.add(name)
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise EnvironmentProblem(f"{name}_FILE: {path} can't be read: {error.strerror}") from None
    value = os.environ.get(name, default)
    if value is None:
        raise EnvironmentProblem(f"{name} is not set; see docs/reference/settings.md for what it means")
    return value
