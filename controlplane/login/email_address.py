"""One's own e-mail address: another one counts when its owner has followed a link that was mailed to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.core import signing
from django.db import transaction

from controlplane.common import mail
from controlplane.common.errors import Conflict, NotFound
from controlplane.teams import audit
from controlplane.teams.invitation_links import normalized_email
from controlplane.teams.models import User
from controlplane.teams.permissions import require_person

log = logging.getLogger(__name__)
LINK_LIFE_S = 3600
LINK_INVALID = "This link is not valid. It was used, is for another login, or has expired. Ask for a new one."
_SALT = "controlplane.login.email_address"


def change_address(*, user: User, email: str, address: Callable[[str], str]) -> bool:
    """Set one's own address, or remove it with an empty one. Returns whether a link to confirm it was mailed instead.

    ``address`` makes the link of a secret. Where no mail server is set, and where it is removed, it changes at once.
    Raises ``InvalidInput``, ``NotAllowed`` (a token with a scope), ``Conflict`` (it is somebody's), ``MailFailed``.
    """
    require_person(user, "change an e-mail address")
    email = normalized_email(email) if email.strip() else ""
    if email == user.email:
        return False
    if email and mail.is_configured():
        link = address(secret_for(user, email))
        body = f"Open this link within one hour to confirm the address of the login {user.username}:\n\n{link}\n"
        mail.send(to=[email], subject="Headgate: confirm your address", body=body)
        return True
    _set_address(user, email)
    return False


def secret_for(user: User, email: str) -> str:
    """What shows that its bearer reads this address; void once the user has another one, or their logins have ended."""
    return signing.dumps([user.pk, user.email, user.logins_ended, email], salt=_SALT)


def address_in_secret(user: User, secret: str) -> str:
    """The address that a link would make the user's. Raises ``NotFound``, with one text whatever is wrong."""
    try:
        values: Any = signing.loads(secret, salt=_SALT, max_age=LINK_LIFE_S)
    except signing.BadSignature:
        raise NotFound(LINK_INVALID) from None
    if values[:3] != [user.pk, user.email, user.logins_ended]:
        raise NotFound(LINK_INVALID)
    return str(values[3])


def confirm_address(*, user: User, secret: str) -> str:
    """Set the address that a link was mailed to. Raises ``NotFound``, ``Conflict`` (it is somebody's by now)."""
    email = address_in_secret(user, secret)
    _set_address(user, email)
    return email


def _set_address(user: User, email: str) -> None:
    before = user.email
    with transaction.atomic():
        if email and User.objects.select_for_update().filter(email__iexact=email).exclude(pk=user.pk).exists():
            raise Conflict("Another login has this e-mail address.")
        if not User.objects.filter(pk=user.pk, email=before).update(email=email):
            raise NotFound(LINK_INVALID)
        audit.record(user=user, team=None, target="person", target_id=user.username, action="email", before=before)
    user.email = email
    if before and mail.is_configured():
        _notify_old_address(before, user.username)


def _notify_old_address(before: str, username: str) -> None:
    """The earlier address hears of it: that it changed may be news to its owner."""
    body = f"{before} is no longer the e-mail address of the login {username}. Not you? Ask a site administrator.\n"
    try:
        mail.send(to=[before], subject="Headgate: your address has changed", body=body)
    except mail.MailFailed as error:
        log.warning("the previous address could not be notified: %s", error.detail)
