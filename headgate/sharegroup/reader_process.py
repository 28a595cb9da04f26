"""A process of readers: ``python -m headgate.sharegroup.reader_process PID FD…``, of the source process and pipes."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

from headgate.sharegroup.reader import run_all

COLLECT_EVERY = 50_000  # objects: messages hold no cycles
LEAVE_S = 10.0  # for readers to leave their group when the source process is gone


def main(source: str, descriptors: list[str]) -> None:
    """Ends when all readers have, or at once when the source process says no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the query's
    gc.set_threshold(COLLECT_EVERY, 20, 20)
    threading.Thread(target=_exit_after, args=(int(source),), daemon=True).start()
    run_all([Connection(int(fd)) for fd in descriptors])
    sys.stdout.flush()
    os._exit(0)  # clients that hang keep nobody waiting


def _exit_after(source: int) -> None:
    """A client that can't leave its group holds the process no longer than this: what it has goes back by itself."""
    while os.getppid() == source:
        time.sleep(1.0)
    time.sleep(LEAVE_S)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
