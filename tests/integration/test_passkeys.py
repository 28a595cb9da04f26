"""What a browser says of a passkey may be anything. The browser's tests log in with real ones."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest
from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.models import Authenticator
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from fido2.cose import ES256
from fido2.utils import websafe_encode
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData, CollectedClientData

from controlplane.teams.models import AuditEntry
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


def made_by_a_device(options: dict[str, Any], flags: int) -> str:
    """The credential that a device makes when a page of the site ``localhost`` asks for one."""
    key = ES256.from_cryptography_key(ec.generate_private_key(ec.SECP256R1()).public_key())
    credential = AttestedCredentialData.create(bytes(16), b"one of a kind", key)
    rp_id_hash = hashlib.sha256(b"localhost").digest()
    data = AuthenticatorData.create(rp_id_hash, AuthenticatorData.FLAG.AT | flags, 0, credential)
    client_data = CollectedClientData.create("webauthn.create", options["challenge"], "http://localhost")
    response = {
        "clientDataJSON": websafe_encode(client_data),
        "attestationObject": websafe_encode(AttestationObject.create("none", data, {})),
    }
    name = websafe_encode(b"one of a kind")
    return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})


def options_of(client: Client) -> dict[str, Any]:
    page = client.get("/account/passkey/", headers={"Host": "localhost"}).content.decode()
    shown = re.search(r'id="passkey-options"[^>]*>(.*?)</script>', page)
    assert shown is not None
    options: dict[str, Any] = json.loads(shown[1])["publicKey"]
    return options


def test_a_device_must_verify_its_owner_before_its_passkey_is_added(cast: Cast) -> None:
    client = log_in("viewer")
    flags = AuthenticatorData.FLAG
    asked = options_of(client)["authenticatorSelection"]
    assert (asked["residentKey"], asked["userVerification"]) == ("required", "required")

    def add(verified: int, name: str = "My laptop") -> int:
        credential = made_by_a_device(options_of(client), flags.UP | verified)
        given = {"credential": credential, "name": name}
        return client.post("/account/passkey/", given, headers={"Host": "localhost"}).status_code

    assert add(verified=0) == 400
    assert add(flags.UV, name="x" * 61) == 400
    assert not Authenticator.objects.exists()
    assert add(flags.UV) == 302
    kinds = Authenticator.objects.filter(user=cast.users["viewer"]).values_list("type", flat=True)
    assert set(kinds) == {"webauthn", "recovery_codes"}
    added = AuditEntry.objects.get(action="add_second_factor")
    assert (added.username, added.detail) == ("viewer", {"kind": "webauthn"})
