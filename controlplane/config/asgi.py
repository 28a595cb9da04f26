"""The ASGI door that uvicorn serves."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import IO, Any, TypeVar, cast

import django
from django.core.exceptions import RequestAborted, RequestDataTooBig
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse

from controlplane.common.database import borrowed_connection
from controlplane.config.request_body import Body, Receive, Scope
from controlplane.config.request_measures import MeasuredRequests

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")

A = TypeVar("A")
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
THREADS = 12  # fewer than the pool of database connections has


class IndexersHandler(ASGIHandler):
    """Django without middleware, signals and a thread of its own for every request, for ``/internal/``.

    Sessions, pages' headers and static files mean nothing there, and each hop costs on the path of every record.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        self._view_middleware: list[object] = []
        self._threads = ThreadPoolExecutor(THREADS, "indexers")
        answer = cast(Callable[[HttpRequest], HttpResponse], convert_exception_to_response(self._view))
        self._answer = cast(Callable[[HttpRequest], HttpResponse], MeasuredRequests(answer))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with closing(Body(scope, receive)) as body:
                await body.begin()
                request, response = self.create_request(scope, cast(IO[bytes], body))
                if request is not None:
                    response = await self._answered(request, body)
        except RequestAborted:
            return
        await self.send_response(cast(HttpResponse, response), send)

    async def _answered(self, request: HttpRequest, body: Body) -> HttpResponse:
        """A large body is taken from those only whom the view will let in; the others never wait for it."""
        loop = asyncio.get_running_loop()
        if not body.is_complete and await loop.run_in_executor(
            self._threads, self._with_connection, is_authorized, request
        ):
            try:
                await body.finish()
            except RequestDataTooBig as error:
                return problem(413, "Too large", str(error))
            except TimeoutError:
                return problem(408, "Request timeout", "The body did not arrive in time.")
        return await loop.run_in_executor(self._threads, self._with_connection, self._answer, request)

    def _with_connection(self, do: Callable[[HttpRequest], A], request: HttpRequest) -> A:
        with borrowed_connection():
            return do(request)

    def _view(self, request: HttpRequest) -> HttpResponse:
        view, args, kwargs = self.resolve_request(request)
        answer: HttpResponse = view(request, *args, **kwargs)
        return answer


class PeopleHandler(ASGIHandler):
    """Django as it is, but for bodies: see ``request_body``."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().handle(scope, Body(scope, receive), send)

    async def read_body(self, receive: Any) -> Any:
        """``receive`` is the ``Body`` from above: Django hands it on as it is, and takes it for the request's file."""
        await receive.begin()
        return receive


django.setup(set_prefix=False)
# They know the models, which Django has to have set up.
from controlplane.api.internal.base import is_authorized, problem  # noqa: E402
from controlplane.config import urls  # noqa: E402,F401
from controlplane.datasources.sampling import start_ready_sampler  # noqa: E402

start_ready_sampler()
# What is there now stays: a collection amid a page need not look at all of it again.
gc.collect()
gc.freeze()
people_handler = PeopleHandler()
indexers_handler = IndexersHandler()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Indexers by the short way, everybody else through all middleware."""
    is_internal = scope["type"] == "http" and scope["path"].startswith("/internal/")
    await (indexers_handler if is_internal else people_handler)(scope, receive, send)
