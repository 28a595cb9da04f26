"""The stream of a page's events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from importlib import import_module

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from controlplane.common.database import release_connections
from controlplane.common.errors import HeadgateError
from controlplane.teams.models import User
from frontend.live.hub import hub
from frontend.live.stream import Stream
from frontend.live.topics import Subscription, read_subscription

MAX_STREAMS = 1_000  # of a process
MAX_OF_USER = 50  # of these; pages without one ask every few seconds


@require_GET
async def stream(request: HttpRequest) -> HttpResponseBase:
    """Which of the address's topics (``t``) change, as server-sent events. Whatever is no stream ends the asking."""
    topics = request.GET.getlist("t")
    try:
        subscription = await _subscription(request, topics)
    except HeadgateError as error:
        return HttpResponse(error.detail, status=error.status, content_type="text/plain; charset=utf-8")
    if subscription is None:
        return HttpResponse("Log in first.", status=HTTPStatus.UNAUTHORIZED, content_type="text/plain; charset=utf-8")
    if not isinstance(request, ASGIRequest):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)  # the server can't stream: the page asks by itself
    if hub().closing or hub().streams >= MAX_STREAMS:
        return HttpResponse("Ask again later.", status=HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": "30"})
    if hub().streams_of(subscription.user) >= MAX_OF_USER:
        text = f"You have {MAX_OF_USER} pages open. This one reloads its data every few seconds."
        return HttpResponse(text, status=HTTPStatus.TOO_MANY_REQUESTS, headers={"Retry-After": "30"})
    page_stream = Stream(subscription, lambda: _allowed(request, topics))
    answer = StreamingHttpResponse(_events(page_stream, request.headers.get("Last-Event-ID", "")), "text/event-stream")
    # Nothing in between may keep it back, or pack it.
    answer["Cache-Control"], answer["X-Accel-Buffering"] = "no-store, no-transform", "no"
    return answer


async def _events(page_stream: Stream, last_event_id: str) -> AsyncIterator[bytes]:
    process_hub = hub()
    process_hub.add(page_stream, last_event_id)
    try:
        async for event in page_stream.events(process_hub.last_id):
            yield event
    finally:
        process_hub.remove(page_stream)


async def _allowed(request: HttpRequest, topics: list[str]) -> Subscription | None:
    try:
        return await _subscription(request, topics)
    except HeadgateError:
        return None


@sync_to_async
def _subscription(request: HttpRequest, topics: list[str]) -> Subscription | None:
    """What the session's user may hear now; None for nobody. No stream keeps a connection of the database."""
    try:
        user = _current_user(request)
        return None if user is None else read_subscription(user, topics)
    finally:
        release_connections()


def _current_user(request: HttpRequest) -> User | None:
    """Read anew: the session may have ended, and the user may have been turned off."""
    key = request.session.session_key
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(request)
    return user if isinstance(user, User) and user.is_active else None
