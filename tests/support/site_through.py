"""A site for the Python client and the command line: the real Django application, without a server in between."""

from __future__ import annotations

import httpx2
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from controlplane.teams.models import ApiToken
from headgate.client import Client
from tests.support.django_cast import Cast

URL = "http://testserver"


class Through(httpx2.BaseTransport):
    """Requests are answered in the caller's thread and transaction."""

    def __init__(self) -> None:
        self._site = httpx2.WSGITransport(app=WSGIHandler(), raise_app_exceptions=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        signals = (request_started, request_finished)
        for signal in signals:  # they would end the test's transaction, as Django's own test client knows
            signal.disconnect(close_old_connections)
        try:
            answer = self._site.handle_request(request)
            return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.read())
        finally:
            for signal in signals:
                signal.connect(close_old_connections)


def token_of(cast: Cast, role: str) -> str:
    """A token of that role's user."""
    _, secret = ApiToken.objects.create(user=cast.users[role], name="cli")
    return str(secret)


def client_as(cast: Cast, role: str) -> Client:
    """The Python client of that role's user."""
    return Client(URL, token_of(cast, role), transport=Through())
