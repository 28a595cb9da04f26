"""Quote characters and the like wherever a name may stand: they are text, in SQL, in JSON paths and in patterns."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client

from controlplane.datasources.models import Datasource
from controlplane.publishing import fence
from controlplane.publishing.folding import fold
from controlplane.publishing.models import ProgressKey
from controlplane.segments.models import Segment
from controlplane.sources.models import Source
from ingestion.specs.messages.protocol import Advance, Column, Outcomes, QuarantinedRecord
from ingestion.specs.source_traits import SHARE_GROUPS, STORED_OFFSETS
from tests.support.django_cast import Cast
from tests.support.publishes import request, segment, send

ODD = [
    "it's",
    'a "quoted" one',
    "back\\slash' OR 1=1 --",
    "'; DROP TABLE segments_segment; --",
    "$1 %s %(name)s {0} :name ?",
    "$$; SELECT pg_sleep(9); $$",
    "' || pg_sleep(9) || '",
    "line\nbreak\t`x`",
    "100%_[a-z]*",
    '{"$.a": ["]"]}',
    "😀‮",
]
INDEXER = 0


def odd_source(cast: Cast, odd: str, kind: str) -> Source:
    return fence.adopt_source(
        datasource=cast.datasource,
        kind=kind,
        group=f"group {odd}",
        topic=f"topic {odd}",
        cluster_id=f"cluster {odd}",
        topic_id=f"id {odd}",
    )


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", [SHARE_GROUPS.kind, STORED_OFFSETS.kind])
def test_names_from_kafka_are_text(cast: Cast, viewer: Client, odd: str, kind: str) -> None:
    """Row 18 of the security checklist: topics, groups, tasks, columns and errors, published and read."""
    source = odd_source(cast, odd, kind)
    task = f"task {odd}"
    epoch = fence.take_epoch(task_id=task, number=INDEXER, datasource=cast.datasource, source=source).epoch
    if kind == STORED_OFFSETS.kind:
        ProgressKey.objects.create(source=source, partition=0, next_offset=0)
    file = segment({0: [(0, 10)]}).model_copy(update={"columns": [Column(name=f"column {odd}", type="string")]})
    poison = QuarantinedRecord(
        partition=0,
        offset=10,
        timestamp_ms=1,
        delivery_count=1,
        reason="unparseable",
        error=f"error {odd}",
        key=b"",
        payload=b"",
    )
    sent = request(
        epoch,
        segments=[file],
        outcomes={0: Outcomes(unparseable=[(10, 11)])},
        quarantined=[poison],
        topic_id=f"id {odd}",
        progress={0: Advance(start=0, end=11)} if kind == STORED_OFFSETS.kind else {},
    )
    (made,) = send(sent, INDEXER, task)
    fold()
    assert Segment.objects.get(pk=made).columns == [{"name": f"column {odd}", "type": "string"}]
    found = asked(viewer, "/api/v1/records", topic=f"topic {odd}", partition=0, offset=3)
    assert [f["segments"][0]["id"] for f in found["fates"]] == [made]
    kept = asked(viewer, "/api/v1/datasources/flights/quarantine/")
    assert any(k["error"] == f"error {odd}" for k in kept["results"])
    shown = asked(viewer, "/api/v1/datasources/flights/progress/")
    assert f"topic {odd}" in str_of(shown)


def str_of(value: Any) -> str:
    """All texts in a JSON value, one after the other, as they are."""
    if isinstance(value, dict):
        return " ".join(str_of(v) for v in value.values())
    return " ".join(map(str_of, value)) if isinstance(value, list) else str(value)


def asked(client: Client, path: str, **query: Any) -> dict[str, Any]:
    answer = client.get(path, query)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


LISTS = ["datasources", "datasources/flights/segments", "datasources/flights/quarantine", "supervisors", "tasks"]
PARAMETERS = ["search", "status", "state", "datasource", "supervisor", "type", "kind", "interval", "ordering", "task"]


@pytest.mark.parametrize("name", LISTS)
def test_what_is_searched_for_is_text(cast: Cast, viewer: Client, name: str) -> None:
    """Row 18 of the security checklist: a query finds nothing or is refused, and harms nothing."""
    for parameter in PARAMETERS:
        for odd in ODD:
            answer = viewer.get(f"/api/v1/{name}/", {parameter: odd})
            assert answer.status_code in (200, 400), (parameter, odd, answer.content)
    assert Segment.objects.count() == len(cast.segments)


def test_ids_in_addresses_are_text(cast: Cast, viewer: Client) -> None:
    """Row 18 of the security checklist: what stands in an address is looked for as it is."""
    for odd in ODD:
        for path in ("datasources/{}/", "datasources/{}/timeline/", "supervisors/{}/", "tasks/{}/"):
            answer = viewer.get("/api/v1/" + path.format(quote(odd, safe="")))
            assert answer.status_code in (400, 404), (path, odd)
    assert Datasource.objects.filter(pk=cast.datasource.pk).exists()
    assert "segments_segment" in connection.introspection.table_names()
