"""Who there is and what they may do."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import salted_hmac
from knox.models import AbstractAuthToken

from controlplane.teams.roles import Limits, Role, Scope

NAME = RegexValidator(r"^[a-z0-9][a-z0-9_-]{0,62}\Z", "Use lower-case letters, digits, '-' and '_'.")


class User(AbstractUser):  # type: ignore[django-manager-missing]  # knox names its relation dynamically
    """A person or service account. ``is_superuser`` is the site's administrator.

    Another password, or being turned off, ends all sessions and deletes all tokens: both are bound to ``logins_ended``
    or go with it, so that none comes back when the user is turned on again. Being turned off is a trigger's business:
    it need not go through ``save``.
    """

    logins_ended = models.PositiveIntegerField(default=0)
    # For a service account: the team that it works for. It has no password, is nobody's member, and may what the token
    # that it shows may.
    service_of = models.ForeignKey("teams.Team", on_delete=models.CASCADE, null=True, related_name="service_accounts")

    # What the token of this request leaves of the user's rights; None for all of them. Never stored.
    limits: Limits | None = None
    # Which token that is, as lists of tokens name it; empty for a session or a password. Never stored.
    token_name: str = ""

    def save(self, *args: Any, **kwargs: Any) -> None:
        with transaction.atomic():
            ends = self._ends_logins(kwargs.get("update_fields"))
            super().save(*args, **kwargs)
            if ends:
                User.objects.filter(pk=self.pk).update(logins_ended=F("logins_ended") + 1)
                self.refresh_from_db(fields=["logins_ended"])
                ApiToken.objects.filter(user=self).delete()

    def _ends_logins(self, update_fields: Collection[str] | None) -> bool:
        if update_fields is not None and "password" not in update_fields:
            return False
        before = User.objects.filter(pk=self.pk).values_list("password", flat=True).first()
        if before is None:
            return False
        # Django stores the same password anew, and that alone, when its way of hashing has changed.
        hashed_anew = (
            update_fields == ["password"] and getattr(self, "_password", None) is None and self.has_usable_password()
        )
        return before != self.password and not hashed_anew

    def _get_session_auth_hash(self, secret: str | bytes | None = None) -> str:
        """What a session is bound to; Django's own knows the password alone."""
        bound = f"{self.password} {self.logins_ended}"
        return salted_hmac("controlplane.teams.session", bound, secret=secret, algorithm="sha256").hexdigest()


class Team(models.Model):
    """Owns datasources; everything below a datasource is visible to its members only."""

    name = models.CharField(max_length=63, unique=True, validators=[NAME])
    description = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # Once it owned nothing. The row stays for the audit trail, under a name that no team can be given.
    deleted_at = models.DateTimeField(null=True)
    members = models.ManyToManyField(User, through="Membership", related_name="teams")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def former_name(self) -> str:
        """Of a deleted one: what it was called."""
        return self.name.split("~", 2)[-1]


class Membership(models.Model):
    """A user's role in a team; at most one each."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    since = models.DateTimeField(default=timezone.now, null=True)  # None: from before this was kept

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "team"], name="one_role_per_team")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"


class Invitation(models.Model):
    """A role in a team that is offered to whoever has the name: it says nothing of whether there is such a user."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    username = models.CharField(max_length=150, db_index=True)
    role = models.CharField(max_length=10, choices=Role.choices)
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "username"], name="one_invitation_per_name")]


class ApiToken(AbstractAuthToken):
    """A bearer token; only its hash is kept."""

    name = models.CharField(max_length=100, blank=True)
    scope = models.CharField(max_length=10, choices=Scope.choices, blank=True)  # empty: whatever its user may
    datasources = ArrayField(models.CharField(max_length=200), default=list)  # these alone; empty for all
    last_used_at = models.DateTimeField(null=True)  # to the minute

    @property
    def limits(self) -> Limits | None:
        """None where it may whatever its user may."""
        return Limits(Scope(self.scope), frozenset(self.datasources)) if self.scope else None

    @property
    def display_name(self) -> str:
        """Its id, by which lists name it, and its name."""
        return f"{self.token_key} {self.name}".strip()


class AuditEntry(models.Model):
    """Who did what to what, and when. Rows are added and never changed: a trigger of the database refuses it.

    Names stand as text, so that an entry outlives what it speaks of. ``detail`` holds no secret and no payload.
    """

    at = models.DateTimeField(auto_now_add=True)
    # None for what is the site's: its people, and which teams there are.
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="audit_entries", null=True)
    username = models.CharField(max_length=150, blank=True)  # empty for what Headgate did by itself
    address = models.GenericIPAddressField(null=True)  # the client's; None where no request asked
    action = models.CharField(max_length=40)
    target = models.CharField(max_length=20)
    target_id = models.CharField(max_length=300)
    token = models.CharField(max_length=130, blank=True, default="")  # the id and the name of the one that was shown
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["team", "-id"], name="audit_by_team"),
            models.Index(fields=["target", "target_id", "-id"], name="audit_by_target"),
        ]


class LinkInvitation(models.Model):
    """A role in a team that is offered to whoever has the link's secret and is of the address."""

    team = models.ForeignKey("teams.Team", on_delete=models.CASCADE, related_name="link_invitations")
    email = models.EmailField(max_length=254)  # in lower case
    role = models.CharField(max_length=10, choices=Role.choices)
    digest = models.CharField(max_length=64, unique=True)  # of the secret, which is nowhere kept
    mailed = models.BooleanField(default=False)
    invited_by = models.ForeignKey("teams.User", on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "email"], name="one_link_per_address")]


class PasswordLink(models.Model):
    """Lets whoever has the secret choose a user's password, once; a new one replaces it."""

    user = models.OneToOneField("teams.User", on_delete=models.CASCADE, related_name="password_link")
    digest = models.CharField(max_length=64, unique=True)
    made_by = models.ForeignKey("teams.User", on_delete=models.CASCADE, related_name="+")
    expires_at = models.DateTimeField()


class AnsweredRequest(models.Model):
    """The answer to a request that had an ``Idempotency-Key``: the same request gets it again, for a day."""

    user = models.ForeignKey("teams.User", on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)  # of the request
    status = models.PositiveSmallIntegerField(default=0)
    body = models.JSONField(null=True)
    headers = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_per_key")]
