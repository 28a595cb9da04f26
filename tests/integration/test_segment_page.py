"""A segment's page and its REST addresses: state, lineage, records, and what the file holds, by role."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from controlplane.datasources.models import Datasource, MaskedColumn
from controlplane.publishing.receipts import make_receipt_partitions
from controlplane.publishing.replace import ReplaceTarget, replace
from controlplane.segments import marking
from controlplane.segments.killing import KillResult, kill_batch
from controlplane.segments.marking import SegmentSelection
from controlplane.segments.models import Segment
from ingestion.specs.messages.compaction import ReplaceRequest
from ingestion.specs.messages.deep_storage import DeletedPage
from tests.integration.test_newest_rows import files as files
from tests.integration.test_newest_rows import segments as segments
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.publishes import make_source, request, segment, send, start

REST, PAGE = "/api/v1/datasources/{}/segments/{}/", "/datasources/{}/segments/{}/"


@pytest.fixture
def merged(cast: Cast) -> tuple[list[Segment], Segment]:
    """Two segments of alpha's datasource ``merged``, and the one that a compaction made of them."""
    Datasource.objects.create(name="merged", team=cast.alpha)
    source = make_source("merged")
    epoch = start(source)
    for at in (0, 10):
        send(request(epoch, segments=[segment({0: [(at, at + 5)], 1: [(at, at + 2)]})]))
    taken = list(Segment.objects.filter(datasource=source.datasource).order_by("partition_num"))
    read = {s.pk: s.rows for s in taken}
    file = segment({0: [(0, 14)]}).model_copy(update={"offsets": {}, "path": "merged/of-two.parquet"})
    wanted = ReplaceRequest(replace_id=uuid.uuid4(), attempt=1, read=read, segments=[file])
    replace(
        ReplaceTarget(source.datasource, taken[0].interval_start, taken[0].interval_end, "compact_1", False), wanted
    )
    return taken, Segment.objects.get(datasource=source.datasource, used=True)


def test_what_it_was_made_of_and_what_took_its_place(
    cast: Cast, clients: dict[str, Client], merged: tuple[list[Segment], Segment]
) -> None:
    (first, second), made = merged
    viewer = clients["viewer"]
    of_made = viewer.get(REST.format("merged", made.pk)).json()
    assert (of_made["segment"]["used"], of_made["segment"]["unused_at"]) == (True, None)
    assert set(of_made["made_by"]["segments"]) == {str(first.pk), str(second.pk)}
    assert (of_made["made_by"]["task"], of_made["gone_to"], of_made["ranges"]) == ("compact_1", None, [])
    of_first = viewer.get(REST.format("merged", first.pk)).json()
    assert (of_first["made_by"], of_first["gone_to"]["segments"]) == (None, [str(made.pk)])
    assert of_first["segment"]["goes_at"] is not None
    ranges = [(r["topic"], r["partition"], r["start"], r["end"]) for r in of_first["ranges"]]
    assert ranges == [("topic", 0, 0, 5), ("topic", 1, 0, 2)]
    page = parsed(browsing_as(cast, "viewer").get(PAGE.format("merged", first.pk)))
    assert "replaced" in page.one("dd", data_state="").text
    links = {a.attributes.get("href", "") for a in page.all("a")}
    assert PAGE.format("merged", made.pk) in links
    assert "/records/?topic=topic&partition=0&offset=4" in links
    of_made_page = parsed(browsing_as(cast, "viewer").get(PAGE.format("merged", made.pk)))
    assert PAGE.format("merged", first.pk) in {a.attributes.get("href") for a in of_made_page.all("a")}


def test_receipts_are_found_by_the_time_of_their_publish(db: None) -> None:
    """Each day's table has the index, those that are made later too."""
    make_receipt_partitions(timezone.now().date() + timedelta(days=400))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = 'publishing_receipt'::regclass")
        [days] = cursor.fetchone()
        cursor.execute(
            "SELECT count(*) FROM pg_indexes "
            "WHERE tablename LIKE 'publishing_receipt\\_%' AND indexdef LIKE '%USING brin (created_at)%'"
        )
        assert cursor.fetchone() == (days,)


def test_one_whose_file_is_deleted_still_says_what_became_of_it(
    cast: Cast, clients: dict[str, Client], merged: tuple[list[Segment], Segment], settings: Any
) -> None:
    (first, _), made = merged
    settings.SNAPSHOT_LEASE = timedelta()
    marking.give_up(first.datasource, SegmentSelection(ids=frozenset({first.pk})))
    kill_batch(KillResult(), lambda paths: DeletedPage())
    assert not Segment.objects.filter(pk=first.pk).exists()
    told = clients["viewer"].get(REST.format("merged", first.pk)).json()
    assert told["segment"] is None
    assert told["killed"]["rows"] == first.rows
    assert told["gone_to"]["segments"] == [str(made.pk)]
    page = parsed(browsing_as(cast, "viewer").get(PAGE.format("merged", first.pk)))
    assert "Its file is deleted." in page.text
    assert clients["viewer"].get(f"{REST.format('merged', first.pk)}file/").status_code == 404


def test_who_removed_it_and_the_way_back(cast: Cast, clients: dict[str, Client]) -> None:
    [one] = [s for s in cast.segments if s.interval_start.day == 2]
    marking.mark_unused(cast.datasource, SegmentSelection(ids=frozenset({one.pk})), by="owner", what="a day")
    assert "owner" in clients["viewer"].get(REST.format("flights", one.identifier)).json()["segment"]["removed"]
    page = parsed(browsing_as(cast, "owner").get(PAGE.format("flights", one.pk)))
    assert "removed by owner: a day" in page.text
    assert any("step=mark_used" in a.attributes.get("href", "") for a in page.all("a"))
    assert not any(
        "step=mark_used" in a.attributes.get("href", "")
        for a in parsed(browsing_as(cast, "viewer").get(PAGE.format("flights", one.pk))).all("a")
    )


def test_what_its_file_holds_as_the_role_may_see_it(
    cast: Cast, clients: dict[str, Client], segments: list[Segment]
) -> None:
    address = f"{REST.format('rows-of-june', segments[0].pk)}file/"
    told = clients["operator"].get(address).json()
    assert (told["footer"]["rows"], told["footer"]["row_groups"]) == (1, 1)
    by_name = {c["name"]: c for c in told["footer"]["columns"]}
    assert (by_name["n"]["least"], by_name["n"]["greatest"], by_name["n"]["nulls"]) == (2, 2, 0)
    assert (by_name["name"]["least"], by_name["name"]["compression"]) == ("<b>2</b>", "zstd")
    assert by_name["__time"]["least"] == "2025-06-03T00:00:00.000Z"
    assert sum(c["compressed_bytes"] for c in by_name.values()) < segments[0].size_bytes
    assert told["rows"]["rows"] == [["2025-06-03T00:00:00.000Z", 2, "<b>2</b>"]]
    of_viewer = {c["name"]: c for c in clients["viewer"].get(address).json()["footer"]["columns"]}
    assert (of_viewer["name"]["least"], of_viewer["name"]["masked"], of_viewer["n"]["least"]) == (None, True, 2)
    MaskedColumn.objects.create(datasource=segments[0].datasource, column="n", role="admin")
    of_operator = {c["name"]: c for c in clients["operator"].get(address).json()["footer"]["columns"]}
    assert [of_operator["n"][k] for k in ("least", "greatest", "nulls", "role")] == [None, None, None, "admin"]
    page = browsing_as(cast, "operator").get(f"{PAGE.format('rows-of-june', segments[0].pk)}file/")
    assert "hidden: needs role admin" in parsed(page).text
    assert "&lt;b&gt;2&lt;/b&gt;" in page.content.decode()


@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_a_file_that_is_not_what_was_registered_is_said_so(
    cast: Cast, segments: list[Segment], settings: Any, damage: str
) -> None:
    file = Path(settings.DEEP_STORAGE) / segments[0].path
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(content[:-9] if damage == "cut" else b"x" * len(content))
    page = parsed(browsing_as(cast, "operator").get(f"{PAGE.format('rows-of-june', segments[0].pk)}file/"))
    said = {"missing": "does not exist", "cut": "bytes, not", "other": "has the SHA-256"}[damage]
    assert said in page.one("div", data_damaged="").text
    assert "row group" not in page.text


@pytest.mark.parametrize("named", ["nonsense", "00000000-0000-4000-8000-000000000000", "flights_x", "a%00b"])
def test_what_is_no_segment_is_not_found(clients: dict[str, Client], cast: Cast, named: str) -> None:
    assert clients["viewer"].get(REST.format("flights", named)).status_code == 404
    assert browsing_as(cast, "viewer").get(PAGE.format("flights", named)).status_code == 404
    [other] = Segment.objects.filter(datasource__name="flights", interval_start__day=3)
    Datasource.objects.create(name="empty", team=cast.alpha)
    assert clients["viewer"].get(REST.format("empty", other.pk)).status_code == 404, "of another datasource"
    assert timezone.now() > other.created_at
