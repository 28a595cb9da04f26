"""Which snapshots a table lists: the newest, and of older ones the last of each hour, while their files are kept.

The others are deleted when their leases have ended. Rows go, and the clean-up of orphans deletes their files.
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
    datasources = Datasource.objects.filter(snapshots__isnull=False).distinct()
    return sum(_expire(datasource) for datasource in datasources)


@transaction.atomic
def _expire(datasource: Datasource) -> int:
    hold_leases()  # nobody is given one that is about to go
    listed = listed_snapshots(datasource)
    newest = Snapshot.objects.filter(datasource=datasource).order_by("-number").values_list("pk", flat=True)[:1]
    staying = {*newest, *complete(listed).values_list("pk", flat=True)}
    ended = Snapshot.objects.filter(datasource=datasource, leased_until__lt=timezone.now()).exclude(pk__in=staying)
    count, _ = ended.delete()
    theirs = Snapshot.objects.filter(
        datasource=OuterRef("datasource"), number__gte=OuterRef("first_snapshot"), number__lte=OuterRef("last_snapshot")
    )
    Manifest.objects.filter(datasource=datasource, last_snapshot__isnull=False).exclude(Exists(theirs)).delete()
    return count
