"""Leases of snapshots: the files of a snapshot that a reader has been given stay until its lease ends.

Leases and ``killing.begin_deletion`` exclude each other by ``LEASES_LOCK``. A lease that comes first keeps the files.
If the deletion comes first, the lease's transaction sees ``kill_began_at``, and the snapshot is not given to readers.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from controlplane.segments.models import KilledSegment, Segment, Snapshot

_LEASES_LOCK = 0x4C454153
_ROUNDING = timedelta(minutes=1)  # a lease is extended at most this often


def hold_leases() -> None:
    """Until the end of this transaction no lease begins; those that began are committed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LEASES_LOCK])


def leased() -> Exists:
    """Whether a segment belongs to a snapshot whose lease has not ended."""
    return Exists(_leased_snapshots())


def with_leases(segments: QuerySet[Segment]) -> QuerySet[Segment]:
    """Each with ``leased_until``, when the last lease of a snapshot that has it ends; None if no lease holds it."""
    last = _leased_snapshots().order_by("-leased_until").values("leased_until")[:1]
    return segments.annotate(**{"leased_until": Subquery(last)})  # the model has declared it for the type checker


def _leased_snapshots() -> QuerySet[Snapshot]:
    """Those that have the segment of the outer query, and whose leases have not ended."""
    return Snapshot.objects.filter(
        datasource=OuterRef("datasource"),
        leased_until__gt=timezone.now(),
        created_until__gte=OuterRef("created_at"),
        unused_after__lt=OuterRef("unused_at"),
    )


@transaction.atomic
def lease(snapshots: QuerySet[Snapshot]) -> list[Snapshot]:
    """Those whose files are all there, in their order. From now on the files stay for a lease."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [_LEASES_LOCK])
    given = list(complete(snapshots).order_by("number"))
    until = timezone.now() + settings.SNAPSHOT_LEASE
    ending = [s.pk for s in given if s.leased_until < until]
    if ending:
        Snapshot.objects.filter(pk__in=ending).update(leased_until=until + _ROUNDING)
    return given


def complete(snapshots: QuerySet[Snapshot]) -> QuerySet[Snapshot]:
    """Those of which no segment's file is deleted, or is about to be."""
    theirs = Q(
        datasource=OuterRef("datasource"),
        created_at__lte=OuterRef("created_until"),
        unused_at__gt=OuterRef("unused_after"),
    )
    deleted = Exists(KilledSegment.objects.filter(theirs))
    given_up = Exists(Segment.objects.filter(theirs, used=False, kill_began_at__isnull=False))
    return snapshots.exclude(deleted | given_up)
