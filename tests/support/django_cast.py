"""One cast for all tests of the control plane: who there is, and what they own.

Team alpha has an owner (role admin), an operator and a viewer; team beta has an outsider. Everything belongs to alpha's
datasource ``flights``, fed by share group ``flights-group`` on topic ``flights-topic``: 3 days, 4 segments, 1500 rows.
"""

from __future__ import annotations

import copy
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Min, Sum
from django.test import Client
from django.utils import timezone
from psycopg.types.range import Int8Range

from controlplane.alerts.facts import NOBODY
from controlplane.common.health import Health
from controlplane.connections.models import Connection
from controlplane.datasources.models import Datasource
from controlplane.publishing.models import OFFSET_BITS, IndexerFence, ProgressKey, Receipt, SettledRange
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import Interval, Segment, SegmentSchema
from controlplane.sources.models import Source, SourceEvent
from controlplane.supervisors.health_queries import health_of_supervisor
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.selectors import why_nothing
from controlplane.tasks.models import Indexer, Status, Task
from controlplane.teams.models import ApiToken, Membership, Team, User
from controlplane.teams.roles import Role, Scope
from ingestion.specs.causes import cause_of
from ingestion.specs.source_traits import SHARE_GROUP
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec

ROLES = ("owner", "operator", "viewer", "outsider", "anonymous", "superuser")
PASSWORD = "correct horse battery staple"
DAY = datetime(2013, 1, 1, tzinfo=UTC)
STARTED = datetime(2025, 6, 1, 12, tzinfo=UTC)
PAYLOAD = b'{"flight": <b>12</b>'

# As in the share-group document.
SEED: dict[str, Any] = {
    "type": "index_kafka_share_group",
    "dataSchema": {
        "dataSource": "my_datasource",
        "timestampSpec": {"column": "__time", "format": "auto"},
        "dimensionsSpec": {"useSchemaDiscovery": True},
        "granularitySpec": {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False},
    },
    "ioConfig": {
        "topic": "my_topic",
        "groupId": "druid-share-group",
        "consumerProperties": {"bootstrap.servers": "kafka-broker:9092"},
        "inputFormat": {"type": "json"},
        "pollTimeout": 2000,
    },
    "tuningConfig": {"type": "KafkaTuningConfig", "maxRowsPerSegment": 5000000},
}


def reasons_of(supervisor: Supervisor) -> list[Health]:
    """Why nothing new comes, as its page and REST say."""
    return why_nothing(supervisor, health_of_supervisor(NOBODY, supervisor))


def spec_for(datasource: str, **io_config: Any) -> dict[str, Any]:
    """The seed's spec for another datasource, its ioConfig changed."""
    spec = copy.deepcopy(SEED)
    spec["dataSchema"]["dataSource"] = datasource
    spec["ioConfig"].update({"topic": f"{datasource}-topic", "groupId": f"{datasource}-group", **io_config})
    return spec


@dataclass(frozen=True)
class Cast:
    """``users`` by role, without anonymous; ``service`` is alpha's service account, without a token.

    ``segments``: by interval and partition number.
    """

    alpha: Team
    beta: Team
    users: dict[str, User]
    datasource: Datasource
    source: Source
    keys: list[ProgressKey]
    segments: list[Segment]
    fences: list[IndexerFence]
    supervisor: Supervisor
    task: Task
    quarantined: QuarantinedRecord
    event: SourceEvent
    connection: Connection  # to a schema registry that does not answer; nobody uses it


def speaking_as(cast: Cast, role: str) -> Client:
    """A client with a bearer token of that role's user; without for anonymous. Its answers never raise."""
    if role == "anonymous":
        return Client(raise_request_exception=False)
    _, secret = ApiToken.objects.create(user=cast.users[role], name="test", last_used_at=_all_the_time())
    return Client(raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"})


def serving(cast: Cast, scope: Scope, *datasources: str) -> Client:
    """A client with a token of alpha's service account."""
    limits = {"scope": scope.value, "datasources": list(datasources), "last_used_at": _all_the_time()}
    _, secret = ApiToken.objects.create(user=cast.users["service"], name="test", **limits)
    return Client(raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"})


def _all_the_time() -> datetime:
    """When a token was last used that asks and writes nothing, also in a test of several minutes."""
    return timezone.now() + timedelta(hours=1)


def browsing_as(cast: Cast, role: str) -> Client:
    """A client with a session of that role's user."""
    client = Client(raise_request_exception=False)
    if role != "anonymous":
        client.force_login(cast.users[role])
    return client


def make_cast() -> Cast:
    """All rows, in the caller's transaction."""
    alpha, beta = Team.objects.create(name="alpha"), Team.objects.create(name="beta")
    users = _users(alpha, beta)
    datasource = Datasource.objects.create(name="flights", team=alpha, created_by=users["owner"])
    source = Source.objects.create(
        datasource=datasource,
        cluster_id="cluster-1",
        group="flights-group",
        topic="flights-topic",
        topic_id="topic-id-1",
        looked_at=STARTED,
        bounds={"0": [0, 0, 1000], "1": [0, 0, 1000]},
    )
    # As old in a session's last test as in its first: what is young has rates of its own.
    source.created_at -= timedelta(days=1)
    source.save(update_fields=["created_at"])
    supervisor = _supervisor(datasource, users["owner"])
    task = _task(datasource, supervisor)
    segments = _segments(datasource, task)
    keys = _progress(source)
    _receipts(task, keys, segments)
    return Cast(
        alpha=alpha,
        beta=beta,
        users=users,
        datasource=datasource,
        source=source,
        keys=keys,
        segments=segments,
        fences=_fences(datasource, source, task),
        supervisor=supervisor,
        task=task,
        quarantined=_quarantined(source, task),
        event=SourceEvent.objects.create(
            datasource=datasource,
            source=source,
            kind=SourceEvent.Kind.GAP,
            alarm=True,
            detail="Offsets 5 to 6 were removed by retention.",
            task_id=task.pk,
        ),
        connection=Connection.objects.create(
            team=alpha,
            name="orders-schemas",
            kind=Connection.Kinds.SCHEMA_REGISTRY,
            properties={"url": "http://127.0.0.1:1", "config": {}, "headers": {}},
            created_by=users["owner"],
            changed_by=users["owner"],
        ),
    )


def _users(alpha: Team, beta: Team) -> dict[str, User]:
    roles = {"owner": (alpha, Role.ADMIN), "operator": (alpha, Role.OPERATOR), "viewer": (alpha, Role.VIEWER)}
    roles["outsider"] = (beta, Role.ADMIN)
    users = {name: User.objects.create_user(name, password=PASSWORD) for name in roles}
    for name, (team, role) in roles.items():
        Membership.objects.create(user=users[name], team=team, role=role)
    users["superuser"] = User.objects.create_superuser("superuser", password=PASSWORD)
    users["service"] = User.objects.create_user("loader@alpha", service_of=alpha)
    return users


def _supervisor(datasource: Datasource, owner: User) -> Supervisor:
    supervisor = Supervisor.objects.create(id=datasource.name, datasource=datasource, detailed_state="RUNNING")
    spec = parse_supervisor_spec(spec_for(datasource.name)).canonical()
    SpecVersion.objects.create(supervisor=supervisor, version=1, spec=spec, created_by=owner)
    return supervisor


def _task(datasource: Datasource, supervisor: Supervisor) -> Task:
    task = Task.objects.create(
        id="index_kafka_share_group_flights_2025-06-01T12-00-00_abcdefgh",
        kind=SHARE_GROUP.kind,
        datasource=datasource,
        supervisor_id=supervisor.pk,
        spec_version=1,
        spec=supervisor.versions.get(version=1).spec,
        status=Status.RUNNING,
        indexers_wanted=2,
        slots=32,
        created_at=STARTED - timedelta(seconds=5),
        launched_at=STARTED - timedelta(seconds=4),
        started_at=STARTED,
        last_heartbeat_at=STARTED + timedelta(minutes=10),
    )
    for number in range(2):
        Indexer.objects.create(task=task, number=number, epoch=1, state="reading", partitions=[number])
    return task


def _segments(datasource: Datasource, task: Task) -> list[Segment]:
    """Days 1, 1, 2, 3 with 500, 400, 300, 300 rows."""
    places = [(0, 0, 500), (0, 1, 400), (1, 0, 300), (2, 0, 300)]
    made = [_segment(datasource, task.pk, DAY + timedelta(days=d), number, rows) for d, number, rows in places]
    sum_intervals(datasource)
    return made


def sum_intervals(datasource: Datasource) -> None:
    """Bring the intervals' sums, which a publish keeps, up to segments that were made without one."""
    found = Segment.objects.filter(datasource=datasource, used=True).values("interval_start", "interval_end")
    Interval.objects.filter(datasource=datasource).delete()
    Interval.objects.bulk_create(
        Interval(
            datasource=datasource,
            start=row["interval_start"],
            end=row["interval_end"],
            version=row["one_version"],
            segments=row["count"],
            rows=row["sum_rows"],
            size_bytes=row["sum_bytes"],
            min_time=row["low"],
            max_time=row["high"],
        )
        for row in found.annotate(
            one_version=Max("version"),
            count=Count("id"),
            sum_rows=Sum("rows"),
            sum_bytes=Sum("size_bytes"),
            low=Min("min_time"),
            high=Max("max_time"),
        ).order_by()
    )


_COLUMNS = [{"name": "__time", "type": "timestamp"}, {"name": "carrier", "type": "string"}]


def make_segment(datasource: Datasource, task_id: str, start: datetime, number: int, rows: int) -> Segment:
    """A day's segment; 10 bytes a row."""
    made = _segment(datasource, task_id, start, number, rows)
    sum_intervals(datasource)
    return made


def _segment(datasource: Datasource, task_id: str, start: datetime, number: int, rows: int) -> Segment:
    return Segment.objects.create(
        id=uuid.uuid4(),
        datasource=datasource,
        interval_start=start,
        interval_end=start + timedelta(days=1),
        version=datasource.append_version,
        partition_num=number,
        rows=rows,
        size_bytes=rows * 10,
        sha256="0" * 64,
        path=f"/segments/{datasource.name}/{uuid.uuid4()}.parquet",
        min_time=start + timedelta(hours=1),
        max_time=start + timedelta(hours=23),
        schema=SegmentSchema.of(datasource, _COLUMNS),
        task_id=task_id,
        created_at=STARTED,
    )


def _progress(source: Source) -> list[ProgressKey]:
    """Two partitions of 1000 offsets: partition 0 settled but for [700, 710); partition 1 up to 600."""
    keys = [
        ProgressKey.objects.create(source=source, partition=p, end_offset=1000, log_start_offset=0, observed_at=STARTED)
        for p in range(2)
    ]
    settle(keys[0], (0, 700), (710, 1000))
    settle(keys[1], (0, 300), (300, 600))
    return keys


def settle(key: ProgressKey, *ranges: tuple[int, int]) -> None:
    """Settled ranges without a publish."""
    for start, end in ranges:
        SettledRange.objects.create(span=spanning(key, start, end), settled_at=STARTED)


def spanning(key: ProgressKey, start: int, end: int) -> Int8Range:
    return Int8Range((key.pk << OFFSET_BITS) + start, (key.pk << OFFSET_BITS) + end)


def _receipts(task: Task, keys: list[ProgressKey], segments: list[Segment]) -> None:
    """Partition 0: [0, 500) stored in the first segment but for 7 (unparseable) and [10, 12) (thrown away)."""
    make_receipt(
        task,
        keys[0],
        (0, 500),
        {"stored": [[0, 7, 0], [8, 10, 0], [12, 500, 1]], "unparseable": [[7, 8]], "thrown_away": [[10, 12]]},
        segments[:2],
    )
    make_receipt(task, keys[0], (3, 4), {"duplicate": [[3, 4]]}, [], after=timedelta(seconds=1))


def make_receipt(
    task: Task,
    key: ProgressKey,
    hull: tuple[int, int],
    outcomes: dict[str, list[list[int]]],
    segments: list[Segment],
    after: timedelta = timedelta(0),
) -> Receipt:
    return Receipt.objects.create(
        publish_id=uuid.uuid4(),
        task_id=task.pk,
        indexer=0,
        key=key,
        hull=spanning(key, *hull),
        outcomes=outcomes,
        segment_ids=[str(s.pk) for s in segments],
        created_at=STARTED + after,
    )


def _fences(datasource: Datasource, source: Source, task: Task) -> list[IndexerFence]:
    """Two indexers: 1000 and 500 rows published; 1512 and 540 records polled, all of which ended."""
    common: dict[str, Any] = {"task_id": task.pk, "datasource": datasource, "source": source, "epoch": 1}
    first = IndexerFence.objects.create(
        **common,
        number=0,
        polled=1008,
        published=1000,
        thrown_away=2,
        filtered=2,
        unparseable=1,
        quarantined=1,
        processed_with_error=20,
        duplicates=5,
        redelivered=6,
        released_before=500,
        released_now=4,
        redelivered_now=3,
        input_bytes=100_000,
        segments=3,
        size_bytes=12_000,
        publishes=4,
        started_at=STARTED,
        first_publish_at=STARTED + timedelta(seconds=10),
        last_publish_at=STARTED + timedelta(seconds=60),
    )
    second = IndexerFence.objects.create(
        **common,
        number=1,
        polled=540,
        published=500,
        thrown_away=40,
        outside_window=40,
        input_bytes=50_000,
        segments=1,
        size_bytes=3_000,
        publishes=1,
        started_at=STARTED + timedelta(seconds=1),
        first_publish_at=STARTED + timedelta(seconds=20),
        last_publish_at=STARTED + timedelta(seconds=100),
    )
    return [first, second]


def _quarantined(source: Source, task: Task) -> QuarantinedRecord:
    return QuarantinedRecord.objects.create(
        source=source,
        datasource=source.datasource,
        task_id=task.pk,
        partition=0,
        offset=7,
        timestamp_ms=1_356_998_400_000,
        delivery_count=1,
        reason="unparseable",
        error="Malformed JSON at byte 12",
        cause=cause_of("unparseable", "Malformed JSON at byte 12").fingerprint,
        key=b"key",
        payload=PAYLOAD,
        publish_id=uuid.uuid4(),
        created_at=STARTED,
    )
