"""The two threads of a worker that act for its host: one has a round every two seconds, one answers who reads logs.

They are threads of the worker's first process: its children may all be busy for minutes.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any

import redis
from celery.signals import worker_init, worker_ready, worker_shutdown
from django.db import DatabaseError

from controlplane.common.database import ClocksDiffer, borrowed_connection, release_connections
from controlplane.tasks import host_logs, host_rounds, hosts

logger = logging.getLogger(__name__)
PERIOD_S = 2.0
_stopping = threading.Event()
_threads: list[threading.Thread] = []


@worker_init.connect
def claim_name(**_: Any) -> None:
    """Before anything else: a worker on a host whose name another one has, or whose clock is wrong, does not start."""
    try:
        hosts.claim()
    except (hosts.NameTaken, ClocksDiffer) as problem:
        raise SystemExit(f"error: {problem}") from None
    except OSError as problem:
        raise SystemExit(f"error: HEADGATE_TASK_DIR can't be written: {problem}") from None
    except DatabaseError as problem:
        logger.warning("the host's name is claimed once the metadata store answers: %s", problem)
    finally:
        release_connections()  # children are forked next


@worker_ready.connect
def start(**_: Any) -> None:
    """Once; a worker is ready again after each time that it has lost Valkey."""
    if not _threads:
        _threads.extend(threading.Thread(target=t, name=t.__name__, daemon=True) for t in (_have_rounds, _answer))
        for thread in _threads:
            thread.start()


@worker_shutdown.connect
def stop(**_: Any) -> None:
    """The host's name is free."""
    if not _threads:
        return
    _stopping.set()
    try:
        with borrowed_connection():
            hosts.release()
    except DatabaseError as problem:
        logger.warning("the host's name is free when its lease is over: %s", problem)


def _have_rounds() -> None:
    while not _stopping.wait(PERIOD_S):
        try:
            with borrowed_connection():
                _round()
        except Exception:
            logger.exception("a round of this host has failed")


def _round() -> None:
    try:
        hosts.hold()
    except (hosts.NameTaken, ClocksDiffer) as problem:
        logger.critical("%s This worker ends.", problem)
        os.kill(os.getpid(), signal.SIGTERM)
    else:
        host_rounds.run()


def _answer() -> None:
    client = host_logs.new_client()
    while not _stopping.is_set():
        try:
            host_logs.answer_next(client)
        except redis.RedisError as problem:
            logger.warning("logs of this host's tasks can't be asked for: %s", problem)
            _stopping.wait(PERIOD_S)
        except Exception:
            logger.exception("an ask for a log was not answered")
