"""The quarantine: filters, export, replays that take a record once, purges, and what all of them say afterwards."""

from __future__ import annotations

import base64
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.datasources.models import Datasource
from controlplane.publishing.fence import PublishRefused, take_epoch
from controlplane.publishing.models import IndexerFence
from controlplane.publishing.publish import publish
from controlplane.publishing.selectors.fate import record_fate
from controlplane.publishing.selectors.totals import datasource_totals
from controlplane.quarantine import replays
from controlplane.quarantine import services as quarantine
from controlplane.quarantine.models import QuarantinedRecord
from controlplane.segments.models import Segment
from controlplane.sources.models import Source, SourceEvent
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Status, Task
from controlplane.tasks.selectors import task_totals
from controlplane.teams.models import AuditEntry
from ingestion.specs.messages.protocol import Outcomes
from ingestion.specs.messages.protocol import QuarantinedRecord as WireRecord
from ingestion.specs.messages.replays import ProducedRecord
from ingestion.specs.source_traits import OFFSET_RANGE, STORED_OFFSETS
from tests.support.django_cast import Cast, browsing_as
from tests.support.publishes import request, start

BASE = "/api/v1/datasources/flights/quarantine/"
State = QuarantinedRecord.State


def poison(*places: tuple[int, int], **more: Any) -> list[WireRecord]:
    return [
        WireRecord.model_construct(
            partition=p,
            offset=o,
            timestamp_ms=None,
            delivery_count=1,
            reason="unparseable",
            error=f"broken at {o}",
            key=b"k",
            payload=more.get("payload", b"{broken"),
            headers=more.get("headers", []),
        )
        for p, o in places
    ]


def as_ranges(offsets: list[int]) -> list[tuple[int, int]]:
    return [(o, o + 1) for o in offsets]


@pytest.fixture
def kept(cast: Cast) -> list[QuarantinedRecord]:
    """Partition 1's offsets 700 to 705 read by an indexer: four poison ones, two stored."""
    epoch = start(cast.source, number=7, task=cast.task.pk)
    bad = [700, 701, 702, 703]
    publish(
        task_id=cast.task.pk,
        number=7,
        request=request(
            epoch,
            {1: [(704, 706)]},
            {1: Outcomes(unparseable=[(700, 704)])},
            quarantined=poison(*((1, o) for o in bad), headers=[("trace", b"\xff"), ("empty", None)]),
        ),
    )
    return list(QuarantinedRecord.objects.filter(offset__in=bad).order_by("offset"))


def ids(records: list[QuarantinedRecord]) -> list[int]:
    return [r.pk for r in records]


def post(client: Client, path: str, body: Any, expect: int = 200) -> Any:
    answer = client.post(BASE + path, body, content_type="application/json")
    assert answer.status_code == expect, answer.content
    return answer.json()


def replay(client: Client, records: list[QuarantinedRecord], mode: str = "ingest") -> Task:
    answer = post(client, "replay/", {"mode": mode, "ids": ids(records)}, 202)
    assert answer["records"] == len(records)
    return Task.objects.get(pk=answer["tasks"][0])


def begin(task: Task) -> int:
    assert task.replay_source is not None
    return take_epoch(task_id=task.pk, datasource=task.datasource, source=task.replay_source, replay=True).epoch


def states(*records: QuarantinedRecord) -> list[str]:
    return [QuarantinedRecord.objects.get(pk=r.pk).state for r in records]


def test_the_list_is_filtered(cast: Cast, kept: list[QuarantinedRecord], clients: dict[str, Client]) -> None:
    QuarantinedRecord.objects.filter(pk=kept[0].pk).update(reason="decoder_crash", state="stored")

    def offsets(**query: Any) -> list[int]:
        return [r["offset"] for r in clients["viewer"].get(BASE, query).json()["results"]]

    assert offsets() == [703, 702, 701, 700, 7]
    assert offsets(reason="decoder_crash") == offsets(state="stored") == [700]
    assert offsets(partition=0) == [7]
    assert offsets(topic="another") == []
    assert offsets(topic="flights-topic", partition=1, state="kept") == [703, 702, 701]
    assert offsets(to="2025-06-02T00:00:00Z") == [7]
    assert clients["viewer"].get(BASE, {"reason": "none"}).status_code == 400


def test_one_record_is_shown_whole(kept: list[QuarantinedRecord], clients: dict[str, Client]) -> None:
    found = clients["viewer"].get(f"{BASE}{kept[0].pk}/").json()
    assert base64.b64decode(found["payload_base64"]) == b"{broken"
    assert found["headers"] == [
        {"name": "trace", "value_base64": base64.b64encode(b"\xff").decode()},
        {"name": "empty", "value_base64": None},
    ]
    assert (found["state"], found["replay_task"]) == ("kept", None)


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous iterators")
def test_the_export_holds_every_byte(cast: Cast, kept: list[QuarantinedRecord], clients: dict[str, Client]) -> None:
    QuarantinedRecord.objects.filter(pk=kept[1].pk).update(payload=b"\xff\x00", key=None)
    answer = clients["viewer"].get(BASE + "export/", {"partition": 1})
    assert answer["Content-Type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in b"".join(iter(answer)).splitlines()]
    assert [line["offset"] for line in lines] == [700, 701, 702, 703]
    assert (lines[0]["payload"], lines[0]["key"]) == ("{broken", "k")
    assert base64.b64decode(lines[1]["payload_base64"]) == b"\xff\x00" and lines[1]["key"] is None
    assert lines[0]["headers"] == [{"name": "trace", "value_base64": "/w=="}, {"name": "empty", "value": None}]
    assert AuditEntry.objects.get(action="export").detail == {"records": 4, "partition": 1}


def test_a_replay_moves_a_record_from_the_quarantine_into_a_segment_once(
    cast: Cast, kept: list[QuarantinedRecord], clients: dict[str, Client]
) -> None:
    before = datasource_totals(cast.datasource)
    task = replay(clients["operator"], kept[:3])
    assert states(*kept) == ["replaying"] * 3 + ["kept"]
    assert (
        clients["operator"]
        .post(BASE + "replay/", {"mode": "ingest", "ids": ids(kept[:3])}, content_type="application/json")
        .status_code
        == 409
    ), "a double click takes nothing twice"
    epoch = begin(task)
    what = request(
        epoch,
        {1: [(700, 701)]},
        {1: Outcomes(thrown_away=[(701, 702)], unparseable=[(702, 703)])},
        quarantined=poison((1, 702)),
    )
    first = publish(task_id=task.pk, number=0, request=what)
    assert publish(task_id=task.pk, number=0, request=what) == first, "a lost answer changes nothing"
    assert Segment.objects.filter(task_id=task.pk).count() == 1
    assert states(*kept) == ["stored", "thrown_away", "kept", "kept"]
    again = request(epoch, {1: [(700, 701)]})
    with pytest.raises(PublishRefused) as refused:
        publish(task_id=task.pk, number=0, request=again)
    assert refused.value.refusal.duplicates == {1: [(700, 701)]}
    check_books(cast, task, before)


def check_books(cast: Cast, task: Task, before: Any) -> None:
    """Of three replayed: one stored, one thrown away, one still unparseable. All sums hold."""
    alone = task_totals(task)
    assert (alone.polled, alone.published, alone.thrown_away, alone.unparseable) == (3, 1, 1, 1) and alone.adds_up
    after = datasource_totals(cast.datasource)
    assert after.adds_up == before.adds_up
    assert after.polled == before.polled
    assert after.published == before.published + 1
    assert after.thrown_away == before.thrown_away + 1
    assert (after.unparseable, after.quarantined) == (before.unparseable - 2, before.quarantined - 2)
    assert IndexerFence.objects.get(task_id=cast.task.pk, number=7).replayed == 3
    fates = record_fate(cast.users["viewer"], topic="flights-topic", partition=1, offset=700)
    assert [f.outcome for f in fates] == ["unparseable", "stored"]
    assert task.pk in fates[0].explanation and "took it from the quarantine" in fates[1].explanation
    assert [s.rows for s in fates[1].segments] == [1]


def test_a_record_that_is_bad_again_can_be_replayed_again(
    cast: Cast, kept: list[QuarantinedRecord], clients: dict[str, Client]
) -> None:
    before = datasource_totals(cast.datasource)
    first = replay(clients["operator"], kept[:1])
    publish(
        task_id=first.pk,
        number=0,
        request=request(begin(first), outcomes={1: Outcomes(unparseable=[(700, 701)])}, quarantined=poison((1, 700))),
    )
    second = replay(clients["operator"], kept[:1])
    publish(task_id=second.pk, number=0, request=request(begin(second), {1: [(700, 701)]}))
    after = datasource_totals(cast.datasource)
    assert (after.polled, after.published) == (before.polled, before.published + 1)
    assert after.unparseable == before.unparseable - 1
    assert QuarantinedRecord.objects.get(pk=kept[0].pk).replays == 2


def test_what_a_dead_replay_held_is_kept_again_and_its_late_publish_changes_nothing(
    cast: Cast, kept: list[QuarantinedRecord], clients: dict[str, Client]
) -> None:
    task = replay(clients["operator"], kept)
    epoch = begin(task)
    assert end_task(task, error="It was killed.")
    assert states(*kept) == ["kept"] * 4
    other = replay(clients["operator"], kept[:1])
    with pytest.raises(PublishRefused):
        publish(task_id=task.pk, number=0, request=request(epoch, {1: [(700, 701)]}))
    assert states(*kept[:2]) == ["replaying", "kept"]
    assert not Segment.objects.filter(task_id=task.pk).exists()
    assert replays.held_records(other.pk, 0)[0].headers == [("trace", b"\xff"), ("empty", None)]


def test_a_replay_that_is_stopped_before_it_starts_gives_back(
    kept: list[QuarantinedRecord], clients: dict[str, Client]
) -> None:
    task = replay(clients["operator"], kept)
    answer = clients["operator"].post(f"/api/v1/tasks/{task.pk}/stop/", {}, content_type="application/json")
    assert answer.status_code == 200
    assert Task.objects.get(pk=task.pk).status == Status.FAILED
    assert states(*kept) == ["kept"] * 4


def test_what_was_produced_again_says_where_it_is(
    cast: Cast, kept: list[QuarantinedRecord], clients: dict[str, Client]
) -> None:
    task = replay(clients["operator"], kept[:2], "produce")
    told = [ProducedRecord(number=kept[0].pk, partition=1, offset=4711)]
    assert (replays.mark_produced(task.pk, told), replays.mark_produced(task.pk, told)) == (1, 0)
    assert replays.mark_produced("another", [ProducedRecord(number=kept[1].pk, partition=1, offset=1)]) == 0
    end_task(task)
    assert states(*kept[:2]) == ["produced", "kept"]
    [fate] = record_fate(cast.users["viewer"], topic="flights-topic", partition=1, offset=700)
    assert "offset 4711" in fate.explanation


def test_a_held_page_is_bounded(cast: Cast, kept: list[QuarantinedRecord], clients: dict[str, Client]) -> None:
    large = b"x" * (replays.PAGE_BYTES // 2 + 1)
    QuarantinedRecord.objects.filter(pk__in=ids(kept)).update(payload=large)
    task = replay(clients["operator"], kept)
    numbers, after = [], 0
    while page := replays.held_records(task.pk, after):
        assert len(page) == 1
        after = page[-1].number
        numbers.append(after)
    assert numbers == ids(kept)


def test_stored_offsets_have_dead_letters_too(cast: Cast, clients: dict[str, Client]) -> None:
    """Of the type kafka the offsets are the supervisor's: a replay leaves them where they are."""
    source = Source.objects.create(
        kind=STORED_OFFSETS.kind,
        datasource=cast.datasource,
        cluster_id="c",
        group="lone",
        topic="lone-topic",
        topic_id="topic-id-1",
    )
    key = source.keys.create(partition=0, next_offset=50)
    record = QuarantinedRecord.objects.create(
        source=source,
        datasource=cast.datasource,
        task_id="t",
        partition=0,
        offset=10,
        delivery_count=1,
        reason="unparseable",
        error="bad",
        publish_id=uuid.uuid4(),
        created_at=timezone.now(),
    )
    post(clients["operator"], "replay/", {"mode": "ingest", "ids": [record.pk]}, 409)  # nobody reads lone-topic
    io_config = {"type": "kafka", "topic": "lone-topic"}
    Task.objects.create(
        id="by-hand",
        kind=OFFSET_RANGE.kind,
        datasource=cast.datasource,
        supervisor_id="lone",
        spec={"spec": {"ioConfig": io_config}},
        status=Status.SUCCESS,
        created_at=timezone.now(),
    )
    task = replay(clients["operator"], [record])
    publish(task_id=task.pk, number=0, request=request(begin(task), {0: [(10, 11)]}))
    key.refresh_from_db()
    assert (key.next_offset, states(record)) == (50, ["stored"])


def test_a_choice_by_filter_leaves_what_came_later(kept: list[QuarantinedRecord], clients: dict[str, Client]) -> None:
    body = {"mode": "ingest", "filter": {"topic": "flights-topic", "partition": 1}, "upto": kept[1].pk}
    assert post(clients["operator"], "replay/", body, 202)["records"] == 2
    assert states(*kept) == ["replaying", "replaying", "kept", "kept"]


@pytest.mark.parametrize(
    "body",
    [{}, {"ids": [], "mode": "ingest"}, {"ids": [1], "filter": {}}, {"filter": {"x": 1}}, {"mode": "eat", "ids": [1]}],
)
def test_a_choice_that_is_none_is_refused(kept: list[QuarantinedRecord], clients: dict[str, Client], body: Any) -> None:
    post(clients["owner"], "replay/", body, 400)
    assert states(*kept) == ["kept"] * 4


def test_a_limit_in_the_wrong_place_deletes_nothing(kept: list[QuarantinedRecord], clients: dict[str, Client]) -> None:
    post(clients["owner"], "purge/", {"filter": {}, "up_to": kept[0].pk}, 400)
    post(clients["owner"], "purge/", {"filter": {"upto": kept[0].pk}}, 400)
    assert states(*kept) == ["kept"] * 4


def test_a_purge_deletes_what_no_replay_holds(
    cast: Cast, kept: list[QuarantinedRecord], clients: dict[str, Client]
) -> None:
    replay(clients["operator"], kept[:1])
    assert post(clients["owner"], "purge/", {"filter": {"partition": 1}}) == {"records": 3}
    assert list(QuarantinedRecord.objects.values_list("offset", flat=True).order_by("offset")) == [7, 700]
    [fate] = record_fate(cast.users["viewer"], topic="flights-topic", partition=1, offset=701)
    assert fate.outcome == "unparseable" and "purged" in fate.explanation
    entry = AuditEntry.objects.get(action="purge")
    assert (entry.username, entry.detail) == ("owner", {"records": 3, "partition": 1})


def test_old_records_are_purged_by_the_rule_with_an_alarm(cast: Cast, kept: list[QuarantinedRecord]) -> None:
    """The cast's own record was quarantined in June 2025."""
    until = datetime(2025, 6, 11, 12, tzinfo=UTC)
    assert quarantine.purge_by_rules(retention=timedelta(days=11), most_bytes=2**30, now=until) == 0
    assert quarantine.purge_by_rules(retention=timedelta(days=9), most_bytes=2**30, now=until) == 1
    assert states(*kept) == ["kept"] * 4
    event = SourceEvent.objects.get(kind="purged")
    assert event.alarm and "HEADGATE_QUARANTINE_RETENTION" in event.detail
    assert AuditEntry.objects.get(action="retention").username == ""


def test_the_oldest_beyond_the_size_are_purged(cast: Cast, kept: list[QuarantinedRecord]) -> None:
    QuarantinedRecord.objects.filter(pk=kept[0].pk).update(state="stored")
    size = len(b"{broken")
    assert quarantine.purge_by_rules(retention=timedelta(days=36500), most_bytes=2 * size) == 3
    assert list(QuarantinedRecord.objects.values_list("offset", flat=True).order_by("offset")) == [702, 703]
    assert "2 of them never replayed" in SourceEvent.objects.get(kind="purged").detail


def test_one_datasource_does_not_reach_into_another(kept: list[QuarantinedRecord], cast: Cast) -> None:
    other = Datasource.objects.create(name="other", team=cast.alpha)
    client = browsing_as(cast, "owner")
    path = "/api/v1/datasources/other/quarantine/purge/"
    answer = client.post(path, {"ids": ids(kept)}, content_type="application/json")
    assert answer.json() == {"records": 0}, other
    assert states(*kept) == ["kept"] * 4


# Pages


def test_the_page_asks_with_the_count_and_then_acts(cast: Cast, kept: list[QuarantinedRecord]) -> None:
    client = browsing_as(cast, "owner")
    page = client.get("/datasources/flights/quarantine/", {"partition": 1}).content.decode()
    assert 'data-matching="4"' in page and "all 4 that match the filter" in page
    chosen = {"action": "purge", "scope": "ticked", "record": ids(kept[:2]), "filter": "partition=1"}
    asked = client.post("/datasources/flights/quarantine/confirm/", chosen).content.decode()
    assert "Delete 2 records for good?" in asked
    assert states(*kept) == ["kept"] * 4, "a question changes nothing"
    done = client.post("/datasources/flights/quarantine/purge/", chosen)
    assert done["Location"] == "/datasources/flights/quarantine/?partition=1"
    assert QuarantinedRecord.objects.filter(partition=1).count() == 2
    everything = {"action": "ingest", "scope": "matching", "upto": kept[-1].pk, "filter": "partition=1"}
    asked = client.post("/datasources/flights/quarantine/confirm/", everything).content.decode()
    assert "Ingest 2 records with the current spec?" in asked
    started = client.post("/datasources/flights/quarantine/replay/", everything)
    task = Task.objects.get(kind=Task.Kind.REPLAY)
    assert started["Location"] == f"/tasks/{task.pk}/"
    assert "quarantined records of" in client.get(f"/tasks/{task.pk}/").content.decode()
    assert "being replayed" in client.get("/datasources/flights/quarantine/").content.decode()


def test_the_page_offers_what_the_role_may(cast: Cast, kept: list[QuarantinedRecord]) -> None:
    def page(role: str, **query: str) -> str:
        return browsing_as(cast, role).get("/datasources/flights/quarantine/", query).content.decode()

    assert "Purge…" in page("owner") and "Purge…" not in page("operator") and "Ingest…" in page("operator")
    assert "Ingest…" not in page("viewer") and "Export as NDJSON" in page("viewer")
    assert "No records match these filters." in page("viewer", topic="none")


@pytest.mark.parametrize("form", ["text", "json", "hexadecimal", "nonsense"])
def test_a_payload_is_shown_as_asked(cast: Cast, kept: list[QuarantinedRecord], form: str) -> None:
    QuarantinedRecord.objects.filter(pk=kept[0].pk).update(payload=b'{"a":[1]}')
    text = (
        browsing_as(cast, "viewer").get(f"/datasources/flights/quarantine/{kept[0].pk}/", {"as": form}).content.decode()
    )
    expected = {"json": "&quot;a&quot;: [\n", "hexadecimal": "7b 22 61 22"}.get(form, "{&quot;a&quot;:[1]}")
    assert expected in text
    assert "trace" in text
