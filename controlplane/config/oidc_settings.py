"""The provider that people log in by, read from the environment."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from controlplane.common.environment import EnvironmentProblem
from controlplane.config import env
from controlplane.login.provider import ROLES, Provider


def oidc_provider() -> Provider | None:
    """None where ``HEADGATE_OIDC_ISSUER`` is not set."""
    issuer = env.text("HEADGATE_OIDC_ISSUER", "").strip()
    client_id = env.text("HEADGATE_OIDC_CLIENT_ID", "")
    secret = env.text("HEADGATE_OIDC_CLIENT_SECRET", "")
    provider = Provider(
        issuer=issuer,
        client_id=client_id,
        secret=secret,
        scopes=tuple(env.text("HEADGATE_OIDC_SCOPES", "openid profile email").split()),
        label=env.text("HEADGATE_OIDC_LABEL", "your organisation"),
        groups_claim=env.text("HEADGATE_OIDC_GROUPS_CLAIM", "groups"),
        teams=mapping_of(env.text("HEADGATE_OIDC_TEAMS", "")),
        admin_group=env.text("HEADGATE_OIDC_ADMIN_GROUP", ""),
        takes_new_people=env.flag("HEADGATE_OIDC_NEW_PEOPLE"),
        links_by_email=env.flag("HEADGATE_OIDC_LINK_BY_EMAIL"),
    )
    if not issuer:
        return None
    _check_issuer(issuer)
    if not client_id or not secret:
        raise EnvironmentProblem("HEADGATE_OIDC_ISSUER needs HEADGATE_OIDC_CLIENT_ID and HEADGATE_OIDC_CLIENT_SECRET")
    return provider


def _check_issuer(issuer: str) -> None:
    parts = urlsplit(issuer)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and env.is_loopback(parts.hostname or ""):
        return
    raise EnvironmentProblem(f"HEADGATE_OIDC_ISSUER must begin with https://, not be {issuer!r}")


def mapping_of(text: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """``{"group": "team:role", "other": ["a:viewer", "b:admin"]}``."""
    try:
        teams: Any = json.loads(text or "{}")
        pairs = {group: [value] if isinstance(value, str) else value for group, value in teams.items()}
        read = {group: tuple(_pair(value) for value in values) for group, values in pairs.items()}
    except (ValueError, TypeError, AttributeError):
        raise EnvironmentProblem(
            'HEADGATE_OIDC_TEAMS must be JSON such as {"leads": ["web:admin", "ads:viewer"], "all": "web:viewer"}, '
            f"with a role out of {', '.join(ROLES)}"
        ) from None
    return read


def _pair(text: str) -> tuple[str, str]:
    team, colon, role = text.rpartition(":")
    if not team or not colon or role not in ROLES:
        raise ValueError(text)
    return team, role
