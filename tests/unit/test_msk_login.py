"""A login at Amazon MSK by IAM: what is taken, what is lacking, and how its tokens are signed."""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import urlsafe_b64decode
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from ingestion.specs.errors import SpecError
from ingestion.specs.kafka.msk_login import HANDLER, MODULE, with_token
from ingestion.specs.kafka.properties import SECRET, librdkafka_properties, missing
from ingestion.specs.tasks.ingestion_spec import parse_task_spec
from tests.unit.test_specs import changed

SECRET_KEY = "canary-4711-key"
SERVERS = (
    "b-1.orders.x1y2.c2.kafka.eu-central-1.amazonaws.com:9098,b-2.orders.x1y2.c2.kafka.eu-central-1.amazonaws.com:9098"
)
JAVA = {
    "bootstrap.servers": SERVERS,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": f"{MODULE} required;",
    "sasl.client.callback.handler.class": HANDLER,
}
KEYS = {"aws.accessKeyId": "AKIAEXAMPLE", "aws.secretAccessKey": SECRET_KEY}


def read(properties: dict[str, Any]) -> dict[str, Any]:
    """The properties as the spec keeps them."""
    return parse_task_spec(changed(("ioConfig/consumerProperties", properties))).spec.ioConfig.consumerProperties


def faults(properties: dict[str, Any]) -> dict[str, str]:
    """Property → what is wrong with it."""
    with pytest.raises(SpecError) as caught:
        read(properties)
    assert SECRET_KEY not in str(caught.value)
    return {i.pointer.removeprefix("/ioConfig/consumerProperties/"): i.message for i in caught.value.issues}


def signed(properties: dict[str, Any]) -> tuple[dict[str, str], float]:
    """A token's address as its query's fields, and when it expires."""
    config = with_token(librdkafka_properties(read(properties)))
    token, expires = config["oauth_cb"]("")
    address = urlsplit(urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    assert (address.scheme, address.path) == ("https", "/")
    return {"host": address.netloc, **dict(parse_qsl(address.query))}, expires


def signature(fields: dict[str, str], region: str, secret: str) -> str:
    """Signature Version 4 of an address, as AWS documents it."""
    query = sorted((quote(n, safe="~"), quote(v, safe="~")) for n, v in fields.items() if n.startswith(("X-", "Act")))
    listed = "&".join(f"{n}={v}" for n, v in query if n != "X-Amz-Signature")
    empty = hashlib.sha256(b"").hexdigest()
    asked = f"GET\n/\n{listed}\nhost:{fields['host']}\n\nhost\n{empty}"
    at = fields["X-Amz-Date"]
    scope = f"{at[:8]}/{region}/kafka-cluster/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def test_a_token_is_signed_with_the_connections_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the-machines")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-machines")
    fields, expires = signed({**JAVA, **KEYS})
    assert fields["host"] == "kafka.eu-central-1.amazonaws.com"
    assert fields["Action"] == "kafka-cluster:Connect"
    assert fields["X-Amz-Credential"].startswith("AKIAEXAMPLE/")
    assert "X-Amz-Security-Token" not in fields
    assert fields["X-Amz-Signature"] == signature(fields, "eu-central-1", SECRET_KEY)
    assert 890 < expires - time.time() <= 900


def test_a_session_token_and_a_region_that_is_given() -> None:
    given = {**JAVA, **KEYS, "bootstrap.servers": "kafka.internal:9098"}
    fields, _ = signed({**given, "aws.region": "us-gov-west-1", "aws.sessionToken": "passing"})
    assert fields["host"] == "kafka.us-gov-west-1.amazonaws.com"
    assert fields["X-Amz-Security-Token"] == "passing"
    assert fields["X-Amz-Signature"] == signature(fields, "us-gov-west-1", SECRET_KEY)


@pytest.mark.parametrize(
    ("servers", "lacking"),
    [
        (SERVERS, set()),
        ("boot-x1.c1.kafka-serverless.us-east-1.amazonaws.com:9098", set()),
        ("b-1.orders.x1.c2.kafka.cn-north-1.amazonaws.com.cn:9098", set()),
        ("kafka.internal:9098", {"aws.region"}),
        ("b-1.kafka.eu-central-1.amazonaws.com.example.org:9098", {"aws.region"}),
    ],
)
def test_msks_own_hosts_tell_the_region(servers: str, lacking: set[str]) -> None:
    assert set(missing(read({**JAVA, **KEYS, "bootstrap.servers": servers}))) == lacking


def test_the_machines_keys_are_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the-machines")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-machines")
    lacking = missing(read(JAVA))
    assert set(lacking) == {"aws.accessKeyId", "aws.secretAccessKey"}
    assert "Headgate uses no keys of the machine" in lacking["aws.accessKeyId"]
    with pytest.raises(ValueError, match=r"AWS_MSK_IAM needs aws\.accessKeyId, aws\.secretAccessKey"):
        with_token(librdkafka_properties(read(JAVA)))["oauth_cb"]("")


def test_a_client_is_given_no_keys_and_secrets_are_kept_apart() -> None:
    kept = read({**JAVA, **KEYS, "aws.sessionToken": SECRET_KEY})
    assert SECRET_KEY not in str({name: value for name, value in kept.items() if name not in SECRET})
    config = with_token(librdkafka_properties(kept))
    assert not [name for name in config if name.startswith("aws.")]
    assert SECRET_KEY not in str(config)
    assert config["sasl.mechanisms"] == "OAUTHBEARER"
    assert librdkafka_properties(config) == config


@pytest.mark.parametrize(
    ("given", "place", "message"),
    [
        ({"sasl.client.callback.handler.class": "x.Y"}, "sasl.client.callback.handler.class", "others load code"),
        (
            {"sasl.jaas.config": f'{MODULE} required awsProfileName="me";'},
            "sasl.jaas.config",
            "give the keys themselves",
        ),
        ({"sasl.jaas.config": f'{MODULE} required awsRoleArn="arn:x";'}, "sasl.jaas.config", "a profile or a role"),
        ({"sasl.mechanism": "PLAIN"}, "sasl.jaas.config", "the login module is for AWS_MSK_IAM"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "aws.accessKeyId", "needs sasl.mechanism AWS_MSK_IAM"),
        ({"aws.region": "169.254.169.254/x"}, "aws.region", "must be the name of an AWS region"),
        ({"aws.accessKeyId": {"type": "environment", "variable": "A"}}, "aws.accessKeyId", "must be text"),
    ],
)
def test_what_is_refused(given: dict[str, Any], place: str, message: str) -> None:
    assert message in faults({**JAVA, **KEYS, **given})[place]


def test_debugging_and_retries_of_javas_module_change_nothing() -> None:
    options = 'awsDebugCreds="true" awsMaxRetries="3" awsMaxBackOffTimeMs="500"'
    assert read({**JAVA, "sasl.jaas.config": f"{MODULE} required {options};"}) == read(JAVA)
