"""A datasource with real segments for SQL, and how a test asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.conf import settings
from django.test import Client
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.segments.models import Column, Segment, SegmentSchema, fingerprint
from controlplane.teams.models import Team
from ingestion.segments.local import LocalStorage
from ingestion.sketches.types import SKETCH_TYPES, sketches
from ingestion.specs.messages.protocol import SegmentFile
from tests.support.column_ids import ids_in
from tests.support.desk import DAY_MS, JUNE_MS, Desk, batch_of, schema_of
from tests.support.django_cast import sum_intervals
from tests.support.druid_sql import DATASOURCE, ROLLUP, rollup, table

ADDRESS = "/api/v1/sql/"
DAYS = 3
_OF_FILES = {"interval_start", "interval_end", "rows", "size_bytes", "sha256", "path", "min_time", "max_time"}


def june(team: Team, place: Path, changed: Any, name: str = "june") -> Datasource:
    """``june_here`` in a deep storage below ``place``. ``changed``: the fixture ``settings``."""
    changed.DEEP_STORAGE = str(place / "deep")
    return june_here(team, place, name)


def june_here(team: Team, place: Path, name: str = "june") -> Datasource:
    """Three days with two rows each: ``n`` 0 to 5, a ``name`` and ``tags``. One segment a day, in deep storage."""
    desk = Desk(place, schema_of())
    desk.storage = LocalStorage(Path(settings.DEEP_STORAGE), fsync=False)
    desk.add(
        batch_of(
            [row * DAY_MS // 2 for row in range(2 * DAYS)],
            n=pa.array(range(2 * DAYS)),
            name=pa.array([f"name-{row}" for row in range(2 * DAYS)]),
            tags=pa.array([["a", f"t{row}"] for row in range(2 * DAYS)]),
        )
    )
    datasource = Datasource.objects.create(name=name, team=team)
    register(datasource, desk.write())
    desk.index.close()
    return datasource


def druid_rows(team: Team, place: Path, settings: Any) -> Datasource:
    """The rows that the recorded Druid had."""
    desk = Desk(place, schema_of())
    settings.DEEP_STORAGE = str(desk.deep)
    rows = table()
    columns = {name: rows[name] for name in rows.column_names if name != "__time"}
    desk.add(batch_of([ms - JUNE_MS for ms in rows["ms"].to_pylist()], **columns))
    datasource = Datasource.objects.create(name=DATASOURCE, team=team)
    register(datasource, desk.write())
    desk.index.close()
    return datasource


def druid_rollup(team: Team, place: Path, settings: Any) -> Datasource:
    """The sketches that the recorded Druid had."""
    desk = Desk(place, schema_of())
    settings.DEEP_STORAGE = str(desk.deep)
    rows = rollup()
    kinds = {"pages_hll": "HLLSketch", "pages_theta": "thetaSketch", "deltas": "quantilesDoublesSketch"}
    columns = {n: sketches(rows[n].combine_chunks(), SKETCH_TYPES[f"COMPLEX<{kind}>"]) for n, kind in kinds.items()}
    times = [int(at.timestamp() * 1000) - JUNE_MS for at in rows["__time"].to_pylist()]
    desk.add(batch_of(times, country=rows["country"].combine_chunks(), **columns))
    datasource = Datasource.objects.create(name=ROLLUP, team=team)
    register(datasource, desk.write())
    desk.index.close()
    return datasource


def register(datasource: Datasource, files: list[SegmentFile]) -> list[Segment]:
    """Files of deep storage in a folder, as a publish would have registered them and the ids of their columns."""
    segments = [
        Segment.objects.create(
            datasource=datasource,
            version=datasource.append_version,
            partition_num=0,
            schema=SegmentSchema.of(datasource, []),
            task_id="task",
            created_at=timezone.now(),
            **file.model_dump(include=_OF_FILES),
        )
        for file in files
    ]
    for file in files:
        for (name, kind), (number, element) in ids_in(Path(settings.DEEP_STORAGE) / file.path).items():
            known_by = fingerprint([{"name": name, "type": kind}])
            defaults = {"name": name, "type": kind, "number": number, "element": element}
            Column.objects.get_or_create(datasource=datasource, fingerprint=known_by, defaults=defaults)
    sum_intervals(datasource)
    return segments


def send(client: Client, query: str, **body: Any) -> Any:
    """The response."""
    return client.post(ADDRESS, json.dumps({"query": query, **body}), content_type="application/json")


def result(client: Client, query: str) -> dict[str, Any]:
    """The whole answer of a query that succeeds."""
    response = send(client, query)
    content = b"".join(response.streaming_content) if response.streaming else response.content
    assert response.status_code == 200, content
    answer: dict[str, Any] = json.loads(content)
    return answer


def rows(client: Client, query: str) -> list[list[Any]]:
    found: list[list[Any]] = result(client, query)["rows"]
    return found


def problem(client: Client, query: str, status: int) -> str:
    """Why a query is refused."""
    response = send(client, query)
    assert response.status_code == status, response.content if not response.streaming else "streams"
    detail: str = response.json()["detail"]
    return detail
