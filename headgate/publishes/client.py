"""Asking a control plane over REST, with a token that no message holds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from headgate.errors import HeadgateError, OptionError

TIMEOUT_S = 60.0


class Refused(HeadgateError):
    """The control plane's answer, in its own words."""


class _NoRedirect(HTTPRedirectHandler):
    """Follows nothing: Python would send the token along, to whatever host an answer names."""

    def redirect_request(self, *_: Any) -> None:
        return None


class ControlPlane:
    """One site, as the user whose token it is."""

    def __init__(self, url: str | None, token: str | None) -> None:
        self._url = (url or os.environ.get("HEADGATE_URL", "")).rstrip("/")
        self._token = token or os.environ.get("HEADGATE_TOKEN", "")
        if urlsplit(self._url).scheme not in ("http", "https"):
            raise OptionError("option url is missing: the site's address, such as https://headgate.example")
        if not self._token:
            raise OptionError("option token is missing: an API token, or HEADGATE_TOKEN in the driver's environment")
        proxies = [ProxyHandler({})] if _is_local(self._url) else []
        self._open = build_opener(_NoRedirect(), *proxies).open

    def datasource(self, name: str) -> dict[str, Any]:
        """Its columns, and what it holds."""
        return self._get(f"/api/v1/datasources/{quote(name, safe='')}/", {})

    def publishes(self, name: str, after: int, limit: int = 1) -> dict[str, Any]:
        """A page of its publishes with greater numbers."""
        return self._get(f"/api/v1/datasources/{quote(name, safe='')}/publishes/", {"after": after, "limit": limit})

    def publishes_between(self, name: str, start: int, end: int) -> Iterator[dict[str, Any]]:
        """Those with numbers from ``start + 1`` to ``end``."""
        while start < end:
            page = self.publishes(name, start, min(500, end - start))["results"]
            if not page:
                raise HeadgateError(
                    f"publishes {start + 1} to {end} of {name} are not there: is it another datasource?"
                )
            yield from page
            start = page[-1]["number"]

    def files(self, name: str, window: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """The files of a time window, as of one moment."""
        page = self._get(f"/api/v1/datasources/{quote(name, safe='')}/manifest/", {**window, "limit": 500})
        while True:
            yield from page["results"]
            if page["next"] is None:
                return
            page = self._get(_path(page["next"]), {})

    def _get(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        address = self._url + path + (f"?{urlencode(query)}" if query else "")
        request = Request(address, headers={"Authorization": f"Bearer {self._token}"})  # noqa: S310 - checked above
        try:
            with self._open(request, timeout=TIMEOUT_S) as response:
                answer: dict[str, Any] = json.load(response)
        except HTTPError as error:
            raise Refused(f"{self._url} answers {error.code}: {_detail(error)}") from None
        except URLError as error:
            raise HeadgateError(f"{self._url} can't be reached: {error.reason}") from None
        return answer


def _path(address: str) -> str:
    """Of a page's address, which is for the host that the control plane takes itself for."""
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}"


def _is_local(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def _detail(error: HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
