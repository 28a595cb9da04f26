"""Compare the files in deep storage with what was registered of them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.common.errors import Unavailable
from controlplane.datasources.models import Datasource
from controlplane.segments.verification import verify_segments


class Command(BaseCommand):
    help = "Read every segment's file, compare its size and SHA-256 with what was registered, and list what differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--datasource", metavar="NAME", help="only this one's; by default all")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            verification = verify_segments(_datasource_named(options["datasource"]), self.stdout.write)
        except Unavailable as error:
            raise CommandError(error.detail) from None
        if verification.damaged or verification.refused or verification.error:
            raise CommandError(verification.summary())
        self.stdout.write(verification.summary())


def _datasource_named(name: str | None) -> Datasource | None:
    if name is None:
        return None
    datasource = Datasource.objects.filter(name=name).first()
    if datasource is None:
        raise CommandError(f"There is no datasource {name!r}.")
    return datasource
