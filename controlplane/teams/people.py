"""The site's people: made, turned off and on by its administrators, and links that let them choose a password."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from controlplane.common import mail
from controlplane.common.errors import Conflict, FieldError, InvalidInput, NotFound
from controlplane.common.text import storable
from controlplane.teams import audit
from controlplane.teams.invitation_links import digest_of, new_secret, normalized_email
from controlplane.teams.models import PasswordLink, User
from controlplane.teams.permissions import is_site_admin, require_site_admin
from controlplane.teams.services import user_name

PASSWORD_LINK_LIFE = timedelta(hours=24)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
LINK_INVALID = "This link is not valid. It was used or replaced, or it has expired. Ask for a new one."


def list_people(user: User, *, search: str = "", active: bool | None = None, team: str = "") -> QuerySet[User]:
    """Everybody by name, without service accounts. Raises ``NotAllowed``: for the site's administrators.

    Adds ``last_seen``: the last login, long ago where there was none.
    """
    require_site_admin(user)
    if not storable(search) or not storable(team):
        return User.objects.none()
    people = User.objects.filter(service_of__isnull=True).annotate(last_seen=Coalesce("last_login", Value(NEVER)))
    if search:
        people = people.filter(Q(username__icontains=search) | Q(email__icontains=search))
    if active is not None:
        people = people.filter(is_active=active)
    if team:
        people = people.filter(memberships__team__name=team)
    return people.order_by("username")


def get_person(user: User, username: str) -> User:
    """One of ``list_people``. Raises ``NotAllowed``, ``NotFound``."""
    person = list_people(user).filter(username=username).first() if storable(username) else None
    if person is None:
        raise NotFound(f"There is no user {username!r}.")
    return person


def create_person(*, user: User, username: str, email: str = "") -> User:
    """Somebody without a password and without a team. Raises ``NotAllowed``, ``InvalidInput``, ``Conflict``."""
    require_site_admin(user)
    person = User(username=user_name(username), email=normalized_email(email) if email else "")
    if person.email and User.objects.filter(email__iexact=person.email).exists():
        raise Conflict("Another login has this e-mail address.")
    person.set_unusable_password()
    try:
        with transaction.atomic():
            person.save(force_insert=True)
            audit.record(user=user, team=None, target="person", target_id=person.username, action="create")
    except IntegrityError:
        raise Conflict(f"The user name {username!r} is taken.") from None
    return person


@transaction.atomic
def set_active(*, user: User, username: str, active: bool) -> None:
    """Turn somebody off, which ends their sessions and tokens for good, or on again. What they made goes on.

    Raises ``NotAllowed``, ``NotFound``, ``Conflict`` (oneself).
    """
    person = get_person(user, username)
    if person.pk == user.pk:
        raise Conflict("You cannot deactivate yourself. Ask another site administrator.")
    if User.objects.filter(pk=person.pk, is_active=not active).update(is_active=active):
        PasswordLink.objects.filter(user=person).delete()
        action = "activate" if active else "deactivate"
        audit.record(user=user, team=None, target="person", target_id=username, action=action)


def make_password_link(*, user: User, username: str, address: Callable[[str], str]) -> str:
    """A link with which somebody chooses a password: once, within a day; an earlier one is void.

    It is for the caller to hand on. Raises ``NotAllowed``, ``NotFound``, ``Conflict`` (turned off).
    """
    secret = new_secret()
    with transaction.atomic():
        person = get_person(user, username)
        if not person.is_active:
            raise Conflict(f"{username} is deactivated. Activate this user first.")
        values = {"digest": digest_of(secret), "made_by": user, "expires_at": timezone.now() + PASSWORD_LINK_LIFE}
        PasswordLink.objects.update_or_create(user=person, defaults=values)
        audit.record(user=user, team=None, target="person", target_id=username, action="password_link")
    return address(secret)


def send_password_link(*, user: User, username: str, address: Callable[[str], str]) -> tuple[str, str]:
    """Make one and mail it, where there is an address and a server: (link to hand on or empty, why no mail went out).

    Raises what ``make_password_link`` raises.
    """
    link, email = make_password_link(user=user, username=username, address=address), get_person(user, username).email
    if not mail.is_configured() or not email:
        return link, ""
    body = f"Open this link to choose the password of {username}. It works once and expires after 24 hours:\n\n{link}\n"
    try:
        mail.send(to=[email], subject="Choose your password", body=body)
    except mail.MailFailed as error:
        return link, error.detail
    return "", ""


def open_password_link(secret: str) -> PasswordLink:
    """What a secret leads to. Raises ``NotFound``, with one text whatever is wrong."""
    link = PasswordLink.objects.select_related("user", "made_by").filter(digest=digest_of(secret)).first()
    if link is None or link.expires_at <= timezone.now() or not is_site_admin(link.made_by):
        raise NotFound(LINK_INVALID)
    if not link.user.is_active or link.user.service_of_id is not None:
        raise NotFound(LINK_INVALID)
    return link


@transaction.atomic
def choose_password(*, secret: str, password: str) -> User:
    """Set the password, which ends all that was logged in. Raises ``NotFound``, ``InvalidInput``."""
    person = open_password_link(secret).user
    try:
        validate_password(password, person)
    except ValidationError as error:
        faults = [FieldError("/password", message, "password") for message in error.messages]
        raise InvalidInput("Choose another password.", faults) from None
    if not PasswordLink.objects.filter(digest=digest_of(secret)).delete()[0]:
        raise NotFound(LINK_INVALID)
    person.set_password(password)
    person.save(update_fields=["password"])
    audit.record(user=person, team=None, target="person", target_id=person.username, action="password_set")
    return person
