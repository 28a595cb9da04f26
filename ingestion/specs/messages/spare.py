"""What a launcher and a spare application have in common: the files of a spare's folder, and the order it waits for."""

from __future__ import annotations

from ingestion.specs.base import Message

RECORD = "spare.json"  # who holds its lock decides: the launcher that hands a task over, or the spare that ends
ORDERS = "orders"  # a FIFO; it is there while the spare can take a task
CLOSED = "orders.closed"  # the same, once it takes none any more
TASKS = "tasks"  # of a shared application: a folder with an empty file for each task that it has, or is to take
SILENCE_S = 60.0  # the host's worker touches the record every two seconds; a spare whose worker is gone ends


class SpareOrder(Message):
    """The task that a spare is to serve."""

    task_id: str
    token: str
    module: str = ""  # whose ``main`` serves it; empty: the streaming application
