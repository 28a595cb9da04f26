"""Invitations by a link, for who has no login yet. Only a hash of a link's secret is kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.common import mail
from controlplane.common.errors import Conflict, FieldError, InvalidInput, NotAllowed, NotFound
from controlplane.common.text import storable
from controlplane.teams import audit
from controlplane.teams.models import LinkInvitation, Membership, Team, User
from controlplane.teams.permissions import Action, may, require, require_person
from controlplane.teams.roles import Role
from controlplane.teams.services import MAX_INVITATIONS, lock_team, user_name

LINK_LIFE = timedelta(days=7)
LINK_INVALID = "This link is not valid. It was used, withdrawn or replaced, or it has expired. Ask for a new one."


@dataclass(frozen=True)
class SentLink:
    """An invitation that was just made."""

    invitation: LinkInvitation
    link: str  # to be handed on; empty where a mail has gone out with it
    problem: str  # why no mail went out although a server is set


def digest_of(secret: str) -> str:
    """What is kept of a secret, which is of 256 random bits: no salt makes it harder to guess."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def new_secret() -> str:
    """For one link."""
    return secrets.token_urlsafe(32)


def invite_by_link(*, user: User, team: Team, email: str, role: Role, address: Callable[[str], str]) -> SentLink:
    """Offer a role to an address; ``address`` makes the link of a secret. An earlier link to it is void.

    The answer says nothing of whether somebody has this address. A mail goes out where a server is set.
    Raises ``NotAllowed``, ``InvalidInput`` (no address), ``Conflict`` (too many are invited).
    """
    require(user, Action.ADMINISTER, team)
    require_person(user, "invite by a link")  # it would outlive the token
    secret = new_secret()
    invitation = _store_invitation(user, team, normalized_email(email), role, digest_of(secret))
    link = address(secret)
    if not mail.is_configured():
        return SentLink(invitation, link, "")
    try:
        mail.send(to=[invitation.email], subject=f"Team {team.name} invites you", body=_mail_body(invitation, link))
    except mail.MailFailed as error:
        return SentLink(invitation, link, error.detail)
    LinkInvitation.objects.filter(pk=invitation.pk, digest=invitation.digest).update(mailed=True)
    invitation.mailed = True
    return SentLink(invitation, "", "")


@transaction.atomic
def _store_invitation(user: User, team: Team, email: str, role: Role, digest: str) -> LinkInvitation:
    lock_team(team)
    require(user, Action.ADMINISTER, team)
    now = timezone.now()
    team.link_invitations.filter(expires_at__lte=now).delete()
    if team.link_invitations.exclude(email=email).count() >= MAX_INVITATIONS:
        raise Conflict(f"{MAX_INVITATIONS} are invited already. Withdraw some invitations.")
    values = {
        "role": role.value,
        "digest": digest,
        "mailed": False,
        "invited_by": user,
        "created_at": now,
        "expires_at": now + LINK_LIFE,
    }
    invitation, _ = LinkInvitation.objects.update_or_create(team=team, email=email, defaults=values)
    audit.record(user=user, team=team, target="member", target_id=email, action="invite_by_link", role=role.value)
    return invitation


def normalized_email(email: str) -> str:
    """In the form that is kept. Raises ``InvalidInput``."""
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidInput(
            "This is not a valid e-mail address.", [FieldError("/email", " ".join(error.messages), "email")]
        ) from None
    if not storable(email) or len(email) > 254:
        raise InvalidInput("An e-mail address has at most 254 characters.")
    return email


def _mail_body(invitation: LinkInvitation, link: str) -> str:
    return (
        f"{invitation.invited_by.username} invites you to team {invitation.team.name} as {invitation.role}.\n\n"
        f"Open this link to accept. It works once, until {invitation.expires_at:%Y-%m-%d %H:%M} UTC:\n\n{link}\n"
    )


def list_links(user: User, team: Team) -> QuerySet[LinkInvitation]:
    """A team's open invitations by link. Raises ``NotAllowed``: only its admins see whom they have invited."""
    require(user, Action.ADMINISTER, team)
    return team.link_invitations.filter(expires_at__gt=timezone.now()).order_by("email")


@transaction.atomic
def withdraw_link(*, user: User, team: Team, link_id: int) -> None:
    """Make a link void. Raises ``NotAllowed``, ``NotFound``."""
    lock_team(team)
    invitation = list_links(user, team).filter(pk=link_id).first()
    if invitation is None:
        raise NotFound("There is no such invitation.")
    invitation.delete()
    audit.record(user=user, team=team, target="member", target_id=invitation.email, action="withdraw")


def open_invitation(secret: str) -> LinkInvitation:
    """What a secret leads to. Raises ``NotFound``, with one text whatever is wrong.

    Who has lost the right to invite since, or is turned off, invites nobody any more.
    """
    invitation = LinkInvitation.objects.select_related("team", "invited_by").filter(digest=digest_of(secret)).first()
    if invitation is None or invitation.expires_at <= timezone.now() or invitation.team.deleted_at is not None:
        raise NotFound(LINK_INVALID)
    if not may(invitation.invited_by, Action.ADMINISTER, invitation.team):
        raise NotFound(LINK_INVALID)
    return invitation


def is_for(invitation: LinkInvitation, user: User) -> bool:
    """Whether the user has the address that is invited."""
    return bool(user.email) and user.email.lower() == invitation.email


@transaction.atomic
def accept_link(*, user: User, secret: str) -> Team:
    """Become a member with a login that one has.

    Raises ``NotFound``, ``NotAllowed`` (another address), ``Conflict`` (a member already).
    """
    invitation = _lock_invitation(secret)
    if not is_for(invitation, user):
        raise NotAllowed("This invitation is for another e-mail address than the one of your login.")
    if Membership.objects.filter(user=user, team=invitation.team).exists():
        raise Conflict(f"You are in team {invitation.team.name} already.")
    return _join(invitation, user)


@transaction.atomic
def join_by_link(*, secret: str, username: str, password: str) -> User:
    """Make a login for who is invited, a member from now on.

    The address is theirs, unless a login has it already: nobody is told so. Raises ``NotFound``, ``InvalidInput``.
    """
    invitation = _lock_invitation(secret)
    free = not User.objects.filter(email__iexact=invitation.email).exists()
    user = User(username=user_name(username), email=invitation.email if free else "")
    try:
        validate_password(password, user)
    except ValidationError as error:
        faults = [FieldError("/password", message, "password") for message in error.messages]
        raise InvalidInput("Choose another password.", faults) from None
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError:
        fault = FieldError("/username", "is taken; choose another", "username")
        raise InvalidInput("Choose another user name.", [fault]) from None
    _join(invitation, user)
    return user


def _lock_invitation(secret: str) -> LinkInvitation:
    """The invitation, whose team nobody else changes meanwhile: its link works once, and for an admin's guest alone."""
    team = open_invitation(secret).team
    lock_team(team)
    return open_invitation(secret)


def _join(invitation: LinkInvitation, user: User) -> Team:
    deleted, _ = LinkInvitation.objects.filter(pk=invitation.pk, digest=invitation.digest).delete()
    if not deleted:
        raise NotFound(LINK_INVALID)
    Membership.objects.create(user=user, team=invitation.team, role=invitation.role)
    audit.record(
        user=user,
        team=invitation.team,
        target="member",
        target_id=user.username,
        action="join",
        role=invitation.role,
        invited=invitation.email,
        by=invitation.invited_by.username,
    )
    return invitation.team
