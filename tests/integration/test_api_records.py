"""What became of a record; and validation of specs."""

from __future__ import annotations

import pytest
from django.test import Client

from controlplane.publishing.models import ProgressKey, Receipt
from controlplane.sources.models import Source
from tests.support.django_cast import SEED, Cast, spec_for

RECORDS = "/api/v1/records"  # also without the slash


def fates(client: Client, offset: int, partition: int = 0, **more: str) -> list[dict[str, object]]:
    query: dict[str, str | int] = {"topic": "flights-topic", "partition": partition, "offset": offset, **more}
    answer = client.get(RECORDS, query)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, object]] = answer.json()["fates"]
    return found


@pytest.mark.parametrize(
    ("offset", "outcome", "segment"),
    [(0, "stored", 0), (6, "stored", 0), (8, "stored", 0), (9, "stored", 0), (12, "stored", 1), (499, "stored", 1)],
)
def test_a_stored_record_names_its_segment(viewer: Client, cast: Cast, offset: int, outcome: str, segment: int) -> None:
    [fate] = fates(viewer, offset)
    assert fate["outcome"] == outcome
    assert [s["id"] for s in fate["segments"]] == [str(cast.segments[segment].pk)]  # type: ignore[attr-defined]
    assert (fate["task"], fate["indexer"]) == (cast.task.pk, 0)
    assert fate["source"]["datasource"] == "flights"  # type: ignore[index]


def test_other_ends(viewer: Client, cast: Cast) -> None:
    [poison] = fates(viewer, 7)
    assert (poison["outcome"], poison["quarantined_id"], poison["error"]) == (
        "unparseable",
        cast.quarantined.pk,
        "Malformed JSON at byte 12",
    )
    assert [f["outcome"] for f in fates(viewer, 10)] == ["thrown_away"]
    assert [f["outcome"] for f in fates(viewer, 11)] == ["thrown_away"]
    assert [f["outcome"] for f in fates(viewer, 3)] == ["stored", "duplicate"]  # in the order of time


def test_a_record_whose_receipt_is_folded_is_settled(viewer: Client) -> None:
    assert [f["outcome"] for f in fates(viewer, 600)] == ["settled"]
    Receipt.objects.all().delete()
    assert [f["outcome"] for f in fates(viewer, 0)] == ["settled"]


def test_unknown_records_say_what_is_known(viewer: Client, cast: Cast) -> None:
    assert "Not settled yet" in str(fates(viewer, 705)[0]["explanation"])
    assert "log's end, which was 1,000" in str(fates(viewer, 1000)[0]["explanation"])
    assert "nothing of partition 5" in str(fates(viewer, 0, partition=5)[0]["explanation"])
    ProgressKey.objects.filter(pk=cast.keys[1].pk).update(log_start_offset=900)
    assert "Below the log's start" in str(fates(viewer, 700, partition=1)[0]["explanation"])
    assert {f["outcome"] for f in fates(viewer, 1000)} == {"unknown"}


def test_what_a_share_group_at_latest_may_not_have_been_given_is_told(viewer: Client, cast: Cast) -> None:
    """Where it began only the broker knows."""
    source = Source.objects.get(topic="flights-topic", current=True)
    for bounds, told in (([0, 0, 1000], False), ([0, 400, 1000], True)):
        Source.objects.filter(pk=source.pk).update(bounds={"0": bounds, "5": bounds})
        for partition, offset in ((0, 705), (5, 0)):
            text = str(fates(viewer, offset, partition=partition)[0]["explanation"])
            assert ("before the first poll of the share group" in text) == told


def test_what_lies_below_a_stored_offset_and_was_not_settled_was_passed_over(viewer: Client, cast: Cast) -> None:
    source = Source.objects.get(topic="flights-topic", current=True)
    ProgressKey.objects.filter(source=source, partition=0).update(next_offset=900)
    assert "set beyond it, to 900" in str(fates(viewer, 705)[0]["explanation"])


def test_the_same_offset_of_another_partition_is_another_record(viewer: Client) -> None:
    assert [f["outcome"] for f in fates(viewer, 7, partition=1)] == ["settled"]


def test_the_topic_as_it_was_before_comes_second(viewer: Client, cast: Cast) -> None:
    Source.objects.filter(pk=cast.source.pk).update(current=False)
    Source.objects.create(
        datasource=cast.datasource, cluster_id="c", group="flights-group", topic="flights-topic", topic_id="topic-id-2"
    )
    found = fates(viewer, 0)
    assert [(f["source"]["topic_id"], f["outcome"]) for f in found] == [  # type: ignore[index]
        ("topic-id-2", "unknown"),
        ("topic-id-1", "stored"),
    ]


def test_a_topic_that_only_another_team_reads_is_not_found(clients: dict[str, Client]) -> None:
    query: dict[str, str | int] = {"topic": "flights-topic", "partition": 0, "offset": 0}
    assert clients["outsider"].get(RECORDS, query).status_code == 404
    assert clients["viewer"].get(RECORDS, {**query, "group": "no-group"}).status_code == 404


@pytest.mark.parametrize("kind", ["task", "supervisor"])
def test_validate(viewer: Client, kind: str) -> None:
    answer = viewer.post("/api/v1/validate/", {"kind": kind, "spec": SEED}, content_type="application/json")
    assert answer.status_code == 200
    assert answer.json()["valid"] is True
    assert answer.json()["canonical"]["spec"]["ioConfig"]["taskCount"] == 1


def test_validate_points_into_the_body(viewer: Client) -> None:
    body = {"kind": "task", "spec": spec_for("x", topic="")}
    answer = viewer.post("/api/v1/validate/", body, content_type="application/json")
    assert answer.status_code == 400
    [fault] = answer.json()["errors"]
    assert (fault["pointer"], fault["path"]) == ("/spec/ioConfig/topic", "ioConfig.topic")
