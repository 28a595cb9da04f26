"""What a browser says of a passkey may be anything; the real ones are in the browser's tests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.models import Authenticator
from django.test import Client
from fido2.utils import websafe_encode

from tests.support.django_cast import Cast
from tests.support.second_factors import enrolled, log_in

ANSWER: dict[str, Any] = {
    "id": "AAAA",
    "rawId": "AAAA",
    "type": "public-key",
    "response": {"clientDataJSON": "AAAA", "authenticatorData": "AAAA", "signature": "AAAA", "userHandle": "MQ"},
    "clientExtensionResults": {},
}
ODD: list[Any] = [
    None,
    "",
    5,
    [1],
    {},
    {"response": {}},
    {"response": {"userHandle": "%%%"}},
    {"response": {"userHandle": None}},
    {**ANSWER, "id": 7},
    {**ANSWER, "response": []},
    ANSWER,
]
pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.mark.parametrize("credential", ODD, ids=range(len(ODD)))
def test_what_is_none_opens_nothing_and_breaks_nothing(cast: Cast, credential: Any) -> None:
    viewer = cast.users["viewer"]
    if credential is ANSWER:
        handle = websafe_encode(user_pk_to_url_str(viewer).encode())
        credential = {**ANSWER, "response": {**ANSWER["response"], "userHandle": handle}}
    given = {"credential": json.dumps(credential)}
    stranger = Client()
    assert "request_options" in stranger.get("/login/passkey/", headers={"Accept": "application/json"}).json()
    for _ in range(2):  # the second time without a question that was asked
        assert stranger.post("/login/passkey/", given).headers["Location"] == "/login/"
    assert stranger.get("/account/").status_code == 302

    inside = log_in("viewer")
    assert inside.get("/account/passkey/").status_code == 200
    assert inside.post("/account/passkey/", {**given, "name": "x"}).status_code == 400
    assert not Authenticator.objects.exists()

    enrolled(viewer)
    begun = log_in("viewer")
    assert begun.post("/login/second-factor/", given).status_code == 200
    assert begun.get("/account/").status_code == 302


def test_what_is_asked_of_a_stranger_names_nobody(cast: Cast) -> None:
    asked = Client().get("/login/passkey/", headers={"Accept": "application/json"}).json()
    public = asked["request_options"]["publicKey"]
    assert not public.get("allowCredentials")
    assert public["userVerification"] == "required"
