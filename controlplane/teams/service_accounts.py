"""Service accounts: users that belong to a team, have no password, and may what the token that they show may."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, QuerySet
from django.utils import timezone

from controlplane.common.errors import Conflict, FieldError, InvalidInput, NotFound
from controlplane.common.text import storable
from controlplane.teams import audit
from controlplane.teams.models import NAME, ApiToken, Team, User
from controlplane.teams.permissions import Action, require, require_person
from controlplane.teams.roles import Scope
from controlplane.teams.services import lock_team, new_token

MAX_ACCOUNTS = 100
NOTE_USE_EVERY = timedelta(minutes=1)


def list_accounts(user: User, team: Team) -> QuerySet[User]:
    """A team's service accounts by name, with ``token_count`` and ``last_used_at``. Raises ``NotAllowed``."""
    require(user, Action.ADMINISTER, team)
    accounts = team.service_accounts.annotate(
        token_count=Count("auth_token_set"), last_used_at=Max("auth_token_set__last_used_at")
    )
    return accounts.order_by("username")


def get_account(user: User, team: Team, name: str) -> User:
    """One of ``list_accounts`` by its short name. Raises ``NotAllowed``, ``NotFound``."""
    accounts = list_accounts(user, team)
    account = accounts.filter(username=_username(team, name)).first() if storable(name) else None
    if account is None:
        raise NotFound(f"Team {team.name} has no service account {name!r}.")
    return account


def short_name(account: User) -> str:
    """Its name within the team."""
    return account.username.partition("@")[0]


def _username(team: Team, name: str) -> str:
    """The name in the audit trail; no user of another team has it."""
    return f"{name}@{team.name}"


@transaction.atomic
def create_account(*, user: User, team: Team, name: str) -> User:
    """Make one without a token. Raises ``NotAllowed``, ``InvalidInput``, ``Conflict`` (taken, or too many)."""
    lock_team(team)
    require(user, Action.ADMINISTER, team)
    try:
        NAME(name)
    except ValidationError as error:
        fault = FieldError("/name", " ".join(error.messages), "name")
        raise InvalidInput("A service account's name has 1 to 63 characters.", [fault]) from None
    if team.service_accounts.count() >= MAX_ACCOUNTS:
        raise Conflict(f"Team {team.name} has {MAX_ACCOUNTS} service accounts already. Delete some.")
    account = User(username=_username(team, name), service_of=team)
    account.set_unusable_password()
    try:
        with transaction.atomic():
            account.save(force_insert=True)
    except IntegrityError:
        raise Conflict(f"The name {name!r} is taken; choose another.") from None
    audit.record(user=user, team=team, target="service_account", target_id=name, action="create")
    return account


@transaction.atomic
def delete_account(*, user: User, team: Team, name: str) -> None:
    """Delete it with its tokens; what it has submitted goes on. Raises ``NotAllowed``, ``NotFound``."""
    lock_team(team)
    get_account(user, team, name).delete()
    audit.record(user=user, team=team, target="service_account", target_id=name, action="delete")


def list_account_tokens(user: User, team: Team, name: str) -> QuerySet[ApiToken]:
    """An account's tokens, newest first. Raises ``NotAllowed``, ``NotFound``."""
    tokens: QuerySet[ApiToken] = ApiToken.objects.filter(user=get_account(user, team, name))
    return tokens.annotate(username=F("user__username")).order_by("-created", "digest")


def get_account_token(user: User, team: Team, account: str, token_id: str) -> ApiToken:
    """One of ``list_account_tokens``. Raises ``NotAllowed``, ``NotFound``."""
    tokens = list_account_tokens(user, team, account)
    token = tokens.filter(token_key=token_id).first() if storable(token_id) else None
    if token is None:
        raise NotFound(f"The service account {account!r} has no token {token_id!r}.")
    return token


@transaction.atomic
def create_account_token(
    *,
    user: User,
    team: Team,
    account: str,
    name: str,
    scope: Scope,
    datasources: Collection[str] = (),
    lifetime: timedelta = timedelta(days=90),
) -> tuple[ApiToken, str]:
    """A new token of an account, and its secret.

    Raises ``NotAllowed``, ``NotFound``, ``InvalidInput``, ``Conflict``.
    """
    lock_team(team)
    owner = get_account(user, team, account)
    require_person(user, "create a token")  # one would make the next when it is about to end
    token, secret = new_token(owner, name=name, lifetime=lifetime, scope=scope, datasources=datasources)
    audit.record(
        user=user,
        team=team,
        target="token",
        target_id=f"{owner.username}/{token.token_key}",
        action="create",
        name=name,
        scope=scope.value,
        datasources=token.datasources,
    )
    return token, secret


@transaction.atomic
def revoke_account_token(*, user: User, team: Team, account: str, token_id: str) -> None:
    """Delete one of ``list_account_tokens``. Raises ``NotAllowed``, ``NotFound``."""
    token = get_account_token(user, team, account, token_id)
    token.delete()
    username = _username(team, account)
    audit.record(
        user=user, team=team, target="token", target_id=f"{username}/{token_id}", action="revoke", name=token.name
    )


def note_use(token: ApiToken, now: datetime | None = None) -> None:
    """Keep when a token was last used: no more than one write a minute, however often it is."""
    now = now or timezone.now()
    if not used_lately(token, now):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


def used_lately(token: ApiToken, now: datetime) -> bool:
    """Whether a use was noted within the last minute before ``now``."""
    return token.last_used_at is not None and token.last_used_at > now - NOTE_USE_EVERY
