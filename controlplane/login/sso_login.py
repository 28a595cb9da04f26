"""Whose login it is, when a provider has said who somebody is."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from controlplane.common.errors import NotAllowed
from controlplane.common.text import storable
from controlplane.login.provider import Provider
from controlplane.teams.models import Invitation, User

_INVALID_CHARACTER = re.compile(r"[^\w.@+-]")
LONGEST_NAME = 100


@dataclass(frozen=True)
class Claims:
    """What the provider says of a person. An address that it has not verified counts for nothing."""

    username: str
    email: str
    first_name: str
    last_name: str
    groups: frozenset[str]


def claims_of(provider: Provider, id_token: dict[str, Any], userinfo: dict[str, Any]) -> Claims:
    """Of both answers, the second one first. The address and whether it is verified come of one answer."""
    merged = {**id_token, **userinfo}
    email_answer = userinfo if "email" in userinfo else id_token
    email = _text(email_answer.get("email")) if email_answer.get("email_verified") is True else ""
    return Claims(
        username=_text(merged.get("preferred_username")),
        email=email if _is_address(email) else "",
        first_name=_text(merged.get("given_name"))[:150],
        last_name=_text(merged.get("family_name"))[:150],
        groups=_groups(merged.get(provider.groups_claim)),
    )


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) and storable(value) else ""


def _groups(value: Any) -> frozenset[str]:
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(item for item in listed if isinstance(item, str))


def _is_address(email: str) -> bool:
    try:
        validate_email(email)
    except ValidationError:
        return False
    return len(email) <= 254


@transaction.atomic
def create_user(*, provider: Provider, claims: Claims, account: SocialAccount) -> User:
    """The user of an account that was not seen before: one with the same address, or a new one.

    Raises ``NotAllowed``, with what to do.
    """
    same = users_of_address(claims.email, lock=True)
    if provider.links_by_email and len(same) == 1:
        user = same[0]
        if SocialAccount.objects.filter(user=user, provider=account.provider).exists():
            raise NotAllowed(f"The login {user.username} already belongs to another account of {provider.label}.")
        _revoke_credentials(user)
    elif provider.takes_new_people:
        user = _new_user(claims, taken=bool(same))
    else:
        raise NotAllowed(
            f"{provider.label} knows you, but you have no login here. Ask a site administrator for one with the "
            "e-mail address that you use there."
        )
    account.user = user
    account.save()
    return user


def _revoke_credentials(user: User) -> None:
    """Only the provider has verified the address: whoever had the login until now may have been somebody else."""
    user.set_unusable_password()
    user.save()  # ends sessions and tokens
    Authenticator.objects.filter(user=user).delete()


def users_of_address(email: str, lock: bool = False) -> list[User]:
    """The people with this address who may log in.

    The database takes letters for the same that are not: they are compared once more.
    """
    if not email or not storable(email):
        return []
    users = User.objects.filter(email__iexact=email, is_active=True, service_of=None).order_by("pk")
    return [
        user for user in (users.select_for_update() if lock else users) if _normalized(user.email) == _normalized(email)
    ]


def _normalized(email: str) -> str:
    return unicodedata.normalize("NFKC", email).casefold()


def _new_user(claims: Claims, taken: bool) -> User:
    user = User(
        username=_free_name(claims.username or claims.email.partition("@")[0]),
        email="" if taken else claims.email,
        first_name=claims.first_name,
        last_name=claims.last_name,
    )
    user.set_unusable_password()
    user.save()
    return user


def _free_name(proposed: str) -> str:
    """A user name that is nobody's, nor anybody's who is invited: who picks a name must not get what is another's."""
    base = _INVALID_CHARACTER.sub("-", proposed)[:LONGEST_NAME].strip("-") or "person"
    number = 1
    name = base
    while _is_name_taken(name):
        number += 1
        name = f"{base}-{number}"
    return name


def _is_name_taken(name: str) -> bool:
    return (
        User.objects.filter(username__iexact=name).exists() or Invitation.objects.filter(username__iexact=name).exists()
    )
