"""The ASGI door that uvicorn serves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from django.core.asgi import get_asgi_application
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
THREADS = 12  # fewer than the pool of database connections has


class IndexersHandler(ASGIHandler):
    """Django without middleware, signals and a thread of its own for every request, for ``/internal/``.

    Sessions, pages' headers and static files mean nothing there, and each hop costs on the path of every record.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        self._view_middleware: list[object] = []
        self._threads = ThreadPoolExecutor(THREADS, "indexers")
        self._answer = convert_exception_to_response(self._view)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            request, response = self.create_request(scope, body)
            if request is not None:
                loop = asyncio.get_running_loop()
                response = await loop.run_in_executor(self._threads, self._respond, request)
        await self.send_response(cast(HttpResponse, response), send)

    def _respond(self, request: HttpRequest) -> HttpResponse:
        close_old_connections()
        try:
            return cast(HttpResponse, self._answer(request))
        finally:
            close_old_connections()

    def _view(self, request: HttpRequest) -> HttpResponse:
        view, args, kwargs = self.resolve_request(request)
        answer: HttpResponse = view(request, *args, **kwargs)
        return answer


for_people = get_asgi_application()
for_indexers = IndexersHandler()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Indexers by the short way, everybody else through all middleware."""
    inside = scope["type"] == "http" and scope["path"].startswith("/internal/")
    await (for_indexers if inside else for_people)(scope, receive, send)
