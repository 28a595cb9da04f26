"""A login by OAUTHBEARER with client credentials: which properties it takes, and where its tokens come from.

librdkafka asks for the tokens; it follows no redirects.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from ingestion.specs.kafka.msk_login import CALLBACK

MECHANISM = "OAUTHBEARER"
CLIENT_ID, CLIENT_SECRET = "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"
ENDPOINT, SCOPE = "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.scope"
EXTENSIONS, METHOD = "sasl.oauthbearer.extensions", "sasl.oauthbearer.method"
NEEDED = (CLIENT_ID, CLIENT_SECRET, ENDPOINT)
_PORTS = {"http": 80, "https": 443}


def parse_endpoint(url: str) -> tuple[str, int]:
    """Host and port of a token endpoint's address. Raises ``ValueError``."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or parts.scheme not in _PORTS or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("must be the token endpoint's address, for example https://login.example.org/oauth2/token")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ValueError("must contain no login and no fragment")
    return host, port or _PORTS[parts.scheme]


def asks_for_tokens(properties: Mapping[str, object]) -> bool:
    """Whether the login is by OAUTHBEARER, and the client makes no tokens itself."""
    written = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", ""))
    return str(written).upper() == MECHANISM and CALLBACK not in properties


def extensions_of(options: Mapping[str, str]) -> str:
    """What a login module's options ``extension_*`` are for librdkafka."""
    named = {n.removeprefix("extension_"): v for n, v in options.items() if n.startswith("extension_")}
    return ",".join(f"{name}={value}" for name, value in named.items())
