"""Who must have a second factor, as ``HEADGATE_REQUIRE_SECOND_FACTOR`` says, and has none yet."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AnonymousUser

from controlplane.login.codes import has_second_factor
from controlplane.teams.models import Membership, User
from controlplane.teams.roles import Role


def must_add_factor(user: User | AnonymousUser) -> bool:
    """Whether this person may do nothing before they have set one up. Service accounts log in nowhere."""
    if settings.REQUIRE_SECOND_FACTOR == "none" or not isinstance(user, User) or user.service_of_id is not None:
        return False
    return (settings.REQUIRE_SECOND_FACTOR == "all" or _is_an_admin(user)) and not has_second_factor(user)


def _is_an_admin(user: User) -> bool:
    return user.is_superuser or Membership.objects.filter(user=user, role=Role.ADMIN).exists()
