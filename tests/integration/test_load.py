"""The wizard's drafts over REST, tried on records that are kept; once with a real topic."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from controlplane.connections.secrets import unseal
from controlplane.datasources.models import Datasource
from controlplane.loading import samples
from controlplane.loading.models import Draft
from controlplane.loading.services import MAX_DRAFTS, RETENTION, drop_old_drafts
from controlplane.supervisors.models import Supervisor
from ingestion.specs.messages.sampling import SampleAnswer
from tests.support.broker import Broker
from tests.support.django_cast import Cast
from tests.support.drafts import DRAFTS, SERVERS, address, begin, change, document, flights, with_records
from tests.support.records import numbered

pytestmark = pytest.mark.usefixtures("checked_here")

CANARY = "canary-8d2e"


def get(client: Client, draft: Draft, part: str) -> Any:
    answer = client.get(address(draft, part))
    assert answer.status_code == 200, answer.content
    return answer.json()


# Drafts


def test_secrets_are_sealed_and_kept_while_the_connection_is(owner: Client) -> None:
    login = {**SERVERS, "security.protocol": "SASL_SSL", "sasl.username": "u"}
    draft = begin(owner, {"document": document(consumerProperties={**login, "sasl.password": CANARY})})
    answer = owner.get(address(draft))
    assert CANARY.encode() not in answer.content
    assert answer.json()["secrets"] == ["sasl.password"]
    assert CANARY not in json.dumps(draft.document) + draft.secrets
    assert change(owner, draft, document(consumerProperties=login, topic="other")).json()["secrets"] == [
        "sasl.password"
    ]
    elsewhere = {**login, "bootstrap.servers": "elsewhere:9092"}
    assert change(owner, draft, document(consumerProperties=elsewhere)).json()["secrets"] == []


def test_another_topic_forgets_the_records_and_another_column_does_not(owner: Client) -> None:
    draft = with_records(begin(owner))
    timed = document()
    timed["spec"]["dataSchema"]["timestampSpec"] = {"column": "placed_at"}
    assert change(owner, draft, timed).status_code == 200
    assert samples.load_sample(draft) is not None
    assert change(owner, draft, document(topic="others")).status_code == 200
    assert samples.load_sample(draft) is None


def test_records_are_kept_sealed(owner: Client) -> None:
    draft = with_records(begin(owner), [CANARY.encode()])
    stored = cache.get(f"load-records:{draft.pk}")
    assert CANARY not in stored
    assert unseal(stored)
    kept = samples.load_sample(draft)
    assert kept is not None
    assert [r.payload for r in kept.records] == [CANARY.encode()]


def test_a_team_shares_a_draft_and_nobody_else_sees_it(cast: Cast, clients: dict[str, Client]) -> None:
    draft = begin(clients["owner"])
    assert {role: client.get(address(draft)).status_code for role, client in clients.items()} == {
        "owner": 200,
        "operator": 200,
        "viewer": 403,
        "outsider": 404,
        "anonymous": 401,
        "superuser": 200,
    }
    assert clients["operator"].delete(address(draft)).status_code == 403  # it is another's
    assert clients["operator"].get(DRAFTS).json()["results"] == []
    assert clients["owner"].delete(address(draft)).status_code == 204
    assert clients["owner"].get(address(draft)).status_code == 404


def test_there_is_an_end_to_drafts(cast: Cast, owner: Client) -> None:
    team, user = cast.alpha, cast.users["owner"]
    Draft.objects.bulk_create(Draft(owner=user, team=team) for _ in range(MAX_DRAFTS))
    assert owner.post(DRAFTS, {}, content_type="application/json").status_code == 409
    Draft.objects.update(updated_at=timezone.now() - RETENTION - timedelta(hours=1))
    fresh = Draft.objects.create(owner=user, team=team)
    assert drop_old_drafts() == MAX_DRAFTS
    assert Draft.objects.get() == fresh


@pytest.mark.parametrize("written", [7, [], {"spec": 1}, {"spec": {"ioConfig": {"inputFormat": "json"}}}])
def test_what_is_no_spec_changes_nothing(owner: Client, written: Any) -> None:
    draft = begin(owner)
    assert change(owner, draft, written).status_code == 400
    draft.refresh_from_db()
    assert draft.document == document()


# What the steps tell


def test_steps_without_a_topic_say_what_is_missing(owner: Client) -> None:
    draft = begin(owner, {})
    for part in ("formats/", "times/", "rows/", "outlook/"):
        answer = owner.get(address(draft, part))
        assert (answer.status_code, answer.json()["detail"]) == (400, "Choose a topic first.")


def test_formats_times_rows_and_the_outlook(owner: Client) -> None:
    draft = with_records(begin(owner))
    [found] = get(owner, draft, "formats/")["formats"]
    assert (found["input_format"], found["share"]) == ({"type": "json"}, 0.9)
    written = document(inputFormat=found["input_format"], taskCount=2)
    change(owner, draft, written)
    [time] = get(owner, draft, "times/")["times"]
    assert (time["column"], time["format"], round(time["share"], 2)) == ("placed_at", "iso", 0.73)
    written["spec"]["dataSchema"]["timestampSpec"] = {"column": time["column"], "format": time["format"]}
    written["spec"]["dataSchema"]["granularitySpec"] = {"segmentGranularity": "HOUR", "rollup": False}
    change(owner, draft, written)
    rows = get(owner, draft, "rows/")
    assert rows["outcomes"] == {"stored": 8, "unparseable": 2, "tombstone": 1}
    assert rows["records"][0]["row"]["__time"] == "2026-01-31T12:00:00.000Z"
    assert [p["null_share"] for p in rows["profiles"] if p["name"] == "id"] == [0.0]
    assert [n["nodes"] for n in rows["nested"]] == [["from", "city"]]
    outlook = get(owner, draft, "outlook/")
    assert (outlook["arrived"], outlook["records_per_s"]) == ({"records": 60, "window_s": 60}, 1.0)
    assert (outlook["rows_per_minute"], outlook["segments"], outlook["task_count"]) == (round(60 * 8 / 11), 2, 2)
    assert outlook["bytes_per_minute"] > 0


def test_an_empty_topic(owner: Client) -> None:
    draft = begin(owner, {"document": document(inputFormat={"type": "json"})})
    samples.store_sample(draft, SampleAnswer())
    assert get(owner, draft, "formats/") == {"formats": []}
    assert get(owner, draft, "times/") == {"times": []}
    assert get(owner, draft, "rows/")["records"] == []
    outlook = get(owner, draft, "outlook/")
    assert (outlook["arrived"], outlook["records_per_s"], outlook["rows_per_minute"]) == (None, None, None)


def test_a_fault_of_the_spec_is_told_at_its_place(owner: Client) -> None:
    draft = with_records(begin(owner, {"document": document(inputFormat={"type": "csv"})}))
    answer = owner.get(address(draft, "rows/"))
    assert answer.status_code == 400
    assert [e["pointer"] for e in answer.json()["errors"]] == ["/spec/ioConfig/inputFormat"]


# The change of a supervisor


def test_the_dry_run_of_a_change(owner: Client) -> None:
    draft = flights(owner)
    assert get(owner, draft, "dry-run/")["changed"] == []
    written = draft.document
    written["spec"]["dataSchema"]["transformSpec"] = {"filter": {"type": "expression", "expression": "n > 5"}}
    assert change(owner, draft, written).status_code == 200
    told = get(owner, draft, "dry-run/")
    assert (told["records"], told["rows_before"], told["rows_after"]) == (2, 2, 1)
    [changed] = told["changed"]
    assert (changed["offset"], changed["kind"], changed["outcome_after"]) == (0, "dropped", "filtered")


def test_a_change_is_submitted_unless_somebody_was_faster(owner: Client) -> None:
    mine, late = flights(owner), flights(owner)
    written = mine.document
    written["spec"]["ioConfig"]["taskCount"] = 2
    assert change(owner, mine, written).status_code == 200
    answer = owner.post(address(mine, "submit/"), {}, content_type="application/json")
    assert (answer.status_code, answer.json()) == (201, {"kind": "supervisor", "id": "flights"})
    assert Supervisor.objects.get(pk="flights").version == 2
    answer = owner.post(address(late, "submit/"), {}, content_type="application/json")
    assert answer.status_code == 409
    assert Supervisor.objects.get(pk="flights").version == 2
    assert list(Draft.objects.all()) == [late]


# With Kafka


def test_a_topic_s_newest_records(owner: Client, broker: Broker) -> None:
    topic = broker.topic("loaded")
    broker.produce(topic, numbered(0, 700))
    spec = broker.kafka_spec(topic)
    draft = begin(owner, {"document": {"type": "kafka", "spec": {"dataSchema": {}, "ioConfig": spec["ioConfig"]}}})
    told = owner.post(address(draft, "records/"), {}, content_type="application/json")
    assert told.json()["records"] == 500
    assert get(owner, draft, "formats/")["formats"][0]["input_format"] == {"type": "json"}
    assert get(owner, draft, "times/")["times"][0]["column"]
    assert get(owner, draft, "rows/")["outcomes"] == {"stored": 500}
    outlook = get(owner, draft, "outlook/")
    assert (outlook["arrived"], outlook["records_per_s"]) == ({"records": 700, "window_s": 60}, 700 / 60)
    assert not Datasource.objects.filter(name=topic).exists()
