"""What became of records, by ranges of offsets: from receipts, and of ranges without one, that they are settled."""

from __future__ import annotations

from controlplane.publishing.models import OFFSET_BITS, ProgressKey
from controlplane.query.sys_rows import Query, constants, narrow
from controlplane.query.times import time_of
from controlplane.teams.models import User
from controlplane.teams.permissions import visible
from ingestion.specs.messages.sql import SqlTableUse

KEY_FIELDS = {
    "team": ("VARCHAR", "source__datasource__team__name"),
    "datasource": ("VARCHAR", "source__datasource__name"),
    "topic": ("VARCHAR", "source__topic"),
    "topic_id": ("VARCHAR", "source__topic_id"),
    "group": ("VARCHAR", "source__group"),
    "partition": ("BIGINT", "partition"),
}
_TOLD = """
    told AS MATERIALIZED (
      SELECT r.*, o.key AS outcome, (e.value ->> 0)::bigint AS first, (e.value ->> 1)::bigint AS stop,
        (e.value ->> 2)::int AS segment
      FROM publishing_receipt r CROSS JOIN LATERAL jsonb_each(r.outcomes) o
        CROSS JOIN LATERAL jsonb_array_elements(o.value) e
      WHERE r.key_id = ANY(%(keys)s)
        AND (%(start)s::timestamptz IS NULL OR r.created_at >= %(start)s)
        AND (%(end)s::timestamptz IS NULL OR r.created_at < %(end)s))"""
_KEYS = """
    keys AS (
      SELECT k.id AS key, t.name AS team, d.name AS datasource, s.topic, s.topic_id, s."group", k.partition
      FROM publishing_progresskey k JOIN sources_source s ON s.id = k.source_id
        JOIN datasources_datasource d ON d.id = s.datasource_id JOIN teams_team t ON t.id = d.team_id
      WHERE k.id = ANY(%(keys)s))"""
_OF_RECEIPTS = """
    SELECT k.team, k.datasource, k.topic, k.topic_id, k."group", k.partition, t.first, t.stop, t.outcome,
      t.segment_ids ->> t.segment, t.publish_id, t.task_id, t.indexer, t.replay, t.created_at
    FROM told t JOIN keys k ON k.key = t.key_id"""
# Of what is settled, the part that no receipt tells of.
_REST = f"""
    rest AS (
      SELECT k.key, range_agg(r.span) - coalesce((
        SELECT range_agg(int8range((k.key::bigint << {OFFSET_BITS}) + first, (k.key::bigint << {OFFSET_BITS}) + stop))
        FROM told t WHERE t.key_id = k.key), '{{}}') AS spans
      FROM keys k JOIN publishing_settledrange r
        ON r.span && int8range(k.key::bigint << {OFFSET_BITS}, (k.key::bigint + 1) << {OFFSET_BITS})
      GROUP BY k.key)"""  # noqa: S608 - a number of ours
_OF_REST = f"""
    SELECT k.team, k.datasource, k.topic, k.topic_id, k."group", k.partition,
      lower(u) - (k.key::bigint << {OFFSET_BITS}), upper(u) - (k.key::bigint << {OFFSET_BITS}), 'settled',
      NULL, NULL, NULL, NULL, NULL, NULL
    FROM rest JOIN keys k USING (key) CROSS JOIN LATERAL unnest(rest.spans) u"""  # noqa: S608 - a number of ours


def offset_ranges(user: User, use: SqlTableUse) -> Query:
    """Rows in the order of the columns of ``sys.offsets``."""
    keys = narrow(ProgressKey.objects.filter(visible(user, "source__datasource__team")), use, KEY_FIELDS)
    start, end = (time_of(at) for at in use.between.get("at", (None, None)))
    parameters = {"keys": list(keys.values_list("pk", flat=True)), "start": start, "end": end}
    settled = constants(use, "outcome", "VARCHAR")
    if start or end or (settled is not None and "settled" not in settled):  # what is not told has no time
        return Query(" ".join(["SELECT * FROM (WITH", _KEYS, ",", _TOLD, _OF_RECEIPTS, ") x"]), parameters)
    parts = [_KEYS, ",", _TOLD, ",", _REST, _OF_RECEIPTS, "UNION ALL", _OF_REST]
    return Query(" ".join(["SELECT * FROM (WITH", *parts, ") x"]), parameters)
