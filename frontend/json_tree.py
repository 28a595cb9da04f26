"""A JSON value as nested lists. Names and texts are somebody else's: always escaped, and none that hides itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from frontend.payload import visible

MAX_NODES = 2000
MAX_CHARACTERS = 2000  # of one text
DEEPEST = 30


def tree_html(value: Any) -> SafeString:
    """The value; of a large one the beginning, and it says so."""
    return _Tree().render(value, DEEPEST)


class _Tree:
    def __init__(self) -> None:
        self._remaining = MAX_NODES

    def render(self, value: Any, depth: int) -> SafeString:
        self._remaining -= 1
        if isinstance(value, dict | list) and value:
            if not depth:
                return format_html('<span class="text-body-secondary">{}</span>', "nested further")
            return format_html('<ul class="tree">{}</ul>', format_html_join("", "{}", self._parts(value, depth)))
        return format_html("<code>{}</code>", _shown(value))

    def _parts(self, value: dict[str, Any] | list[Any], depth: int) -> Iterator[tuple[SafeString]]:
        named = value.items() if isinstance(value, dict) else enumerate(value)
        for number, (name, part) in enumerate(named):
            if self._remaining <= 0:
                more = len(value) - number
                yield (format_html('<li class="text-body-secondary">{} more, not shown</li>', more),)
                return
            yield (format_html("<li><span>{}</span>: {}</li>", _shown_name(name), self.render(part, depth - 1)),)


def _shown_name(name: Any) -> str:
    return visible(str(name)[:MAX_CHARACTERS])


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return visible(text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…")
