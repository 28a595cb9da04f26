"""Links that let somebody in: who has the secret may use it, once and for a time."""

from __future__ import annotations

from django.db import models

from controlplane.teams.roles import Role


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
