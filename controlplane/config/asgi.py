"""The ASGI door that uvicorn serves."""

import os

from django.core.asgi import get_asgi_application
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")


class IndexersHandler(ASGIHandler):
    """Django without middleware, for ``/internal/``: sessions, pages' headers and static files mean nothing there,
    and each hop between threads costs on the path of every record."""

    def load_middleware(self, is_async: bool = False) -> None:
        self._view_middleware: list[object] = []
        self._template_response_middleware: list[object] = []
        self._exception_middleware: list[object] = []
        self._middleware_chain = convert_exception_to_response(
            self._get_response_async  # type: ignore[attr-defined]  # the stubs leave it out
        )


for_people = get_asgi_application()
for_indexers = IndexersHandler()


async def application(scope, receive, send):  # type: ignore[no-untyped-def]
    """Indexers by the short way, everybody else through all middleware."""
    inside = scope["type"] == "http" and scope["path"].startswith("/internal/")
    await (for_indexers if inside else for_people)(scope, receive, send)
