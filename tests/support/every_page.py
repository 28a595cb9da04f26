"""Every page of the site, as one reader gets it."""

from __future__ import annotations

from django.test import Client

from tests.support.django_cast import Cast
from tests.support.permission_table import arguments
from tests.support.routes import all_routes


def all_pages(cast: Cast, client: Client) -> dict[str, tuple[str, str]]:
    """By route, the address and the text of each page that this reader gets."""
    found = {}
    for route in all_routes():
        if not getattr(route.view, "__module__", "").startswith("frontend."):
            continue
        address = route.path(**{**arguments(cast, route.pattern), "number": cast.quarantined.pk})
        answer = client.get(address)
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            text = answer.content.decode()
            if "<h1" in text:
                found[route.pattern] = (address, text)
    return found
