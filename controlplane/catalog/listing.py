"""Which snapshots a table lists: the newest, and of older ones the last of each hour, while their files are kept.

The others are deleted when their leases have ended, and so are all of a deleted datasource. Rows go, and the clean-up
of orphans deletes their files.
"""

from __future__ import annotations

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, QuerySet
from django.db.models.functions import TruncHour
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.feed.manifest import root_address
from controlplane.segments.models import Manifest, Snapshot
from controlplane.segments.snapshot_leases import complete, hold_leases

_NEWEST = 20  # that are listed, whatever the hour


def listed_snapshots(datasource: Datasource) -> QuerySet[Snapshot]:
    """Those whose files no deletion of unused segments reaches before a lease ends, and the newest."""
    kept = min(settings.KILL_BUFFER_PERIOD, settings.KILL_REPLACED_AFTER)
    snapshots = Snapshot.objects.filter(datasource=datasource, root=root_address())
    newest = list(snapshots.order_by("-number").values_list("number", flat=True)[:_NEWEST])
    recent = snapshots.filter(unused_after__gt=timezone.now() - kept + settings.SNAPSHOT_LEASE)
    hourly = recent.annotate(hour=TruncHour("created_until")).values("hour").annotate(latest=Max("number"))
    listed = recent.filter(number__in=[*newest, *hourly.values_list("latest", flat=True)])
    return listed | snapshots.filter(number__in=newest[:1])


def expire() -> int:
    """Delete the snapshots that are not listed and not leased, and manifests of no snapshot; how many snapshots."""
    has_snapshots = Exists(Snapshot.objects.filter(datasource=OuterRef("pk")))
    has_manifests = Exists(Manifest.objects.filter(datasource=OuterRef("pk")))
    return sum(_expire(datasource) for datasource in Datasource.objects.filter(has_snapshots | has_manifests))


@transaction.atomic
def _expire(datasource: Datasource) -> int:
    hold_leases()  # nobody is given one that is about to go
    snapshots = Snapshot.objects.filter(datasource=datasource)
    manifests = Manifest.objects.filter(datasource=datasource)
    is_deleted = _is_deleted(datasource)
    staying = set() if is_deleted else _staying(datasource)
    count, _ = snapshots.filter(leased_until__lt=timezone.now()).exclude(pk__in=staying).delete()
    if is_deleted and not snapshots.exists():
        manifests.delete()
    theirs = Snapshot.objects.filter(
        datasource=OuterRef("datasource"), number__gte=OuterRef("first_snapshot"), number__lte=OuterRef("last_snapshot")
    )
    manifests.filter(last_snapshot__isnull=False).exclude(Exists(theirs)).delete()
    return count


def _is_deleted(datasource: Datasource) -> bool:
    """Locked, if so: a spec that makes it again waits."""
    rows = Datasource.objects.select_for_update(no_key=True).filter(pk=datasource.pk, deleted_at__isnull=False)
    return rows.first() is not None


def _staying(datasource: Datasource) -> set[int]:
    newest = Snapshot.objects.filter(datasource=datasource).order_by("-number").values_list("pk", flat=True)[:1]
    return {*newest, *complete(listed_snapshots(datasource)).values_list("pk", flat=True)}
