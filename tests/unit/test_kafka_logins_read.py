"""Kafka's logins in a spec: login modules and clients of a token endpoint, and what becomes of them for librdkafka."""

from __future__ import annotations

from typing import Any

import pytest

from ingestion.specs.kafka.jaas import parse_login
from ingestion.specs.kafka.properties import SECRET, missing
from tests.support.kafka_properties import BEARER, CANARY, ENDPOINT, PLAIN, SCRAM, faults, for_client, read


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"sasl.jaas.config": f'{PLAIN} required username="me" password="x";'}, ("me", "x")),
        ({"sasl.jaas.config": f"{SCRAM} required username='me' password='x';"}, ("me", "x")),
        ({"sasl.jaas.config": f"  {PLAIN}\n  REQUIRED\n  username=me\n  password=x-y.z$1 ;\n"}, ("me", "x-y.z$1")),
        ({"sasl.jaas.config": f'{PLAIN} required password="x" username="me";'}, ("me", "x")),
        ({"sasl.jaas.config": f'{PLAIN} required username="m e" password="a=b;c\'d";'}, ("m e", "a=b;c'd")),
        ({"sasl.jaas.config": f'{PLAIN} required username="me" password="q\\"b\\\\n\\n";'}, ("me", 'q"b\\n\n')),
        ({"sasl.jaas.config": f'{PLAIN} required username="me" password="\\101\\7\\x";'}, ("me", "A\x07x")),
        ({"sasl.jaas.config": f'/* c */ {PLAIN} // d\n required username="me" password="//no";'}, ("me", "//no")),
        ({"sasl.jaas.config": f'{PLAIN} required username="ü" password="пароль";'}, ("ü", "пароль")),
    ],
)
def test_a_login_module_becomes_user_and_password(given: dict[str, Any], expected: tuple[str, str]) -> None:
    assert for_client(given) == {"sasl.username": expected[0], "sasl.password": expected[1]}
    assert "sasl.jaas.config" not in read(**given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be one login module"),
        (CANARY, "must be one login module"),
        (f'{PLAIN} required username="me" password="{CANARY}"', "end with a semicolon"),
        (f'{PLAIN} required username="me" password="{CANARY};', "has an error at character"),
        (f'{PLAIN} required username="me" password="{CANARY}\n";', "has an error at character"),
        (f"{PLAIN} required username=me password=4711{CANARY};", "has an error at character"),
        (f'{PLAIN} username="me" password="{CANARY}";', "must be followed by a flag"),
        (f'{PLAIN} required username="me" pass {CANARY};', "options must be written as"),
        (f'{PLAIN} required username="me" password="a"{CANARY}"b";', "options must be written as"),
        (f'{PLAIN} required username="me";', "must have both options"),
        (f'{PLAIN} required username="me" password="{CANARY}" password="b";', "has an option twice"),
        (f'{SCRAM} required username="me" password="{CANARY}" tokenauth="true";', "options other than"),
        (f'{PLAIN} required username="a" password="b"; {PLAIN} required username="{CANARY}" password="b";', "options"),
    ],
)
def test_login_modules_that_are_not_read(text: str, message: str) -> None:
    found = faults(**{"sasl.jaas.config": text})
    assert list(found) == ["/sasl.jaas.config"]
    assert message in found["/sasl.jaas.config"]


@pytest.mark.parametrize(
    ("module", "named"),
    [
        ("com.sun.security.auth.module.JndiLoginModule", "JndiLoginModule"),  # CVE-2023-25194
        ("com.sun.security.auth.module.LdapLoginModule", "LdapLoginModule"),
        ("com.sun.security.auth.module.Krb5LoginModule", "Krb5LoginModule"),
        ("PlainLoginModule", "this login module"),
        (f"x.{PLAIN}", "this login module"),
        (f'"{PLAIN}"', "this login module"),
    ],
)
def test_row_1_other_login_modules_are_refused(module: str, named: str) -> None:
    """Row 1 of the security checklist: other login modules are refused."""
    found = faults(**{"sasl.jaas.config": f'{module} required user.provider.url="ldap://x/y" password="{CANARY}";'})
    assert found["/sasl.jaas.config"].startswith(f"{named} is not allowed")


def test_a_login_module_must_fit_the_mechanism() -> None:
    login = {"sasl.jaas.config": f'{PLAIN} required username="me" password="{CANARY}";'}
    assert faults(**login, **{"sasl.mechanism": "SCRAM-SHA-512"}) == {
        "/sasl.jaas.config": "the login module is for PLAIN, but sasl.mechanism is SCRAM-SHA-512"
    }
    assert set(faults(**login, **{"sasl.username": "me"})) == {"/sasl.username"}
    assert parse_login(login["sasl.jaas.config"], "plain") == {"sasl.username": "me", "sasl.password": CANARY}


@pytest.mark.parametrize(
    "given",
    [
        {"sasl.oauthbearer.client.id": "a", "sasl.oauthbearer.client.secret": CANARY},
        {
            "sasl.oauthbearer.client.credentials.client.id": "a",
            "sasl.oauthbearer.client.credentials.client.secret": CANARY,
            "sasl.jaas.config": f"{BEARER} required ;",
            "sasl.login.callback.handler.class": f"{BEARER.rpartition('.')[0]}.OAuthBearerLoginCallbackHandler",
        },
        {"sasl.jaas.config": f'{BEARER} required clientId="a" clientSecret="{CANARY}";'},
    ],
)
def test_a_client_of_a_token_endpoint_in_each_form(given: dict[str, Any]) -> None:
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAuthBearer", ENDPOINT: "https://x/token"}
    assert for_client({**login, **given}) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        ENDPOINT: "https://x/token",
        "sasl.oauthbearer.client.id": "a",
        "sasl.oauthbearer.client.secret": CANARY,
    }
    kept = read(**login, **given)
    assert missing(kept) == {}
    assert CANARY not in str({name: value for name, value in kept.items() if name not in SECRET})
    assert set(missing({n: v for n, v in kept.items() if n != ENDPOINT})) == {ENDPOINT}
    assert len(missing({n: v for n, v in kept.items() if n not in SECRET})) == 1
