"""``manage.py rotate_secrets``: seal the secrets of all specs with the present HEADGATE_SECRET_KEY."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from controlplane.supervisors.rotation import rotate_secrets


class Command(BaseCommand):
    help = "Seals the secrets of all specs with the present HEADGATE_SECRET_KEY; see HEADGATE_OLD_SECRET_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        rotated, lost = rotate_secrets()
        self.stdout.write(f"{rotated} sealed with the present key.")
        if lost:
            raise CommandError(f"{lost} can't be opened with any key there is: submit those specs again, with secrets.")
