"""Where mail goes, read from one URL."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from controlplane.common.environment import EnvironmentProblem
from controlplane.config.env import is_loopback

# By the URL's scheme: its port, and whether TLS comes with STARTTLS or from the first byte.
_SCHEMES = {"smtp": (25, False, False), "smtp+tls": (587, True, False), "smtps": (465, False, True)}
TIMEOUT_S = 10


def mail_settings(url: str) -> dict[str, Any]:
    """Django's settings for ``HEADGATE_EMAIL_URL``; with an empty host for an empty one: nothing is sent then."""
    parts = _parts_of(url) if url else None
    if parts is None:
        return {"EMAIL_HOST": "", "EMAIL_TIMEOUT": TIMEOUT_S}
    port, starttls, tls = _SCHEMES[parts.scheme]
    if parts.password and not (starttls or tls) and not is_loopback(parts.hostname or ""):
        raise EnvironmentProblem(
            "HEADGATE_EMAIL_URL would send its password unencrypted: begin it with smtp+tls:// (STARTTLS) or smtps://"
        )
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or port,
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": starttls,
        "EMAIL_USE_SSL": tls,
        "EMAIL_TIMEOUT": TIMEOUT_S,
    }


def _parts_of(url: str) -> Any:
    """The URL's parts. The message repeats nothing of it: it may hold a password."""
    try:
        parts = urlsplit(url.strip())
        fits = parts.scheme in _SCHEMES and parts.hostname and (parts.port is None or parts.port > 0)
        fits = fits and parts.path in ("", "/") and not parts.query and not parts.fragment
    except ValueError:
        fits = False
    if not fits:
        raise EnvironmentProblem(
            "HEADGATE_EMAIL_URL must be smtp://, smtp+tls:// or smtps:// with user:password@host:port, and no more; "
            "write characters such as / and # of a password as %2F and %23"
        )
    return parts


def public_url(url: str) -> str:
    """``HEADGATE_PUBLIC_URL`` without a slash at its end; empty for none."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and not parts.path and not parts.query
        fits = fits and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if url and not fits:
        raise EnvironmentProblem(f"HEADGATE_PUBLIC_URL must be such as https://headgate.example.org, not {url!r}")
    return url
