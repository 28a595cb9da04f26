"""A part of a page that many people look at is made once for all who may see the same.

A page that hears of a change says of which (``Last-Event-ID``). What was begun after this process had heard of that
change shows it, and is as good as made anew: it is never older than what its reader was told. For whoever has heard
nothing, or has heard it from another process, the part is made anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import update_wrapper
from http import HTTPStatus
from typing import Concatenate, ParamSpec, TypeVar

from django.http import HttpRequest, HttpResponse

from frontend.live.hub import hub_of_process
from frontend.team_scope import reach_of

P = ParamSpec("P")
MAX_CACHED = 100  # parts, of up to some hundred kB each
_CSRF_FIELD = b"csrfmiddlewaretoken"
Request = TypeVar("Request", bound=HttpRequest)
SharedView = Callable[Concatenate[Request, P], HttpResponse]


@dataclass
class _Part:
    """One, as it was made last."""

    lock: threading.Lock = field(default_factory=threading.Lock)  # held while it is made: the others wait for it
    begun: int = -1  # after which change
    content: bytes | None = None


class _Parts:
    """By what they are and who may see them; those that nobody asked for the longest go first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: OrderedDict[Hashable, _Part] = OrderedDict()

    def part(self, key: Hashable) -> _Part:
        with self._lock:
            part = self._parts.setdefault(key, _Part())
            self._parts.move_to_end(key)
            while len(self._parts) > MAX_CACHED:
                self._parts.popitem(last=False)
            return part


_parts = _Parts()


def shared(view: SharedView[Request, P]) -> SharedView[Request, P]:
    """For pages whose live part is decided by the address, by rights, and by the team that is looked at.

    The answer must have nothing else of its reader in it, such as a name. What has a form in it is never kept.
    """

    def cached_view(request: Request, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        hub, key = hub_of_process(), _key(request)
        heard_number = hub.number_of(request.headers.get("Last-Event-ID", "")) if hub is not None else None
        if hub is None or heard_number is None or key is None:
            return view(request, *args, **kwargs)
        part = _parts.part((hub, key))
        with part.lock:
            if part.content is not None and part.begun >= heard_number:
                return HttpResponse(part.content)
            number_before = hub.number
            answer = view(request, *args, **kwargs)
            cacheable = answer.status_code == HTTPStatus.OK and _CSRF_FIELD not in answer.content
            part.begun, part.content = (
                (number_before, answer.content) if cacheable and number_before is not None else (-1, None)
            )
            return answer

    return update_wrapper(cached_view, view)


def _key(request: HttpRequest) -> Hashable:
    """What is asked for, and what decides what its reader may see; None for what is not shared."""
    reach = reach_of(request)
    if request.method != "GET" or not getattr(request, "htmx", False) or reach.user is None or reach.user.limits:
        return None
    roles = frozenset((m.team_id, m.role) for m in reach.memberships)
    return request.get_full_path(), reach.user.is_superuser, roles, reach.team
