"""Pages of the whole stack, asked for without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from tests.support.house import House

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


@contextmanager
def browsing(house: House) -> Iterator[httpx2.Client]:
    """Logged in as the stack's user; redirects are followed."""
    with httpx2.Client(base_url=house.url, trust_env=False, timeout=30.0, follow_redirects=True) as client:
        token = _TOKEN.search(client.get("/login/").text)
        assert token is not None
        form = {"username": house.username, "password": house.password, "csrfmiddlewaretoken": token[1]}
        assert client.post("/login/", data=form, headers={"Referer": house.url}).status_code == 200
        yield client
