"""Pages of what is not there, on the whole stack, before and after the metadata store was away."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx2

from tests.support.browsing import browsing
from tests.support.house import House
from tests.support.waiting import wait_for

ADDRESSES = ("/nowhere/", "/datasources/nobody-made-this-one/", "/tasks/nobody-made-this-one/")
ASKED = 60  # in several threads of the web process, whichever makes the page


def test_what_is_not_there_is_so_after_a_restart_of_the_store(house: House) -> None:
    """Only a web process makes pages in many threads, from a pool of connections that a restart cuts."""
    with browsing(house) as client:
        assert _answers(client) == {404: ASKED}
        house.postgres.stop()
        try:
            page = client.get("/nowhere/")
            assert (page.status_code, page.headers["Retry-After"]) == (503, "10")
            assert "The metadata store does not answer; try again." in page.text
        finally:
            house.postgres.start()
        assert _reason(house), "the page says that the log has it"
        wait_for("home is there", lambda: client.get("/").status_code == 200, 60)
        assert _answers(client) == {404: ASKED}


def _reason(house: House) -> bool:
    """Whether the web process has written down why no page of what is not there could be made."""
    log = (house.home.logs / "web.log").read_text(errors="replace")
    told = log.partition("The error page page_not_found could not be made")[2]
    return "Traceback" in told and "OperationalError" in told and "Service Unavailable: /nowhere/" in told


def _answers(client: httpx2.Client) -> Counter[int]:
    with ThreadPoolExecutor(12) as threads:
        return Counter(threads.map(lambda n: client.get(ADDRESSES[n % len(ADDRESSES)]).status_code, range(ASKED)))
