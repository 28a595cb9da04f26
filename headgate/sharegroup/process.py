"""A process of readers: ``python -m headgate.sharegroup.process FD…``, each a pipe to the source process."""

from __future__ import annotations

import gc
import os
import signal
import sys
from multiprocessing.connection import Connection

from headgate.sharegroup.reader import run_all

COLLECT_EVERY = 50_000  # objects: messages hold no cycles


def main(descriptors: list[str]) -> None:
    """Ends when all readers have, or at once when the source process says no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the query's
    gc.set_threshold(COLLECT_EVERY, 20, 20)
    run_all([Connection(int(fd)) for fd in descriptors])
    sys.stdout.flush()
    os._exit(0)  # clients that hang keep nobody waiting


if __name__ == "__main__":
    main(sys.argv[1:])
