"""A source that nobody knew, made of what one file has to say: every address copes with it, or refuses by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client

from controlplane.api.docs import openapi, openapi_text
from controlplane.publishing.settled import settled_among
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion, Supervisor
from controlplane.supervisors.repairs import start_repairs
from controlplane.supervisors.run import run
from controlplane.supervisors.topic_checks import question_for
from controlplane.tasks.lifecycle import new_token
from controlplane.tasks.models import Task
from ingestion.sources.memory import MemoryLeasedSource
from ingestion.sources.topic import TopicWatch
from ingestion.spark import sources as makers
from ingestion.specs.inputs import sources
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.messages.protocol import Advance, Assignment, Outcomes
from ingestion.specs.messages.sampler_spec import parse_sampler_spec
from ingestion.specs.source_traits import Progress, SourceTraits
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec, parse_task_spec
from tests.support.django_cast import SEED, Cast, browsing_as
from tests.support.html import parsed
from tests.support.permission_table import TABLE, Everybody, Row
from tests.support.publishes import request

# The source

SUBSCRIPTION = SourceTraits(
    kind="subscription",
    label="subscription",
    progress=Progress(kind="subscription", label="subscription", keeps_offsets=False),
    task_type="index_subscription",
    supervisor_type="subscription",
)


class SubscriptionIOConfig(IOConfig):
    """The broker remembers what was acknowledged, under a name; it is no share group."""

    NAMES = ("subscription", "index_subscription")
    TRAITS = (SUBSCRIPTION,)

    type: Literal["subscription", "index_subscription"] = "subscription"
    subscription: str
    pollTimeout: int = 100
    useEarliestOffset: bool = True
    replicas: int = 1

    @classmethod
    def sample_defaults(cls) -> dict[str, Any]:
        return {"subscription": "sample"}

    def progress_name(self, owner: str) -> str:
        return self.subscription


def make_subscription(assignment: Assignment, number: int, watch: TopicWatch) -> makers.SourceFactory:
    return lambda claim: MemoryLeasedSource([])


# What it meets


@pytest.fixture
def described_anew() -> Iterator[None]:
    """OpenAPI with this source, and after the test without it."""
    openapi.cache_clear()
    openapi_text.cache_clear()
    yield
    openapi.cache_clear()
    openapi_text.cache_clear()


@pytest.fixture
def subscribed(cast: Cast, monkeypatch: pytest.MonkeyPatch, empty_cache: None, described_anew: None) -> Cast:
    """The cast, whose supervisor, task and progress are a subscription's."""
    monkeypatch.setattr(sources, "SOURCES", (*sources.SOURCES, SubscriptionIOConfig))
    known: dict[type[IOConfig], Any] = {**makers.FACTORY_BUILDERS, SubscriptionIOConfig: make_subscription}
    monkeypatch.setattr(makers, "FACTORY_BUILDERS", known)
    spec = parse_supervisor_spec(document(supervised=True))
    SpecVersion.objects.create(supervisor=cast.supervisor, version=2, spec=spec.canonical())
    Supervisor.objects.filter(pk=cast.supervisor.pk).update(version=2)
    task_spec = parse_task_spec(document()).canonical()
    Task.objects.filter(pk=cast.task.pk).update(kind=SUBSCRIPTION.kind, spec=task_spec, spec_version=2)
    Source.objects.filter(pk=cast.source.pk).update(kind=SUBSCRIPTION.progress.kind, group="flights-subscription")
    for row in (cast.supervisor, cast.task, cast.source):
        row.refresh_from_db()
    return cast


def document(supervised: bool = False) -> dict[str, Any]:
    kept = {name: SEED["ioConfig"][name] for name in ("consumerProperties", "inputFormat")}
    return {
        **SEED,
        "type": SUBSCRIPTION.supervisor_type if supervised else SUBSCRIPTION.task_type,
        "dataSchema": {**SEED["dataSchema"], "dataSource": "flights"},
        "ioConfig": {**kept, "topic": "flights-topic", "subscription": "flights-subscription"},
    }


# What is a share group's alone: there is none, and the answer says so.
REFUSED = "reads with subscription; it has no share group"
SHARE_GROUPS = ("share-group/", "share-group/config/", "share-group/apply/")
OTHERS = ("share group", "consumer group", "stored offset", "offset range")
# Those that offer every source, or say what the installation offers.
OF_ALL = (
    *("tasks/", "tasks/-/new/", "records/", "supervisors/-/new/", "supervisors/-/schema.json"),
    *("api/schema/", "api/docs/", "datasources/<str:name>/events/"),
)


def test_every_address_copes_or_refuses_by_name(subscribed: Cast) -> None:
    everybody, faults = Everybody(subscribed), []
    for row in TABLE:
        cache.clear()  # throttles begin anew
        with transaction.atomic():
            answer: Any = everybody.ask(row, "owner")
            text = shown(row, answer)
            transaction.set_rollback(True)  # the next finds all as it was
        if not as_it_should(row, answer.status_code, text):
            faults.append(f"{row.method} /{row.pattern}{row.query}: {answer.status_code} {text[:500]}")
    assert faults == []


def as_it_should(row: Row, status: int, text: str) -> bool:
    """Whether it copes, or refuses by name what is a share group's alone."""
    if not row.pattern.endswith(SHARE_GROUPS):
        of_another = [word for word in OTHERS if word in text.lower()]
        return status == row.statuses[0] and (not of_another or row.pattern in OF_ALL or status >= 400)
    if not row.is_page:
        return status == 400 and REFUSED in text
    return status == (404 if row.method == "GET" else 302)


def shown(row: Row, answer: Any) -> str:
    """The words of an answer; of a page those that are read."""
    if answer.streaming:
        return b"".join(answer).decode()
    is_html = answer.headers.get("Content-Type", "").startswith("text/html")
    return parsed(answer).text if is_html and answer.content.startswith(b"<!") else answer.content.decode()


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(path, body, content_type="application/json")


def test_its_specs_are_taken_and_its_faults_named(subscribed: Cast, clients: dict[str, Client]) -> None:
    owner = clients["owner"]
    wrong = document()
    del wrong["ioConfig"]["subscription"]
    [fault] = post(owner, "/api/v1/tasks/", wrong).json()["errors"]
    assert (fault["path"], fault["detail"]) == ("ioConfig.subscription", "required field is missing")
    made = post(owner, "/api/v1/tasks/", document()).json()
    assert (made["kind"], made["spec"]["type"]) == ("subscription", "index_subscription")
    more = document(supervised=True)
    more["ioConfig"]["taskCount"] = 2
    changed = post(owner, "/api/v1/supervisors/", more).json()
    assert (changed["version"], changed["group"], changed["topic"]) == (3, "flights-subscription", "flights-topic")
    pasted = {"type": "inline", "data": '{"a": 1}'}
    sample = {"type": "subscription", "spec": {"ioConfig": {"inputSource": pasted, "inputFormat": {"type": "json"}}}}
    assert type(parse_sampler_spec(sample).order.io_config) is SubscriptionIOConfig


def test_its_tasks_are_found_under_their_own_type(subscribed: Cast, clients: dict[str, Client]) -> None:
    viewer, mine = clients["viewer"], subscribed.task.pk
    found = viewer.get("/api/v1/tasks/?kind=subscription").json()["results"]
    assert [(t["id"], t["kind"]) for t in found] == [(mine, "subscription")]
    assert viewer.get("/api/v1/tasks/?kind=share_group").json()["results"] == []
    [druids] = viewer.get("/druid/indexer/v1/tasks?type=index_subscription").json()
    assert (druids["id"], druids["type"]) == (mine, "index_subscription")
    assert viewer.get("/druid/indexer/v1/tasks?type=index_kafka_share_group").json() == []


def test_its_indexers_are_spoken_to(subscribed: Cast) -> None:
    """They settle ranges; stored offsets, which it does not have, are refused by name."""
    task = subscribed.task
    client = Client(headers={"Authorization": f"Bearer {new_token(task)}"})
    told = client.get(f"/internal/tasks/{task.pk}/assignment").json()
    assert (told["kind"], told["group"], told["reads_until"]) == ("subscription", "", None)
    assert Assignment.model_validate(told).spec.ioConfig == SubscriptionIOConfig(**told["spec"]["ioConfig"])
    indexer = f"/internal/tasks/{task.pk}/indexers/0"
    here = {"cluster_id": "cluster-1", "topic_id": "topic-id-1", "host": "h", "pid": 1}
    epoch = post(client, f"{indexer}/start", here).json()["epoch"]
    claim = post(client, f"{indexer}/claim", {"epoch": epoch, "topic_id": "topic-id-1", "partitions": [0]})
    assert (claim.status_code, "The broker distributes a subscription's records" in claim.json()["detail"]) == (
        400,
        True,
    )
    batch = request(epoch, outcomes={1: Outcomes(thrown_away=[(700, 710)])})
    moving = batch.model_copy(update={"progress": {1: Advance(start=700, end=710)}})
    refused = post(client, f"{indexer}/publish", moving.model_dump(mode="json"))
    assert "A subscription has no stored offsets to move." in refused.json()["detail"]
    assert post(client, f"{indexer}/publish", batch.model_dump(mode="json")).status_code == 200
    assert settled_among(subscribed.source.pk, {1: [(700, 710)]}) == {1: [(700, 710)]}


def test_the_house_looks_after_it(subscribed: Cast) -> None:
    """Rounds, its maker, and no repair: what the broker has not delivered is nobody's to read."""
    assert run(subscribed.supervisor.pk) is not None
    assert start_repairs() == []
    spec = parse_task_spec(document()).spec
    assert type(spec.ioConfig) is SubscriptionIOConfig
    assert subscribed.source.progress is SUBSCRIPTION.progress


def test_what_can_not_be_read_any_more_is_shown_and_named(cast: Cast, clients: dict[str, Client]) -> None:
    """After a step back to a version without the source the list copes, and iterations say why nothing starts."""
    written = {**document(supervised=True), "suspended": False}
    parts = {name: written.pop(name) for name in ("dataSchema", "ioConfig", "tuningConfig")}
    parts["ioConfig"]["type"] = "subscription"
    SpecVersion.objects.create(supervisor=cast.supervisor, version=2, spec={**written, "spec": parts})
    Supervisor.objects.filter(pk=cast.supervisor.pk).update(version=2)
    [row] = clients["viewer"].get("/api/v1/supervisors/").json()["results"]
    assert (row["topic"], row["task_count"]) == ("flights-topic", 0)
    for page in ("", "lag/", "spec/"):
        assert browsing_as(cast, "owner").get(f"/supervisors/flights/{page}").status_code == 200
    asked = question_for(Supervisor.objects.get(pk="flights"))
    assert "type must be one of 'index_kafka_share_group'" in str(asked.problem)
