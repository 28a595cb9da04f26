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
from controlplane.operations.doctor.findings import FAIL, OK, SKIPPED, WARN, Finding
from controlplane.tasks import spares
from controlplane.tasks.models import Host

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
        advice = "Check HEADGATE_REDIS_URL, the server and the network."
        yield Finding(True, FAIL, f"it does not answer: {error}", advice)
        return
    version = info.get("valkey_version") or info.get("redis_version")
    name = f"{'Valkey' if 'valkey_version' in info else 'Redis'} {version}"
    is_replica, policy = info.get("role") not in (None, "master"), info.get("maxmemory_policy", "noeviction")
    yield Finding(is_replica, FAIL, f"{name} is a replica", "Point HEADGATE_REDIS_URL at the primary.")
    forgets = int(info.get("maxmemory", 0)) and policy != "noeviction"
    found = f"{name} may throw jobs away: maxmemory-policy is {policy}"
    yield Finding(forgets, WARN, found, "Set it to noeviction: it holds the queue.")
    yield Finding(True, OK, f"{name}, {info.get('used_memory_human', '?')} in use")


def check_web() -> Iterator[Finding]:
    """Whether applications reach it, asked from here."""
    url = settings.INTERNAL_URL
    try:
        trusted = httpx2.create_ssl_context()  # with SSL_CERT_FILE, as applications have it
        status = httpx2.get(f"{url}/readyz", timeout=TIMEOUT_S, verify=trusted, trust_env=False).status_code
    except httpx2.HTTPError as error:
        advice = "Start the web process, or correct HEADGATE_INTERNAL_URL."
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            advice = "Install your authority's certificate on this machine, or name its file in SSL_CERT_FILE."
        yield Finding(True, FAIL, f"{url} does not answer: {error or type(error).__name__}", advice)
        return
    yield Finding(status == 400, FAIL, f"{url} refuses its own name", "Add it to HEADGATE_ALLOWED_HOSTS.")
    yield Finding(status not in (200, 400), FAIL, f"{url} answers {status}", "See the log of the web process.")
    yield Finding(True, OK, f"{url} is ready")


def check_jobs() -> Iterator[Finding]:
    """Workers, the queues that they consume, and beat. It takes ``BEAT_S``."""
    queues = [queue.name for queue in current_app.amqp.queues.values()]
    try:
        ask = current_app.control.inspect(timeout=TIMEOUT_S)
        consumed: Any = ask.active_queues() or {}
        lengths, before = _lengths(queues), ask.stats() or {}
        time.sleep(BEAT_S)
        after, grown = ask.stats() or {}, sum(_lengths(queues).values()) - sum(lengths.values())
    except (redis.RedisError, OSError, *current_app.connection().connection_errors):
        yield from (Finding(True, SKIPPED, "Valkey does not answer", check=name) for name in ("workers", "beat"))
        return
    yield from judge_workers(queues, {w: [q["name"] for q in qs] for w, qs in consumed.items()}, lengths)
    yield from judge_beat(before, after, grown)


def _lengths(queues: Sequence[str]) -> dict[str, int]:
    with _valkey() as client:
        return {name: int(str(client.llen(name))) for name in queues}


def judge_workers(
    queues: Sequence[str], consumed: Mapping[str, Sequence[str]], lengths: Mapping[str, int]
) -> Iterator[Finding]:
    """``consumed``: of each worker that answers, its queues. ``lengths``: jobs that wait, by queue."""
    yield Finding(not consumed, FAIL, "none answers", "Start a worker: docker/entrypoint.sh worker.")
    nobody = ", ".join(q for q in queues if not any(q in names for names in consumed.values()))
    advice = "Start a worker for it: -Q with its name."
    yield Finding(consumed and nobody, FAIL, f"nobody consumes {nobody}", advice)
    advice = "Start more workers, or look for jobs that hang."
    for queue, length in lengths.items():
        yield Finding(consumed and length > LONG_QUEUE, WARN, f"{length} jobs wait in {queue}", advice)
    yield Finding(True, OK, f"{', '.join(sorted(consumed))}: every queue is consumed")


def judge_beat(before: Stats, after: Stats, grown: int) -> Iterator[Finding]:
    """By the jobs that workers have done in ``BEAT_S``, and by how many more wait."""
    both = before.keys() & after.keys()
    done = sum(sum(after[w]["total"].values()) - sum(before[w]["total"].values()) for w in both)
    jobs, advice = max(0, done) + max(0, grown), "Start beat: docker/entrypoint.sh beat."
    yield Finding(not jobs, FAIL, f"no job came in {BEAT_S:g} s", advice, "beat")
    yield Finding(True, OK, f"{jobs} jobs came in {BEAT_S:g} s", check="beat")


def check_hosts() -> Iterator[Finding]:
    """Uses Django's connection."""
    return judge_hosts(list(Host.objects.order_by("name").values_list("name", "seen_at")), clock())


def judge_hosts(hosts: Sequence[tuple[str, datetime]], now: datetime) -> Iterator[Finding]:
    live = [name for name, seen_at in hosts if now - seen_at < settings.TASK_HEARTBEAT_TIMEOUT]
    gone = ", ".join(sorted({name for name, _ in hosts} - set(live)))
    rest = f"; without one: {gone}" if gone else ""
    found = f"no host has a worker that renews its lease{rest}"
    yield Finding(not live, FAIL, found, "Start a worker, and see its log.")
    yield Finding(True, OK, f"with a worker: {', '.join(live)}{rest}")


def check_mail() -> Iterator[Finding]:
    """Connects and logs in; sends nothing."""
    yield Finding(not mail.is_configured(), OK, "HEADGATE_EMAIL_URL is not set: no mail is sent")
    place = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    try:
        if mail.is_configured():
            get_connection().open()
    except (smtplib.SMTPException, OSError) as error:
        advice = "Check HEADGATE_EMAIL_URL and the mail server."
        yield Finding(True, FAIL, f"{place}: {mail.reason_of(error)}", advice)
    yield Finding(True, OK, f"{place} accepts the login" if settings.EMAIL_HOST_USER else f"{place} answers")


def check_task_folder() -> Iterator[Finding]:
    folder = settings.TASK_DIR
    free = shutil.disk_usage(folder if folder.is_dir() else "/").free
    advice = "The worker makes it; web needs it for logs."
    yield Finding(not folder.is_dir(), WARN, f"{folder} does not exist on this host", advice)
    is_foreign = folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK)
    yield Finding(is_foreign, FAIL, f"{folder} can't be written", "Give it to the user of the worker.")
    found = f"{folder}, {free / 1024**3:.1f} GiB free"
    if settings.SPARE_APPLICATIONS:
        found += f", {len(spares.waiting())} of {settings.SPARE_APPLICATIONS} applications wait for a task"
    is_full = folder.is_dir() and free < FREE_BYTES
    yield Finding(is_full, FAIL, found, "Make room: logs of tasks are written there.")
    yield Finding(True, OK, found)
