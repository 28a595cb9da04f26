"""Delete files in deep storage that no segment names."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from controlplane.common.durations import duration_of
from controlplane.common.errors import Unavailable
from controlplane.segments.orphans import SAFE_GRACE, clean_up


def _duration(value: str) -> timedelta:
    duration = duration_of(value)
    if duration is None:
        raise ArgumentTypeError(f"{value!r} is not an ISO 8601 duration such as PT24H")
    return duration


class Command(BaseCommand):
    help = "Delete files in deep storage that no segment names and that are older than a grace period."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
        parser.add_argument(
            "--older-than",
            type=_duration,
            default=settings.ORPHAN_GRACE,
            metavar="PT24H",
            help="the grace period; by default HEADGATE_ORPHAN_GRACE",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        grace: timedelta = options["older_than"]
        if grace < SAFE_GRACE and not options["dry_run"]:
            self.stderr.write(f"Files younger than {SAFE_GRACE} may still be published by indexers that run now.")
        try:
            cleanup = clean_up(grace=grace, dry_run=options["dry_run"])
        except Unavailable as error:
            raise CommandError(error.detail) from None
        if cleanup.end.error:
            raise CommandError(cleanup.summary())
        self.stdout.write(cleanup.summary())
