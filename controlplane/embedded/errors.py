"""What can go wrong with the embedded stack. Every message says what is wrong, where, and what to do.

EmbeddedError
├── PrerequisiteMissing   install something, then try again
├── DownloadFailed        the network: try again later
├── ServiceFailed         read the log it names
├── HomeRefused           choose another folder
├── DemoFailed            the demo's own checks
└── Cancelled             somebody asked to stop while we waited
"""

from __future__ import annotations

from pathlib import Path

TAIL_LINES = 15


class EmbeddedError(Exception):
    """The embedded stack cannot do what was asked."""


class PrerequisiteMissing(EmbeddedError):
    """A program this machine lacks, with the command that installs it."""


class DownloadFailed(EmbeddedError):
    """The Kafka jars could not be fetched."""


class HomeRefused(EmbeddedError):
    """A folder that is not ours, so nothing in it is changed."""


class DemoFailed(EmbeddedError):
    """The demo did not reach its end."""


class Cancelled(EmbeddedError):
    """Stopped while waiting."""


class ServiceFailed(EmbeddedError):
    """A service that did not start, with the last lines of its log."""

    def __init__(self, service: str, reason: str, log: Path) -> None:
        self.service, self.reason, self.log = service, reason, log
        super().__init__(f"{service} {reason}. Its log: {log}{quoted(tail(log))}")


def tail(path: Path, lines: int = TAIL_LINES) -> list[str]:
    """The last lines of a log; none when there is no such file."""
    try:
        with path.open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - 64_000))
            return log.read().decode("utf-8", "replace").splitlines()[-lines:]
    except OSError:
        return []


def quoted(lines: list[str]) -> str:
    """Indented, each on its own line, after a line break."""
    return "".join(f"\n    {line}" for line in lines if line.strip())
