"""The Iceberg catalog over HTTP, in process: whose namespaces are seen, errors, tokens, and what clients are given."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from controlplane.catalog import tables
from controlplane.datasources.models import Datasource, MaskedColumn
from controlplane.teams.roles import Scope
from controlplane.teams.service_accounts import create_account, create_account_token
from tests.support.django_cast import Cast

BASE = "/iceberg/v1"
TABLES = f"{BASE}/namespaces/alpha/tables"


def test_masked_tables_are_for_those_who_see_all_columns(clients: dict[str, Client], cast: Cast) -> None:
    Datasource.objects.create(name="opened", team=cast.alpha)
    MaskedColumn.objects.create(datasource=cast.datasource, column="item", role="operator")
    one = f"{TABLES}/flights"
    refused = clients["viewer"].get(one)
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "ForbiddenException")
    assert "masked columns" in refused.json()["error"]["message"]
    assert clients["viewer"].head(one).status_code == 403
    names = [t["name"] for t in clients["viewer"].get(TABLES).json()["identifiers"]]
    assert "flights" not in names and "opened" in names
    assert clients["operator"].head(one).status_code == 204
    assert {"namespace": ["alpha"], "name": "flights"} in clients["operator"].get(TABLES).json()["identifiers"]


def test_namespaces_are_the_users_teams(clients: dict[str, Client]) -> None:
    def names(role: str) -> list[list[str]]:
        found: list[list[str]] = clients[role].get(f"{BASE}/namespaces").json()["namespaces"]
        return found

    assert (names("viewer"), names("outsider")) == ([["alpha"]], [["beta"]])
    assert clients["viewer"].get(f"{BASE}/namespaces", {"parent": "alpha"}).json() == {"namespaces": []}
    assert clients["viewer"].get(f"{BASE}/namespaces/alpha").json()["namespace"] == ["alpha"]
    assert clients["viewer"].head(f"{BASE}/namespaces/alpha").status_code == 204


@pytest.mark.parametrize(
    ("role", "method", "address", "status", "kind"),
    [
        ("outsider", "GET", f"{TABLES}/flights", 404, "NoSuchTableException"),
        ("outsider", "GET", TABLES, 404, "NoSuchNamespaceException"),
        ("outsider", "HEAD", f"{TABLES}/flights", 404, ""),
        ("viewer", "GET", f"{TABLES}/nothing", 404, "NoSuchTableException"),
        ("viewer", "GET", f"{TABLES}/%00", 404, "NoSuchTableException"),
        ("viewer", "GET", f"{BASE}/namespaces/alpha%1Fbeta/tables", 404, "NoSuchNamespaceException"),
        ("viewer", "GET", f"{BASE}/namespaces/alpha%1Fflights/tables/files", 404, "NoSuchTableException"),
        ("viewer", "GET", f"{BASE}/namespaces?parent=no", 404, "NoSuchNamespaceException"),
        ("viewer", "GET", f"{BASE}/namespaces/alpha/views", 404, "NoSuchEndpointException"),
        ("anonymous", "GET", f"{BASE}/config", 401, "NotAuthorizedException"),
        ("owner", "POST", f"{BASE}/namespaces", 406, "UnsupportedOperationException"),
        ("owner", "DELETE", f"{BASE}/namespaces/alpha", 406, "UnsupportedOperationException"),
        ("owner", "POST", f"{BASE}/namespaces/alpha/properties", 406, "UnsupportedOperationException"),
        ("owner", "POST", TABLES, 406, "UnsupportedOperationException"),
        ("owner", "POST", f"{TABLES}/flights", 406, "UnsupportedOperationException"),
        ("owner", "DELETE", f"{TABLES}/flights", 406, "UnsupportedOperationException"),
        ("owner", "POST", f"{BASE}/tables/rename", 406, "UnsupportedOperationException"),
        ("owner", "POST", f"{BASE}/transactions/commit", 406, "UnsupportedOperationException"),
    ],
)
def test_errors_have_the_form_of_the_specification(
    clients: dict[str, Client], role: str, method: str, address: str, status: int, kind: str
) -> None:
    answer = clients[role].generic(method, address, "{}", content_type="application/json")
    assert answer.status_code == status
    if kind:
        error = answer.json()["error"]
        assert (error["type"], error["code"], bool(error["message"])) == (kind, status, True)


@pytest.fixture
def secret(cast: Cast) -> str:
    """A token of the team's service account ``loader``, for the datasource flights alone."""
    owner = cast.users["owner"]
    create_account(user=owner, team=cast.alpha, name="reader")
    return create_account_token(
        user=owner, team=cast.alpha, account="reader", name="t", scope=Scope.READ, datasources=["flights"]
    )[1]


def ask_token(client: Client, **form: str) -> Any:
    body = "&".join(f"{name}={value}" for name, value in form.items())
    return client.post(f"{BASE}/oauth/tokens", body, content_type="application/x-www-form-urlencoded")


def test_a_service_account_gets_a_token_by_its_credentials(secret: str, empty_cache: None) -> None:
    client = Client()
    granted = ask_token(client, grant_type="client_credentials", client_id="reader@alpha", client_secret=secret).json()
    assert (granted["access_token"], granted["token_type"]) == (secret, "bearer")
    assert 0 < granted["expires_in"] <= 90 * 24 * 3600
    exchange = "urn:ietf:params:oauth:grant-type:token-exchange"
    assert ask_token(client, grant_type=exchange, subject_token=secret).json()["access_token"] == secret
    headers = {"Authorization": f"Bearer {secret}"}
    namespaces = client.get(f"{BASE}/namespaces", headers=headers).json()["namespaces"]
    assert namespaces == [["alpha"]], "also with a token for named datasources"
    listed = client.get(TABLES, headers=headers).json()["identifiers"]
    assert [t["name"] for t in listed] == ["flights"]


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({"grant_type": "client_credentials", "client_id": "other@alpha"}, 401, "invalid_client"),
        ({"grant_type": "client_credentials"}, 401, "invalid_client"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({}, 400, "unsupported_grant_type"),
    ],
)
def test_other_credentials_are_refused(
    secret: str, empty_cache: None, form: dict[str, str], status: int, error: str
) -> None:
    answer = ask_token(Client(), client_secret=secret, **form)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    wrong = ask_token(Client(), grant_type="client_credentials", client_id="reader@alpha", client_secret="a" * 64)
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")


@pytest.mark.parametrize(
    ("location", "properties"),
    [
        ("/var/deep", {}),
        ("s3://bucket/deep", {}),
        (
            "s3://bucket/deep?endpoint_override=127.0.0.1:9&scheme=http&region=eu-west-1",
            {"s3.endpoint": "http://127.0.0.1:9", "s3.path-style-access": "true", "s3.region": "eu-west-1"},
        ),
        (
            "s3://bucket?endpoint_override=https://s3.example",
            {"s3.endpoint": "https://s3.example", "s3.path-style-access": "true"},
        ),
    ],
)
def test_readers_are_given_the_endpoint_of_s3(settings: Any, location: str, properties: dict[str, str]) -> None:
    settings.DEEP_STORAGE = location
    assert tables.storage_properties() == properties
