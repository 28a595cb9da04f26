"""Headgate's own processes, and what they need beside the metadata store: Valkey, mail, the folder of tasks."""

from __future__ import annotations

import os
import shutil
import smtplib
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import httpx2
import redis
from celery import current_app
from django.conf import settings
from django.core.mail import get_connection

from controlplane.common import mail
from controlplane.common.database import clock
from controlplane.operations.doctor.findings import Finding, fail, ok, skipped, warn
from controlplane.tasks.models import Host

VALKEY, WEB, WORKERS, BEAT, HOSTS, MAIL, TASKS = (
    *("Valkey", "web", "workers", "beat", "hosts", "mail", "task folder"),
)
TIMEOUT_S = 3.0
BEAT_S = 5.0  # its shortest period is two seconds
LONG_QUEUE = 1_000
FREE_BYTES = 1024**3
Stats = Mapping[str, Mapping[str, Any]]


def _valkey() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, retry=None
    )


def check_valkey() -> Iterator[Finding]:
    try:
        with _valkey() as client:
            info: Any = client.info()
    except (redis.RedisError, OSError) as error:
        yield fail(VALKEY, f"it does not answer: {error}", "Check HEADGATE_REDIS_URL, the server and the network.")
        return
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = info.get("valkey_version") or info.get("redis_version")
    policy = info.get("maxmemory_policy", "noeviction")
    if int(info.get("maxmemory", 0)) and policy != "noeviction":
        found = f"{name} {version} may throw jobs away: maxmemory-policy is {policy}"
        yield warn(VALKEY, found, "Set it to noeviction: it holds the queue.")
    elif info.get("role") not in (None, "master"):
        yield fail(VALKEY, f"{name} {version} is a replica", "Point HEADGATE_REDIS_URL at the primary.")
    else:
        yield ok(VALKEY, f"{name} {version}, {info.get('used_memory_human', '?')} in use")


def check_web() -> Iterator[Finding]:
    """Whether applications reach it, asked from here."""
    try:
        answer = httpx2.get(f"{settings.INTERNAL_URL}/readyz", timeout=TIMEOUT_S, trust_env=False)
    except httpx2.HTTPError as error:
        found = f"{settings.INTERNAL_URL} does not answer: {type(error).__name__}"
        yield fail(WEB, found, "Start the web process, or correct HEADGATE_INTERNAL_URL.")
        return
    if answer.status_code == 200:
        yield ok(WEB, f"{settings.INTERNAL_URL} is ready")
    elif answer.status_code == 400:
        yield fail(WEB, f"{settings.INTERNAL_URL} refuses its own name", "Add it to HEADGATE_ALLOWED_HOSTS.")
    else:
        yield fail(WEB, f"{settings.INTERNAL_URL} answers {answer.status_code}", "See the log of the web process.")


def check_jobs() -> Iterator[Finding]:
    """Workers, the queues that they consume, and beat. It takes ``BEAT_S``."""
    queues = [queue.name for queue in current_app.amqp.queues.values()]
    try:
        ask = current_app.control.inspect(timeout=TIMEOUT_S)
        consumed: Any = ask.active_queues() or {}
        lengths = _lengths(queues)
        before: Any = ask.stats() or {}
        time.sleep(BEAT_S)
        after: Any = ask.stats() or {}
        grown = sum(_lengths(queues).values()) - sum(lengths.values())
    except (redis.RedisError, OSError, *current_app.connection().connection_errors):
        yield from (skipped(name, "Valkey does not answer") for name in (WORKERS, BEAT))
        return
    yield from judge_workers(queues, {w: [q["name"] for q in qs] for w, qs in consumed.items()}, lengths)
    yield judge_beat(before, after, grown)


def _lengths(queues: Sequence[str]) -> dict[str, int]:
    with _valkey() as client:
        return {name: int(str(client.llen(name))) for name in queues}


def judge_workers(
    queues: Sequence[str], consumed: Mapping[str, Sequence[str]], lengths: Mapping[str, int]
) -> Iterator[Finding]:
    """``consumed``: of each worker that answers, its queues. ``lengths``: jobs that wait, by queue."""
    if not consumed:
        yield fail(WORKERS, "none answers", "Start a worker: celery -A controlplane.config worker.")
        return
    nobody = [queue for queue in queues if not any(queue in names for names in consumed.values())]
    if nobody:
        yield fail(WORKERS, f"nobody consumes {', '.join(nobody)}", "Start a worker for it: -Q with its name.")
    for queue, length in lengths.items():
        if length > LONG_QUEUE:
            yield warn(WORKERS, f"{length} jobs wait in {queue}", "Start more workers, or look for jobs that hang.")
    if not nobody:
        yield ok(WORKERS, f"{', '.join(sorted(consumed))}: every queue is consumed")


def judge_beat(before: Stats, after: Stats, grown: int) -> Finding:
    """By the jobs that workers have done in ``BEAT_S``, and by how many more wait."""
    both = before.keys() & after.keys()
    done = sum(sum(after[w]["total"].values()) - sum(before[w]["total"].values()) for w in both)
    if done > 0 or grown > 0:
        return ok(BEAT, f"{max(0, done) + max(0, grown)} jobs came in {BEAT_S:g} s")
    return fail(BEAT, f"no job came in {BEAT_S:g} s", "Start beat: celery -A controlplane.config beat.")


def check_hosts() -> Iterator[Finding]:
    """Uses Django's connection."""
    hosts = [(host.name, host.seen_at) for host in Host.objects.order_by("name")]
    yield judge_hosts(hosts, clock())


def judge_hosts(hosts: Sequence[tuple[str, datetime]], now: datetime) -> Finding:
    live = [name for name, seen_at in hosts if now - seen_at < settings.TASK_HEARTBEAT_TIMEOUT]
    gone = sorted({name for name, _ in hosts} - set(live))
    rest = f"; without one: {', '.join(gone)}" if gone else ""
    if not live:
        return fail(HOSTS, f"no host has a worker that renews its lease{rest}", "Start a worker, and see its log.")
    return ok(HOSTS, f"with a worker: {', '.join(live)}{rest}")


def check_mail() -> Iterator[Finding]:
    """Connects and logs in; sends nothing."""
    if not mail.is_configured():
        yield ok(MAIL, "HEADGATE_EMAIL_URL is not set: no mail is sent")
        return
    place = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    try:
        with get_connection():
            yield ok(MAIL, f"{place} accepts the login" if settings.EMAIL_HOST_USER else f"{place} answers")
    except (smtplib.SMTPException, OSError) as error:
        yield fail(MAIL, f"{place}: {mail.reason_of(error)}", "Check HEADGATE_EMAIL_URL and the mail server.")


def check_task_folder() -> Iterator[Finding]:
    folder = settings.TASK_DIR
    if not folder.is_dir():
        yield warn(TASKS, f"{folder} does not exist on this host", "The worker makes it; web needs it for logs.")
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield fail(TASKS, f"{folder} can't be written", "Give it to the user of the worker.")
        return
    free = shutil.disk_usage(folder).free
    found = f"{folder}, {free / 1024**3:.1f} GiB free"
    if free < FREE_BYTES:
        yield fail(TASKS, found, "Make room: logs of tasks are written there.")
    else:
        yield ok(TASKS, found)
