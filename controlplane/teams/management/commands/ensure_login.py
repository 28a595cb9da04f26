"""Make sure that a login and its team exist: for the embedded stack and for a first set-up."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import Field, Model

from controlplane.common import environment as env
from controlplane.common.errors import InvalidInput
from controlplane.teams.models import Membership, Team, User
from controlplane.teams.roles import Role
from controlplane.teams.teams import check_not_reserved


class Command(BaseCommand):
    help = "Create or update a login. The password comes from HEADGATE_LOGIN_PASSWORD (or ..._FILE)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--username", required=True)
        parser.add_argument("--team", required=True)
        parser.add_argument("--role", choices=Role.values, default=Role.ADMIN)
        parser.add_argument("--superuser", action="store_true")
        parser.add_argument("--migrate", action="store_true", help="Bring the database's tables up to date first.")

    def handle(self, *args: Any, **options: Any) -> None:
        password = env.text("HEADGATE_LOGIN_PASSWORD", "")
        if len(password) < 12:
            raise CommandError("HEADGATE_LOGIN_PASSWORD must hold a password of at least 12 characters.")
        _check("--username", User, "username", options["username"])
        _check("--team", Team, "name", options["team"])
        try:
            check_not_reserved(options["team"])
        except InvalidInput as error:
            raise CommandError(f"--team: {error.detail}") from None
        if options["migrate"]:
            call_command("migrate", interactive=False, stdout=self.stdout)
        self._ensure(password, options)

    @transaction.atomic
    def _ensure(self, password: str, options: dict[str, Any]) -> None:
        user, _ = get_user_model().objects.get_or_create(username=options["username"])
        user.is_superuser = options["superuser"]
        if not user.check_password(password):
            user.set_password(password)
        user.save()
        team, _ = Team.objects.get_or_create(name=options["team"])
        Membership.objects.update_or_create(user=user, team=team, defaults={"role": options["role"]})
        self.stdout.write(f"{user.username} is {options['role']} of team {team.name}")


def _check(option: str, model: type[Model], field: str, value: str) -> None:
    """Raise ``CommandError`` for a name that the model refuses."""
    try:
        cast("Field[Any, Any]", model._meta.get_field(field)).clean(value, None)
    except ValidationError as error:
        raise CommandError(f"{option}: {'; '.join(error.messages)}") from None
