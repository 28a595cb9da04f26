"""Named places where a test makes an indexer fail. The control plane hands them out; in production there are none.

Values: ``hold:<file>`` writes its process id to the file and waits there to be killed; ``hold_once:<file>`` only when
the file does not exist yet; ``pause:<file>`` writes it too, and goes on when the file is gone, for good;
``sleep:<seconds>`` waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path


class Failpoints:
    """Places: ``decoded``, ``uploaded``, ``committed``, ``before_ack``; ``crash_marker`` is the decoder's."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)

    def reach(self, place: str) -> None:
        """Do what a test asked for at this place, if anything."""
        action, _, argument = self._places.get(place, "").partition(":")
        if action == "sleep":
            time.sleep(float(argument))
        elif action == "pause":
            del self._places[place]
            self._pause(Path(argument))
        elif action in ("hold", "hold_once"):
            self._hold(Path(argument), once=action == "hold_once")

    def _pause(self, file: Path) -> None:
        _written(file).replace(file)
        while file.exists():
            time.sleep(0.05)

    def _hold(self, file: Path, once: bool) -> None:
        written = _written(file)
        if once:
            try:
                file.hardlink_to(written)  # one process only makes it
            except FileExistsError:
                return
            finally:
                written.unlink()
        else:
            written.replace(file)
        while True:
            time.sleep(1)

    @property
    def crash_marker(self) -> bytes | None:
        """Bytes in a payload that make the decoding process die."""
        marker = self._places.get("crash_marker")
        return marker.encode() if marker else None


def _written(file: Path) -> Path:
    """A file beside it with this process's id: who sees the named one finds the id in it."""
    written = file.with_name(f"{file.name}.{os.getpid()}")
    written.write_text(str(os.getpid()))
    return written
