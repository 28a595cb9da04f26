"""``manage.py rotate_secrets``: seal the secrets of all specs with the present HEADGATE_SECRET_KEY."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.login.second_factors import rotate_second_factors
from controlplane.supervisors.secret_rotation import rotate_secrets


class Command(BaseCommand):
    help = "Seals the secrets of all specs with the present HEADGATE_SECRET_KEY; see HEADGATE_OLD_SECRET_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        rotated, lost = rotate_secrets()
        factors, lost_factors = rotate_second_factors()
        self.stdout.write(f"{rotated + factors} sealed with the present key.")
        if lost_factors:
            raise CommandError(f"{lost_factors} second factors can't be opened with any key there is: remove them.")
        if lost:
            raise CommandError(f"{lost} can't be opened with any key there is: submit those specs again, with secrets.")
