"""All addresses of the site, as the URL resolver has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Route:
    """One address. ``methods``: those a class-based view has; empty for a function, which may answer any."""

    pattern: str
    methods: frozenset[str]
    view: Any

    def path(self, **arguments: object) -> str:
        """The address with its parameters filled in; each must be given."""
        plain = "api/<rest>" if self.pattern.startswith("^") else self.pattern  # the one that takes the rest of a part
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda m: str(arguments[m[1]]), plain)

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"<(?:\w+:)?(\w+)>", self.pattern)


def all_routes() -> list[Route]:
    """Every route of the site."""
    return list(_routes(get_resolver(), ""))


def _routes(resolver: URLResolver, prefix: str) -> Iterator[Route]:
    for entry in resolver.url_patterns:
        pattern = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _routes(entry, pattern)
        elif isinstance(entry, URLPattern):
            yield Route(pattern, _methods(entry.callback), entry.callback)


def _methods(callback: Any) -> frozenset[str]:
    view = getattr(callback, "cls", None) or getattr(callback, "view_class", None)
    allowed = getattr(view, "http_method_names", ())
    return frozenset(m.upper() for m in METHODS if m in allowed and hasattr(view, m))
