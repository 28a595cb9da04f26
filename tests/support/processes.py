"""What processes tell of themselves, while any of them may end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import psutil


def command_lines(processes: Iterable[psutil.Process]) -> Iterator[tuple[psutil.Process, str]]:
    """Each with its arguments, joined by spaces; one that has ended meanwhile is left out."""
    for process in processes:
        with suppress(psutil.Error):
            yield process, " ".join(process.cmdline())
