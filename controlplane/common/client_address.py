"""Where a request comes from. Whoever counts or notes a client's address asks here, and nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

log = logging.getLogger(__name__)
_HEADER = "HTTP_X_FORWARDED_FOR"
_PREFIX = 64  # what a provider gives one customer, who has all of its addresses
_current: ContextVar[str] = ContextVar("client address", default="")
_browser: ContextVar[str] = ContextVar("client's browser", default="")
LONGEST_BROWSER = 300


def client_address(request: HttpRequest) -> str:
    """The client's IP address; empty when the server was told none.

    Each proxy adds to ``X-Forwarded-For`` who has spoken to it. So of its end as many entries are believed as there
    are proxies (``HEADGATE_BEHIND_PROXY``): what stands before them was written by the client.
    """
    direct = _canonical(request.META.get("REMOTE_ADDR", ""))
    entries = [e.strip() for e in request.META.get(_HEADER, "").split(",") if e.strip()]
    if not settings.PROXIES or not entries:
        return direct
    return _canonical(entries[-min(settings.PROXIES, len(entries))]) or direct


def rate_limit_key(address: str) -> str:
    """What limits count by: the address, of version 6 its network, all of which one client may have."""
    if ":" not in address:
        return address
    return str(ip_network((address, _PREFIX), strict=False))


def current_address() -> str:
    """The address of the request that is being answered; empty outside of one."""
    return _current.get()


def current_browser() -> str:
    """What the client of that request says it is (``User-Agent``), in printable characters; empty outside of one."""
    return _browser.get()


class ClientAddress:
    """Middleware: remembers the address while a request is answered, for the audit trail."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._warned = False

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        self._warn_once(request)
        token = _current.set(client_address(request))
        user_agent = request.META.get("HTTP_USER_AGENT", "")
        browser = _browser.set("".join(c for c in user_agent if c.isprintable())[:LONGEST_BROWSER])
        try:
            return self._get_response(request)
        finally:
            _current.reset(token)
            _browser.reset(browser)

    def _warn_once(self, request: HttpRequest) -> None:
        if settings.PROXIES or self._warned or _HEADER not in request.META:
            return
        self._warned = True
        log.warning(
            "a request has the header X-Forwarded-For, which Headgate ignores: behind a proxy, set "
            "HEADGATE_BEHIND_PROXY to the number of proxies; until then all users of a proxy count as one client"
        )


def _canonical(entry: str) -> str:
    """An address as it is written in one way only, without a port; empty for what is none."""
    host = entry[1:].partition("]")[0] if entry.startswith("[") else entry
    if host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
