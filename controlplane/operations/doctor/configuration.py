"""Settings that are missing, contradict each other, or let strangers in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.http.request import validate_host

from controlplane.common.environment import variables_read
from controlplane.operations.doctor.findings import FAIL, OK, WARN, Finding
from controlplane.segments.orphans import SAFE_GRACE
from ingestion.specs.messages.deep_storage import local_folder

WEB_THREADS = 12  # each takes a connection of the pool: see controlplane/config/asgi.py
# Read by the programs beside the control plane, or passed on to applications.
_READ_ELSEWHERE = {
    f"HEADGATE_{name}"
    for name in ("LOGIN_PASSWORD", "HOME", "CACHE_DIR", "CONNECTOR_FAILPOINTS", "TOKEN", "PROFILE", "CONFIG", "URL")
}


def check_settings() -> Iterator[Finding]:
    yield from (*_insecure(), *_contradictory())
    known = variables_read | _READ_ELSEWHERE
    for name in sorted(os.environ):
        unknown = name.startswith("HEADGATE_") and name.removesuffix("_FILE") not in known
        yield Finding(unknown, WARN, f"{name} is set, but there is no such setting", "Check its spelling.")
    for message in checks.run_checks():  # its warnings on security are about what the settings here derive
        serious = message.is_serious() and not message.is_silenced()
        yield Finding(serious, FAIL, f"{message.id}: {message.msg}", message.hint or "See Django's system checks.")
    yield Finding(True, OK, f"{len(variables_read)} settings can be read and fit each other")


def _insecure() -> Iterator[Finding]:
    public = ", ".join(host for host in settings.ALLOWED_HOSTS if not _is_local(host))
    yield Finding(settings.DEBUG, FAIL, "HEADGATE_DEBUG is on: error pages show settings and code", "Unset it.")
    any_host = "HEADGATE_ALLOWED_HOSTS is *: any host name is believed"
    yield Finding("*" in settings.ALLOWED_HOSTS, FAIL, any_host, "Name the site's hosts.")
    found = f"HEADGATE_INSECURE_COOKIES is on, but the site answers to {public}: logins can be read"
    advice = "Put a proxy with TLS in front, set HEADGATE_BEHIND_PROXY, and unset it."
    yield Finding(settings.INSECURE_COOKIES and public, WARN, found, advice)
    weak, advice = len(settings.SECRET_KEY) < 50, "Give it 50 random characters; see Another secret key."
    yield Finding(weak or len(set(settings.SECRET_KEY)) < 5, FAIL, "HEADGATE_SECRET_KEY is too short", advice)
    found = "HEADGATE_FAILPOINTS makes applications fail on purpose"
    yield Finding(settings.FAILPOINTS_FILE, FAIL, found, "Unset it.")
    valkey = urlsplit(settings.REDIS_URL)
    is_open = not valkey.password and not _is_local(valkey.hostname or "localhost")
    found = f"Valkey on {valkey.hostname} asks for no password: who reaches it can start jobs"
    yield Finding(is_open, WARN, found, "Set requirepass there and the password in HEADGATE_REDIS_URL.")
    is_open = settings.SPARK_MASTER.startswith("spark://") and not settings.SPARK_SECRET
    yield Finding(is_open, WARN, "the Spark cluster has no secret", "Set HEADGATE_SPARK_SECRET.")


def _contradictory() -> Iterator[Finding]:
    for_ever = settings.SECURE_SSL_REDIRECT and not settings.PROXIES
    found = "HEADGATE_SSL_REDIRECT is on, but HEADGATE_BEHIND_PROXY is 0: every request is redirected for ever"
    yield Finding(for_ever, FAIL, found, "Set HEADGATE_BEHIND_PROXY to the number of proxies in front.")
    internal = urlsplit(settings.INTERNAL_URL).hostname or ""
    found = f"{internal}, the host of HEADGATE_INTERNAL_URL, is not in HEADGATE_ALLOWED_HOSTS"
    is_refused = not validate_host(internal, settings.ALLOWED_HOSTS)
    yield Finding(is_refused, FAIL, found, "Add it: applications are refused without it.")
    is_small = int(settings.DATABASES["default"]["OPTIONS"]["pool"]["max_size"]) <= WEB_THREADS
    found = f"HEADGATE_DATABASE_POOL is not above {WEB_THREADS}: requests wait for connections"
    yield Finding(is_small, WARN, found, "Set it to 16.")
    folder = local_folder(settings.DEEP_STORAGE) if settings.SPARK_MASTER != "local" else None
    found = f"deep storage is the folder {folder}, and executors run on other machines"
    yield Finding(folder is not None, WARN, found, "Mount it at the same place on each of them.")
    found = f"HEADGATE_ORPHAN_GRACE is shorter than {SAFE_GRACE}: files that are about to be published may go"
    yield Finding(settings.ORPHAN_GRACE < SAFE_GRACE, FAIL, found, "Set it to PT24H.")
    found = "mails have no links: HEADGATE_PUBLIC_URL is not set"
    yield Finding(settings.EMAIL_HOST and not settings.PUBLIC_URL, WARN, found, "Set it to the site's address.")


def _is_local(host: str) -> bool:
    """Loopback, or a name without a dot, which only a private network knows."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return "." not in host.removeprefix(".") and host != "*"
