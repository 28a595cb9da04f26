"""Named places where a test makes a process die or sleep. Without the variable of the environment there are none.

It names a JSON file: a place to ``kill:<file>`` or ``sleep:<file>:<seconds>``, done by who makes the file, so once.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

VARIABLE = "HEADGATE_CONNECTOR_FAILPOINTS"


def reach(place: str) -> None:
    """Do what a test asked for at this place, if anything."""
    file = os.environ.get(VARIABLE)
    if not file:
        return
    action, _, rest = json.loads(Path(file).read_text()).get(place, "").partition(":")
    if not action:
        return
    once, _, seconds = rest.partition(":")
    try:
        Path(once).touch(exist_ok=False)
    except FileExistsError:
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(float(seconds))
