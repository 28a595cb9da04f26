"""HTTP basic authentication at Druid's addresses: Airflow's hook and scripts send it with each request."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from controlplane.supervisors.models import Supervisor
from controlplane.teams.models import ApiToken
from controlplane.teams.roles import Scope
from tests.support.django_cast import PASSWORD, Cast, spec_for
from tests.support.second_factors import code_of, enrolled

SUPERVISORS = "/druid/indexer/v1/supervisor"
SUSPEND = f"{SUPERVISORS}/flights/suspend"
pytestmark = pytest.mark.usefixtures("empty_cache")


def basic(username: str, password: str = PASSWORD, **more: str) -> Client:
    given = base64.b64encode(f"{username}:{password}".encode()).decode()
    return Client(raise_request_exception=False, headers={"Authorization": f"Basic {given}", **more})


def token_of(cast: Cast, role: str, **limits: Any) -> str:
    secret: str = ApiToken.objects.create(user=cast.users[role], name="script", **limits)[1]
    return secret


def test_a_password_is_taken_with_each_request(cast: Cast) -> None:
    client = basic("operator")
    assert client.get(SUPERVISORS).json() == ["flights"]
    assert client.post(SUSPEND).json()["suspended"] is True
    assert client.get("/druid/coordinator/v1/config/compaction").status_code == 200
    assert not ApiToken.objects.exists(), "no token is made on the way"


def test_the_rights_are_those_of_the_person(cast: Cast) -> None:
    assert basic("viewer").post(SUSPEND).status_code == 403
    assert basic("outsider").get(f"{SUPERVISORS}/flights").status_code == 404
    assert Supervisor.objects.get(pk="flights").suspended is False
    posted = basic("owner").post(SUPERVISORS, spec_for("flights", pollTimeout=3000), content_type="application/json")
    assert posted.json() == {"id": "flights"}


def test_it_is_taken_at_druids_addresses_alone(cast: Cast) -> None:
    for address in ("/api/v1/supervisors/", "/api/v1/tokens/", "/api/sampler/", "/internal/v1/tasks/x/spec"):
        answer = basic("owner").get(address)
        assert answer.status_code in (401, 404), address
    assert basic("owner").get("/").status_code == 302


def test_a_token_is_taken_as_its_users_password(cast: Cast) -> None:
    assert basic("operator", token_of(cast, "operator")).post(SUSPEND).status_code == 200
    assert basic("owner", token_of(cast, "operator")).get(SUPERVISORS).status_code == 401
    service = cast.users["service"].get_username()
    reading = token_of(cast, "service", scope=Scope.READ.value)
    assert basic(service, reading).get(SUPERVISORS).json() == ["flights"]
    assert basic(service, reading).post(f"{SUPERVISORS}/flights/resume").status_code == 403
    assert basic(service).get(SUPERVISORS).status_code == 401, "a service account has no password"
    assert ApiToken.objects.filter(user=cast.users["service"], last_used_at=None).count() == 0


@pytest.mark.parametrize("given", ["%%%", "", base64.b64encode(b"no-colon").decode(), "YQBiOmM="])
def test_what_can_not_be_read_is_401_in_druids_form(cast: Cast, given: str) -> None:
    answer = Client().get(SUPERVISORS, headers={"Authorization": f"Basic {given}"})
    assert answer.status_code == 401
    assert answer.json()["errorCode"] == "unauthorized"


def test_a_401_says_that_both_are_taken(cast: Cast) -> None:
    answer = Client().get(SUPERVISORS)
    assert answer.headers["WWW-Authenticate"] == 'Bearer, Basic realm="headgate", charset="UTF-8"'


@pytest.mark.parametrize("header", [{"Origin": "https://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_what_a_browser_adds_by_itself_is_not_taken(cast: Cast, header: dict[str, str]) -> None:
    """Another site's page would act with a password that the browser remembers."""
    answer = basic("operator", **header).post(SUSPEND)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert Supervisor.objects.get(pk="flights").suspended is False


def test_wrong_passwords_are_limited_with_the_logins_and_right_ones_are_not(cast: Cast) -> None:
    """Row 19 of the security checklist."""
    token = token_of(cast, "viewer")
    assert {basic("viewer", token).get(SUPERVISORS).status_code for _ in range(25)} == {200}
    assert [basic("viewer", "wrong").get(SUPERVISORS).status_code for _ in range(21)] == [401] * 20 + [429]
    refused = basic("viewer").get(SUPERVISORS)
    assert refused.status_code == 429, "a right one is not told from a wrong one"
    assert int(refused.headers["Retry-After"]) > 0
    login = {"username": "viewer", "password": PASSWORD}
    assert Client().post("/api/v1/auth/login/", login, content_type="application/json").status_code == 429
    bearer = {"Authorization": f"Bearer {token}"}
    assert Client().get(SUPERVISORS, headers=bearer).status_code == 200


def test_who_is_turned_off_is_refused(cast: Cast) -> None:
    token = token_of(cast, "operator")
    get_user_model().objects.filter(username="operator").update(is_active=False)
    assert basic("operator").post(SUSPEND).status_code == 401
    assert basic("operator", token).post(SUSPEND).status_code == 401
    assert Supervisor.objects.get(pk="flights").suspended is False


def test_a_password_alone_is_no_way_round_the_second_factor(cast: Cast) -> None:
    enrolled(cast.users["operator"])
    refused = basic("operator").post(SUSPEND)
    assert refused.status_code == 401
    assert "second factor" in refused.json()["errorMessage"]
    assert Supervisor.objects.get(pk="flights").suspended is False
    code = code_of(cast.users["operator"])
    assert basic("operator", **{"X-Headgate-Code": code}).get(SUPERVISORS).status_code == 200
    assert basic("operator", **{"X-Headgate-Code": code}).get(SUPERVISORS).status_code == 401
    assert basic("operator", token_of(cast, "operator")).post(SUSPEND).status_code == 200


def test_who_must_set_one_up_does_so_first(cast: Cast, settings: Any) -> None:
    settings.REQUIRE_SECOND_FACTOR = "all"
    assert basic("operator").post(SUSPEND).status_code == 401
    assert Supervisor.objects.get(pk="flights").suspended is False
