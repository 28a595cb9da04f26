"""A metadata store as of a site that has run for long: what grows with time has many rows, which the server makes."""

from __future__ import annotations

from django.db import connection

from controlplane.metrics import record_sums
from controlplane.segments import day_sums
from tests.support.django_cast import Cast

MANY, SUPERVISORS = 10_000, 100


def copy_rows(table: str, where: str, count: int, **changed: str) -> None:
    """``count`` copies of each row that fits. ``changed``: by column, SQL of the row ``t`` and its number ``n``."""
    pairs = ", ".join(f"'{column}', {value}" for column, value in changed.items())
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} SELECT r.* FROM {table} t, generate_series(1, {count}) n,"
            f" LATERAL jsonb_populate_record(t, jsonb_build_object({pairs})) r WHERE {where}"
        )


def new_id(table: str) -> str:
    return f"nextval(pg_get_serial_sequence('{table}', 'id'))"


def fill(cast: Cast) -> None:
    """A hundred supervisors with a running task each; of what grows, tens of thousands of rows that are over."""
    ds, task = f"t.id = {cast.datasource.pk}", f"t.id = '{cast.task.pk}'"
    copy_rows("datasources_datasource", ds, SUPERVISORS, id="1000000 + n", name="'ds-' || n")
    copy_rows("supervisors_supervisor", "t.id = 'flights'", SUPERVISORS, id="'sv-' || n", datasource_id="1000000 + n")
    copy_rows(
        "supervisors_specversion",
        "t.supervisor_id = 'flights'",
        SUPERVISORS,
        id=new_id("supervisors_specversion"),
        supervisor_id="'sv-' || n",
    )
    names = {"group": "'group-' || n", "topic_id": "'topic-' || n"}
    copy_rows(
        "sources_source",
        f"t.id = {cast.source.pk}",
        SUPERVISORS,
        **names,
        id="1000000 + n",
        datasource_id="1000000 + n",
    )
    running = {"id": "'running-' || n", "datasource_id": "1000000 + n", "supervisor_id": "'sv-' || n"}
    copy_rows("tasks_task", task, SUPERVISORS, **running)
    where = f"1000000 + n % {SUPERVISORS} + 1"
    ended = {
        "id": "'ended-' || n",
        "status": "'SUCCESS'",
        "datasource_id": where,
        "ended_at": "now() - interval '1 hour'",
    }
    copy_rows("tasks_task", task, MANY, **ended, supervisor_id=f"'sv-' || n % {SUPERVISORS} + 1")
    for name, times in (("running", SUPERVISORS), ("ended", MANY)):
        of_task = {"task_id": f"'{name}-' || n"}
        copy_rows(
            "tasks_indexer",
            "t.number = 0 AND t.task_id NOT LIKE 'running%'",
            times,
            **of_task,
            id=new_id("tasks_indexer"),
        )
    fence = {"datasource_id": where, "source_id": where, "id": new_id("publishing_indexerfence")}
    for name, times in (("ended", MANY), ("running", SUPERVISORS)):
        copy_rows("publishing_indexerfence", f"t.id = {cast.fences[0].pk}", times, **fence, task_id=f"'{name}-' || n")
    segment = {"id": "gen_random_uuid()", "path": "t.path || n", "partition_num": "1000 + n", "datasource_id": where}
    copy_rows("segments_segment", f"t.id = '{cast.segments[0].pk}'", MANY, **segment)
    next_days = {"start": "t.start + n * interval '1 day'", "end": "t.\"end\" + n * interval '1 day'"}
    copy_rows(
        "segments_interval",
        "t.id = (SELECT min(id) FROM segments_interval)",
        MANY,
        **next_days,
        id=new_id("segments_interval"),
        datasource_id=where,
    )
    copy_rows(
        "quarantine_quarantinedrecord",
        f"t.id = {cast.quarantined.pk}",
        MANY,
        id=new_id("quarantine_quarantinedrecord"),
        offset="1000 + n",
        datasource_id=where,
    )
    copy_rows(
        "sources_sourceevent",
        f"t.id = {cast.event.pk}",
        MANY,
        id=new_id("sources_sourceevent"),
        datasource_id=where,
        acknowledged_at="now()",
    )
    with connection.cursor() as cursor:
        cursor.execute(_OTHERS, {"many": MANY, "supervisors": SUPERVISORS})
    day_sums.sum_up()
    assert record_sums.sum_up() == SUPERVISORS
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


_OTHERS = """
    INSERT INTO lag_lagsample (
        source_id, resolution_s, at, observed_at, lag, partitions, passed, in_flight, processed, redelivered
    )
    SELECT 1000001 + n %% %(supervisors)s, 5, now() - n * interval '5 seconds', now() - n * interval '5 seconds',
           n %% 7, '{0}', '{}', 0, 1000000 - n, 0 FROM generate_series(1, %(many)s) n;
    INSERT INTO publishing_settledrange (span, settled_at)
    SELECT int8range(k + n * 10, k + n * 10 + 9), now()
    FROM generate_series(1, %(many)s) n, (SELECT 1000000::int8 << 44 AS k) key;
    INSERT INTO compaction_job (
        id, datasource_id, interval_start, interval_end, tier, priority, state, attempt, inputs, data_schema,
        index_spec, rollup, max_rows_per_segment, rows_before, bytes_before, error, permanent, created_at
    )
    SELECT 'job-' || n, 1000001 + n %% %(supervisors)s, now(), now(), 0, 0, 'done', 1, '{}', '{}', '{}', false, 1, 1, 1,
           '', false, now() FROM generate_series(1, %(many)s) n;
    INSERT INTO publishing_publish (id, fence_id, epoch, abandoned, segment_ids, counters, created_at)
    SELECT gen_random_uuid(), (SELECT max(id) FROM publishing_indexerfence), 1, false, '[]', '{}', now()
    FROM generate_series(1, %(many)s) n;
    INSERT INTO publishing_receipt (
        publish_id, task_id, indexer, key_id, hull, outcomes, segment_ids, replay, created_at
    )
    SELECT gen_random_uuid(), 'ended-1', 0, (SELECT min(id) FROM publishing_progresskey), int8range(n, n + 1), '{}',
           '[]', false, now() FROM generate_series(1, %(many)s) n;
"""
