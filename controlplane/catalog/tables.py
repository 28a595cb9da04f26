"""The catalog as a user sees it: teams are namespaces, datasources are tables. Other teams' are not found."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.catalog import celery_tasks
from controlplane.catalog.building import Outcome, build, count_changed_segments
from controlplane.catalog.listing import listed_snapshots
from controlplane.catalog.metadata import table_metadata
from controlplane.common.errors import NotFound, Unavailable
from controlplane.common.rate_limit import is_first
from controlplane.common.text import storable
from controlplane.datasources.masking import hidden_records, require_record_access
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import get_by_name
from controlplane.feed.manifest import root_address
from controlplane.segments.columns import columns_of
from controlplane.segments.models import Snapshot
from controlplane.segments.snapshot_leases import lease
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import teams_of

MAX_NEW_SEGMENTS = 20_000  # that a request reads itself: about a second
REQUEST_S = 5.0  # that it takes for them at most, however slow deep storage is
ASK_AGAIN_S = 5  # after which Celery is asked again for a build that many readers wait for
SHORTEST = timedelta(seconds=1)  # between two snapshots
_LOOK_S = 0.1  # between two looks whether another process has built


def list_namespaces(user: User) -> list[Team]:
    """The teams that the user belongs to, and those of datasources that the token names, by name."""
    theirs = Datasource.objects.visible_to(user).present().values("team")
    return list((Team.objects.filter(pk__in=theirs) | Team.objects.filter(pk__in=teams_of(user))).order_by("name"))


def find_namespace(user: User, name: str) -> Team:
    """One of ``list_namespaces``. Raises ``NotFound``."""
    team = next((t for t in list_namespaces(user) if t.name == name), None)
    if team is None:
        raise NotFound(f"There is no team {name!r}.")
    return team


def list_tables(user: User, namespace: Team) -> list[str]:
    """The names of the team's datasources whose files the user may read."""
    datasources = Datasource.objects.visible_to(user).present().filter(team=namespace)
    return list(datasources.exclude(pk__in=hidden_records(user)).order_by("name").values_list("name", flat=True))


def find_table(user: User, namespace: Team, name: str) -> Datasource:
    """Raises ``NotFound``, and ``NotAllowed`` where columns are masked for the user."""
    datasource = get_by_name(_present(user, namespace), name if storable(name) else "")
    require_record_access(user, datasource, "reading its files (they hold all columns in plain)")
    return datasource


def _present(user: User, namespace: Team) -> QuerySet[Datasource]:
    return Datasource.objects.visible_to(user).present().filter(team=namespace).select_related("team")


def load_metadata(datasource: Datasource, *, current_only: bool = False) -> dict[str, Any]:
    """The table's metadata with a snapshot of now. The files that it names stay for a lease.

    ``current_only``: without earlier snapshots. The caller has made sure that the user may read the files. Raises
    ``Unavailable``.
    """
    is_current = _refresh(datasource)
    snapshots = lease(listed_snapshots(datasource))
    if not snapshots and not is_current:
        raise Unavailable(f"The first snapshot of {datasource.name} is being built. Try again in a minute.")
    columns = list(columns_of(datasource))
    return table_metadata(
        root=root_address(),
        name=datasource.name,
        identity=datasource.identity,
        columns=columns,
        snapshots=snapshots[-1:] if current_only else snapshots,
    )


def _refresh(datasource: Datasource) -> bool:
    """Build a snapshot if segments have changed; False if the last one stays for now, as Celery builds the next."""
    newest = Snapshot.objects.filter(datasource=datasource).order_by("-number").first()
    if newest is not None and timezone.now() - newest.created_until < SHORTEST:
        return True
    changed = count_changed_segments(datasource)
    if not changed:
        return True
    outcome = Outcome.UNFINISHED if changed > MAX_NEW_SEGMENTS else _build(datasource, waits=newest is None)
    if outcome is Outcome.UNFINISHED and is_first(f"build of table {datasource.pk}", ASK_AGAIN_S):
        celery_tasks.build.delay(datasource.pk)
    return outcome is Outcome.BUILT


def _build(datasource: Datasource, *, waits: bool) -> Outcome:
    """``waits``: for another process that builds, as there is nothing to serve meanwhile, and few clients try again."""
    until = time.monotonic() + REQUEST_S
    while (outcome := build(datasource, REQUEST_S)) is Outcome.ELSEWHERE and waits and time.monotonic() < until:
        time.sleep(_LOOK_S)
    return outcome


def storage_properties() -> dict[str, str]:
    """What readers need to reach deep storage besides credentials: for S3 its endpoint and region.

    A bucket of an own endpoint is in the path of an address, as Headgate asks for it. Iceberg's Java clients would
    otherwise look for a host of the bucket's name.
    """
    parts = urlsplit(settings.DEEP_STORAGE)
    query = dict(parse_qsl(parts.query)) if parts.scheme.lower() == "s3" else {}
    endpoint = query.get("endpoint_override", "")
    if endpoint and "://" not in endpoint:
        endpoint = f"{query.get('scheme', 'https')}://{endpoint}"
    path_style = "true" if endpoint else ""
    properties = {
        "s3.endpoint": endpoint,
        "s3.path-style-access": path_style,
        "s3.region": query.get("region", ""),
    }
    return {name: value for name, value in properties.items() if value}
