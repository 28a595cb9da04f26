"""Which address a request counts as, with and without proxies: for both logins and the audit trail."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client, RequestFactory

from controlplane.common.client_address import client_address, rate_limit_key
from controlplane.teams.models import AuditEntry
from frontend.login_throttle import FAILURES_PER_ADDRESS, FAILURES_PER_NAME
from tests.support.django_cast import PASSWORD, Cast

PROXY = "10.9.9.9"
LOGIN = {"username": "viewer", "password": PASSWORD}
pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.mark.parametrize(
    ("proxies", "header", "expected"),
    [
        (0, None, PROXY),
        (0, "203.0.113.5", PROXY),
        (1, None, PROXY),
        (1, "203.0.113.5", "203.0.113.5"),
        (1, "198.51.100.1, 203.0.113.5", "203.0.113.5"),
        (2, "198.51.100.1, 203.0.113.5, 10.0.0.1", "203.0.113.5"),
        (2, "203.0.113.5", "203.0.113.5"),
        (1, "203.0.113.5:40123", "203.0.113.5"),
        (1, "[2001:db8::1]:40123", "2001:db8::1"),
        (1, "2001:DB8:0::1%eth0", "2001:db8::1"),
        (1, "::ffff:203.0.113.5", "203.0.113.5"),
        (1, "unknown", PROXY),
        (1, "203.0.113.5, ", "203.0.113.5"),
    ],
)
def test_the_address_is_what_the_outermost_proxy_saw(
    settings: Any, proxies: int, header: str | None, expected: str
) -> None:
    """Row 19 of the security checklist: an entry that a client wrote itself is never believed."""
    settings.PROXIES = proxies
    given: dict[str, Any] = {} if header is None else {"HTTP_X_FORWARDED_FOR": header}
    assert client_address(RequestFactory().get("/", REMOTE_ADDR=PROXY, **given)) == expected


def test_a_network_of_version_6_counts_as_one() -> None:
    assert rate_limit_key("2001:db8:1:2:3::4") == rate_limit_key("2001:db8:1:2::99") == "2001:db8:1:2::/64"
    assert rate_limit_key("203.0.113.5") == "203.0.113.5"


def page_login(client: Client, address: str, password: str = PASSWORD) -> int:
    return client.post("/login/", {**LOGIN, "password": password}, headers=behind_proxy(address)).status_code


def rest_login(client: Client, address: str, password: str = PASSWORD) -> int:
    body = {**LOGIN, "password": password}
    answer = client.post("/api/v1/auth/login/", body, content_type="application/json", headers=behind_proxy(address))
    return answer.status_code


def behind_proxy(address: str) -> dict[str, str]:
    """The header that a proxy sends on: first what the client wrote into it, then the client's address."""
    return {"X-Forwarded-For": f"198.51.100.7, {address}"}


def test_behind_a_proxy_nobody_locks_others_out_of_the_login_page(client: Client, cast: Cast, settings: Any) -> None:
    """Row 19 of the security checklist: the login page counts by the client's address, not by the proxy's."""
    settings.PROXIES = 1
    tried = [page_login(client, "203.0.113.66", "wrong") for _ in range(FAILURES_PER_NAME + 1)]
    assert tried == [200] * FAILURES_PER_NAME + [429]
    assert page_login(client, "203.0.113.5") == 302


def test_behind_a_proxy_many_names_from_one_address_end_too(client: Client, cast: Cast, settings: Any) -> None:
    """Row 19 of the security checklist: other names do not help, and others are not harmed."""
    settings.PROXIES = 1
    headers = behind_proxy("203.0.113.66")
    for number in range(FAILURES_PER_ADDRESS):
        client.post("/login/", {"username": f"nobody{number}", "password": "x"}, headers=headers)
    assert page_login(client, "203.0.113.66") == 429
    assert page_login(client, "203.0.113.5") == 302


def test_behind_a_proxy_the_rest_login_is_limited_by_client(client: Client, cast: Cast, settings: Any) -> None:
    """Row 19 of the security checklist: 20 attempts a minute over REST, for each client apart."""
    settings.PROXIES = 1
    assert [rest_login(client, "203.0.113.66", "wrong") for _ in range(21)] == [401] * 20 + [429]
    assert rest_login(client, "203.0.113.5") == 200


def test_the_audit_trail_notes_the_clients_address(clients: dict[str, Client], cast: Cast, settings: Any) -> None:
    settings.PROXIES = 1
    answer = clients["operator"].post("/api/v1/supervisors/flights/suspend/", headers=behind_proxy("203.0.113.5"))
    assert answer.status_code == 200
    assert AuditEntry.objects.get().address == "203.0.113.5"
    shown = clients["owner"].get("/api/v1/teams/alpha/audit/").json()["results"]
    assert [e["address"] for e in shown] == ["203.0.113.5"]
