"""Settings that are missing, contradict each other, or let strangers in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

from controlplane.common.environment import variables_read
from controlplane.operations.doctor.findings import Finding, fail, ok, warn
from controlplane.segments.orphans import SAFE_GRACE
from ingestion.specs.messages.deep_storage import local_folder

NAME = "settings"
WEB_THREADS = 12  # each takes a connection of the pool: see controlplane/config/asgi.py
# Read by the programs beside the control plane, or passed on to applications.
_READ_ELSEWHERE = {
    *("HEADGATE_LOGIN_PASSWORD", "HEADGATE_HOME", "HEADGATE_CACHE_DIR", "HEADGATE_CONNECTOR_FAILPOINTS"),
    *(f"HEADGATE_{name}" for name in ("TOKEN", "PROFILE", "CONFIG", "URL")),  # of the command line
}


def check_settings() -> Iterator[Finding]:
    """What is wrong with them; one finding if nothing is."""
    found = [*_insecure(), *_contradictory(), *_unknown(), *_of_django()]
    yield from found or [ok(NAME, f"{len(variables_read)} settings can be read and fit each other")]


def _insecure() -> Iterator[Finding]:
    public = [host for host in settings.ALLOWED_HOSTS if not _is_local(host)]
    if settings.DEBUG:
        yield fail(NAME, "HEADGATE_DEBUG is on: error pages show settings and code", "Unset it.")
    if "*" in settings.ALLOWED_HOSTS:
        yield fail(NAME, "HEADGATE_ALLOWED_HOSTS is *: any host name is believed", "Name the site's hosts.")
    if settings.INSECURE_COOKIES and public:
        found = f"HEADGATE_INSECURE_COOKIES is on, but the site answers to {', '.join(public)}: logins can be read"
        yield warn(NAME, found, "Put a proxy with TLS in front, set HEADGATE_BEHIND_PROXY, and unset it.")
    if len(settings.SECRET_KEY) < 50 or len(set(settings.SECRET_KEY)) < 5:
        yield fail(NAME, "HEADGATE_SECRET_KEY is too short", "Give it 50 random characters; see Another secret key.")
    if settings.FAILPOINTS_FILE:
        yield fail(NAME, "HEADGATE_FAILPOINTS makes applications fail on purpose", "Unset it.")
    valkey = urlsplit(settings.REDIS_URL)
    if not valkey.password and not _is_local(valkey.hostname or "localhost"):
        found = f"Valkey on {valkey.hostname} asks for no password: who reaches it can start jobs"
        yield warn(NAME, found, "Set requirepass there and the password in HEADGATE_REDIS_URL.")
    if settings.SPARK_MASTER != "local" and not settings.SPARK_SECRET:
        yield warn(NAME, "the Spark cluster has no secret", "Set HEADGATE_SPARK_SECRET.")


def _contradictory() -> Iterator[Finding]:
    if settings.SECURE_SSL_REDIRECT and not settings.PROXIES:
        found = "HEADGATE_SSL_REDIRECT is on, but HEADGATE_BEHIND_PROXY is 0: every request is redirected for ever"
        yield fail(NAME, found, "Set HEADGATE_BEHIND_PROXY to the number of proxies in front.")
    internal = urlsplit(settings.INTERNAL_URL).hostname or ""
    if not any(_fits(host, internal) for host in settings.ALLOWED_HOSTS):
        found = f"{internal}, the host of HEADGATE_INTERNAL_URL, is not in HEADGATE_ALLOWED_HOSTS"
        yield fail(NAME, found, "Add it: applications are refused without it.")
    if int(settings.DATABASES["default"]["OPTIONS"]["pool"]["max_size"]) <= WEB_THREADS:
        found = f"HEADGATE_DATABASE_POOL is not above {WEB_THREADS}: requests wait for connections"
        yield warn(NAME, found, "Set it to 16.")
    if settings.SPARK_MASTER != "local" and (folder := local_folder(settings.DEEP_STORAGE)) is not None:
        found = f"deep storage is the folder {folder}, and executors run on other machines"
        yield warn(NAME, found, "Mount it at the same place on each of them.")
    if settings.ORPHAN_GRACE < SAFE_GRACE:
        found = f"HEADGATE_ORPHAN_GRACE is shorter than {SAFE_GRACE}: files that are about to be published may go"
        yield fail(NAME, found, "Set it to PT24H.")
    if settings.EMAIL_HOST and not settings.PUBLIC_URL:
        yield warn(NAME, "mails have no links: HEADGATE_PUBLIC_URL is not set", "Set it to the site's address.")


def _unknown() -> Iterator[Finding]:
    known = variables_read | _READ_ELSEWHERE
    for name in sorted(os.environ):
        if name.startswith("HEADGATE_") and name.removesuffix("_FILE") not in known:
            yield warn(NAME, f"{name} is set, but there is no such setting", "Check its spelling.")


def _of_django() -> Iterator[Finding]:
    """Errors of Django's own system check. Its warnings on security are about what the settings here derive."""
    for message in checks.run_checks():
        if message.is_serious() and not message.is_silenced():
            yield fail(NAME, f"{message.id}: {message.msg}", message.hint or "See Django's system checks.")


def _fits(pattern: str, host: str) -> bool:
    return pattern == "*" or host == pattern or (pattern.startswith(".") and f".{host}".endswith(pattern))


def _is_local(host: str) -> bool:
    """Loopback, or a name without a dot, which only a private network knows."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return "." not in host.removeprefix(".") and host != "*"
