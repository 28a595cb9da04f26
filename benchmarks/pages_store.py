"""A metadata store as of a large site, filled in within half a minute: the server makes the rows itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

DATASOURCE, SUPERVISOR, TASK = "s0000", "s0000", "task-s0000"
_ROWS_A_SEGMENT = 5_000


def fill(
    environment: Mapping[str, str], tasks: int, supervisors: int, segments: int, intervals: int = 20_000
) -> timedelta:
    """One datasource, source and running task for each supervisor; all segments in the first datasource.

    Returns how long an interval is: an hour, or of more than ten years of them a minute.
    """
    os.environ.update(environment)
    import django  # not at the top: the settings are read when it is set up

    django.setup()
    from django.db import connection

    length = timedelta(hours=1) if intervals <= 100_000 else timedelta(minutes=1)
    _create_supervisors(supervisors)
    with connection.cursor() as cursor:
        cursor.execute(_ENDED, {"tasks": tasks - supervisors, "supervisors": supervisors})
        cursor.execute(_FENCES)
        with _without_indexes(cursor, "segments_segment"):
            params: dict[str, Any] = {
                "segments": segments,
                "intervals": intervals,
                "length": length,
                "rows": _ROWS_A_SEGMENT,
            }
            cursor.execute(_SEGMENTS, {**params, "schema": _schema()})
        with _without_indexes(cursor, "segments_interval"):
            cursor.execute(_INTERVALS)
        _sum_up()
        for seconds, count in ((5, 120), (60, 120), (3600, 48)):
            cursor.execute(_SAMPLES, {"seconds": seconds, "count": count})
        cursor.execute(_RECORDS)
        cursor.execute("VACUUM ANALYZE")
    connection.close()
    return length


def _schema() -> int:
    """The one schema that all segments have."""
    from controlplane.datasources.models import Datasource
    from controlplane.segments.models import SegmentSchema

    columns = [{"name": "__time", "type": "timestamp"}, {"name": "carrier", "type": "string"}]
    return SegmentSchema.of(Datasource.objects.get(name="s0000"), columns).pk


@contextmanager
def _without_indexes(cursor: Any, table: str) -> Iterator[None]:
    """They are made afterwards, in a third of the time."""
    cursor.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s AND indexname NOT IN"
        " (SELECT conname FROM pg_constraint)",
        [table],
    )
    indexes = cursor.fetchall()
    cursor.execute(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'u'",
        [table],
    )
    constraints = cursor.fetchall()
    for name, _ in constraints:
        cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
    for name, _ in indexes:
        cursor.execute(f'DROP INDEX "{name}"')
    yield
    for name, definition in constraints:
        cursor.execute(f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}')
    for _, definition in indexes:
        cursor.execute(definition)


def _sum_up() -> None:
    from controlplane.segments.day_sums import sum_up

    sum_up()


def _create_supervisors(supervisors: int) -> None:
    from django.utils import timezone

    from controlplane.datasources.models import Datasource
    from controlplane.sources.models import Source
    from controlplane.supervisors.models import SpecVersion, Supervisor
    from controlplane.tasks.models import Indexer, Task
    from controlplane.teams.models import Team
    from ingestion.specs.source_traits import SHARE_GROUP
    from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec

    team, now = Team.objects.get(name="demo"), timezone.now()
    names = [f"s{number:04d}" for number in range(supervisors)]
    specs = {name: parse_supervisor_spec(_spec(name)).canonical() for name in names}
    datasources = Datasource.objects.bulk_create(Datasource(name=name, team=team) for name in names)
    by_name = {d.name: d for d in datasources}
    Supervisor.objects.bulk_create(
        Supervisor(id=n, datasource=by_name[n], detailed_state="RUNNING", ran_at=now) for n in names
    )
    SpecVersion.objects.bulk_create(SpecVersion(supervisor_id=n, version=1, spec=specs[n]) for n in names)
    Source.objects.bulk_create(
        Source(
            datasource=by_name[n],
            cluster_id="c",
            group=n,
            topic=n,
            topic_id=n,
            looked_at=now,
            bounds={str(p): [0, 0, 1000] for p in range(4)},
        )
        for n in names
    )
    times: dict[str, Any] = {"created_at": now, "launched_at": now, "started_at": now, "last_heartbeat_at": now}
    Task.objects.bulk_create(
        Task(
            id=f"task-{n}",
            kind=SHARE_GROUP.kind,
            datasource=by_name[n],
            supervisor_id=n,
            spec_version=1,
            spec=specs[n],
            status="RUNNING",
            indexers_wanted=2,
            slots=32,
            observation={"topic_exists": True, "settled": 1000, "lag": 10, "partitions": 4, "end_offsets": {"0": 1000}},
            **{**times, "created_at": now - timedelta(minutes=30)},
        )
        for n in names
    )
    Indexer.objects.bulk_create(
        Indexer(task_id=f"task-{n}", number=i, state="reading", last_heartbeat_at=now) for n in names for i in range(2)
    )


def _spec(name: str) -> dict[str, Any]:
    return {
        "type": "index_kafka_share_group",
        "dataSchema": {
            "dataSource": name,
            "timestampSpec": {"column": "time", "format": "iso"},
            "dimensionsSpec": {"useSchemaDiscovery": True},
            "granularitySpec": {"segmentGranularity": "HOUR", "queryGranularity": "NONE", "rollup": False},
        },
        "ioConfig": {
            "topic": name,
            "groupId": name,
            "consumerProperties": {"bootstrap.servers": "kafka:9092"},
            "inputFormat": {"type": "json"},
        },
        "tuningConfig": {"type": "KafkaTuningConfig"},
    }


# Ended tasks, dealt out to the supervisors; each as its running one, an hour and more ago.
_ENDED = """
    INSERT INTO tasks_task (
        id, kind, datasource_id, supervisor_id, spec_version, spec, secrets, ranges, status, goal, indexers_wanted,
        slots, token_hash, created_at, launched_at, started_at, ended_at, error, message, observation
    )
    SELECT t.id || '-' || n, t.kind, t.datasource_id, t.supervisor_id, 1, t.spec, '', '[]', 'SUCCESS', 'finish', 2,
           32, '', now() - n * interval '1 minute', now() - n * interval '1 minute', now() - n * interval '1 minute',
           now() - (n - 1) * interval '1 minute', '', '', '{}'
    FROM generate_series(60, 59 + %(tasks)s) n
    JOIN tasks_task t ON t.id = 'task-s' || lpad((n %% %(supervisors)s)::text, 4, '0')
"""
_FENCES = """
    INSERT INTO publishing_indexerfence (
        task_id, number, datasource_id, source_id, epoch, published, rolled_up, further_rows, thrown_away, unparseable,
        duplicates, redelivered, quarantined, filtered, outside_window, tombstones, processed_with_error, input_bytes,
        polled, segments, size_bytes, publishes, replayed, replay, released_before, released_now, redundant_before,
        redundant_now, redelivered_before, redelivered_now, started_at, first_publish_at, last_publish_at
    )
    SELECT t.id, i, t.datasource_id, s.id, 1, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100000, 1000, 1, 10000, 1, 0,
           false, 0, 0, 0, 0, 0, 0, t.started_at, t.started_at, coalesce(t.ended_at, now())
    FROM tasks_task t JOIN sources_source s ON s.datasource_id = t.datasource_id, generate_series(0, 1) i
"""
_SEGMENTS = """
    INSERT INTO segments_segment (
        id, datasource_id, interval_start, interval_end, version, partition_num, rows, size_bytes, sha256, path,
        min_time, max_time, schema_id, task_id, used, created_at
    )
    SELECT h.id, d.id, h.start, h.start + %(length)s, 'v1', n / %(intervals)s, %(rows)s, %(rows)s * 20,
           encode(sha256(h.id::text::bytea), 'hex'),
           's0000/' || to_char(h.start, 'YYYY-MM-DD"T"HH24-MI-SS.000"Z_"') || h.start + %(length)s || '/v1/' || h.id,
           h.start, h.start + %(length)s * 0.9,
           %(schema)s, 'task-s0000', true, now()
    FROM generate_series(0, %(segments)s - 1) n
    JOIN datasources_datasource d ON d.name = 's0000',
    LATERAL (SELECT date_trunc('hour', now()) - (n %% %(intervals)s) * %(length)s AS start, gen_random_uuid() AS id) h
"""
_INTERVALS = """
    INSERT INTO segments_interval (
        datasource_id, start, "end", version, next_partition, segments, rows, size_bytes, min_time, max_time, revision
    )
    SELECT datasource_id, interval_start, interval_end, 'v1', count(*), count(*), sum(rows), sum(size_bytes),
           min(min_time), max(max_time), count(*)
    FROM segments_segment GROUP BY datasource_id, interval_start, interval_end
"""
# A lag that comes and goes; each tenth source falls behind.
_SAMPLES = """
    INSERT INTO lag_lagsample (
        source_id, resolution_s, at, observed_at, lag, partitions, passed, in_flight, processed, redelivered
    )
    SELECT s.id, %(seconds)s, t.at, t.at, CASE WHEN s.id %% 10 = 0 THEN 100000 - 50 * n ELSE n %% 7 END, '{0,0,0,0}',
           '{}', 0, 1000000 - n * %(seconds)s * 10, 0
    FROM sources_source s, generate_series(0, %(count)s - 1) n,
    LATERAL (SELECT to_timestamp(floor(extract(epoch FROM now()) / %(seconds)s) * %(seconds)s) - n * %(seconds)s
             * interval '1 second' AS at) t
"""
_RECORDS = """
    INSERT INTO quarantine_quarantinedrecord (
        source_id, datasource_id, task_id, partition, "offset", delivery_count, reason, error, payload, headers,
        publish_id, state, replay_id, replays, created_at
    )
    SELECT s.id, s.datasource_id, 'task-s0000', 0, n, 1, 'unparseable', 'Malformed JSON at byte ' || n, '{', '[]',
           gen_random_uuid(), 'kept', '', 0, now() - n * interval '1 second'
    FROM sources_source s, generate_series(0, 49999) n WHERE s.topic = 's0000'
"""
