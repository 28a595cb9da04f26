"""Named places where a test makes a process fail. In production there are none.

The control plane hands them to indexers; a connector's processes find them in a JSON file that an environment variable
names. Actions of a place:

- ``sleep:<seconds>`` waits; ``kill`` sends SIGKILL to this process;
- ``hold:<file>`` writes its process id to the file and waits there to be killed;
- ``pause:<file>`` writes it too, and goes on when the file is gone, for good;
- ``once:<file>:<action>`` does the action (``hold`` without a file) in the process that makes the file, so once.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "HEADGATE_CONNECTOR_FAILPOINTS"


class Failpoints:
    """Of an indexer: ``decoded``, ``uploaded``, ``committed``, ``before_ack``; ``crash_marker`` is the decoder's."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)

    def reach(self, place: str) -> None:
        """Do what a test asked for at this place, if anything."""
        action, _, argument = self._places.get(place, "").partition(":")
        if action == "once":
            file, _, action = argument.partition(":")
            if not _made(Path(file)):
                return
            action, _, argument = action.partition(":")
        if action == "sleep":
            time.sleep(float(argument))
        elif action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif action == "pause":
            del self._places[place]
            _with_process_id(Path(argument)).replace(argument)
            while Path(argument).exists():
                time.sleep(0.05)
        elif action == "hold":
            if argument:
                _with_process_id(Path(argument)).replace(argument)
            while True:
                time.sleep(1)

    @property
    def crash_marker(self) -> bytes | None:
        """Bytes in a payload that make the decoding process die."""
        marker = self._places.get("crash_marker")
        return marker.encode() if marker else None


def reach(place: str) -> None:
    """``Failpoints.reach`` with the places of the file that the environment names, read each time."""
    file = os.environ.get(VARIABLE)
    if file:
        Failpoints(json.loads(Path(file).read_text())).reach(place)


def _made(file: Path) -> bool:
    """Whether this process is the one that made the file."""
    written = _with_process_id(file)
    try:
        file.hardlink_to(written)
    except FileExistsError:
        return False
    finally:
        written.unlink()
    return True


def _with_process_id(file: Path) -> Path:
    """A file beside it with this process's id: who sees the named one finds the id in it."""
    written = file.with_name(f"{file.name}.{os.getpid()}")
    written.write_text(str(os.getpid()))
    return written
