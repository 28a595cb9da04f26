"""A login at Amazon MSK by IAM: which properties it takes, and the token that librdkafka asks for.

Brokers of MSK take the signed address of ``AWS_MSK_IAM`` as a token of OAUTHBEARER too. It is signed with the keys of
the connection alone: what the machine has of AWS belongs to whoever runs it, and not to whoever writes specs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ingestion.specs.kafka.addresses import parse_servers

MECHANISM = "AWS_MSK_IAM"
CLIENT_MECHANISM = "OAUTHBEARER"  # what librdkafka logs in by
ACCESS_KEY, SECRET_KEY = "aws.accessKeyId", "aws.secretAccessKey"  # as Java's system properties are called
SESSION_TOKEN, REGION = "aws.sessionToken", "aws.region"
LOGIN_PROPERTIES = (ACCESS_KEY, SECRET_KEY, SESSION_TOKEN, REGION)
CALLBACK = "oauth_cb"
MODULE = "software.amazon.msk.auth.iam.IAMLoginModule"
HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
# What Java's login module takes that changes nothing where nobody is asked for keys.
OPTIONS_WITHOUT_EFFECT = ("awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs")
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+){1,3}-\d{1,2}")
_HOST = re.compile(rf"\.kafka(-serverless)?\.(?P<region>{_REGION.pattern})\.amazonaws\.com(\.cn)?\.?$", re.IGNORECASE)


def is_msk_login(properties: Mapping[str, object]) -> bool:
    """Whether the login is by IAM."""
    return str(properties.get("sasl.mechanism", properties.get("sasl.mechanisms", ""))).upper() == MECHANISM


def checked_region(text: str) -> None:
    """Raises ``ValueError``."""
    if not _REGION.fullmatch(text):
        raise ValueError("must be the name of an AWS region, for example eu-central-1")


def region_of(properties: Mapping[str, object]) -> str:
    """The region that is given, or that MSK's own host names tell; empty: neither."""
    if region := properties.get(REGION):
        return str(region)
    hosts = (host for host, _ in parse_servers(str(properties.get("bootstrap.servers", ""))))
    match = next(filter(None, (_HOST.search(host) for host in hosts)), None)
    return match["region"].lower() if match else ""


def missing_properties(properties: Mapping[str, object]) -> list[str]:
    """The properties that must be there beside what is."""
    needed = [ACCESS_KEY, SECRET_KEY] if region_of(properties) else [ACCESS_KEY, REGION, SECRET_KEY]
    return [name for name in needed if name not in properties]


def with_token(config: Mapping[str, Any]) -> dict[str, Any]:
    """librdkafka's properties, with what signs its tokens in place of the keys; any other as it is.

    The client asks for the first token when it is made and for the next before it expires, in a thread of its own. A
    token lives for 15 minutes.
    """
    if not is_msk_login(config):
        return dict(config)
    others = {name: value for name, value in config.items() if name not in LOGIN_PROPERTIES}
    return {**others, "sasl.mechanisms": CLIENT_MECHANISM, CALLBACK: _token_signer(config)}


def _token_signer(config: Mapping[str, Any]) -> Callable[[str], tuple[str, float]]:
    keys = (config.get(ACCESS_KEY), config.get(SECRET_KEY), config.get(SESSION_TOKEN))
    region, absent = region_of(config), missing_properties(config)

    def token(_: str) -> tuple[str, float]:
        if absent:
            raise ValueError(f"{MECHANISM} needs {', '.join(absent)}")
        # not at the top: who reads specs needs no signer, and its libraries take a while
        from aws_msk_iam_sasl_signer.MSKAuthTokenProvider import generate_auth_token_from_credentials_provider
        from botocore.credentials import CredentialProvider, Credentials  # not at the top: as above

        class OfTheConnection(CredentialProvider):  # type: ignore[misc]
            def load(self) -> Credentials:
                return Credentials(*keys)

        signed, expires_ms = generate_auth_token_from_credentials_provider(region, OfTheConnection())
        return signed, expires_ms / 1000

    return token
