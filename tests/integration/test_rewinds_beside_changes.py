"""A rewind whose supervisor is suspended, terminated or changed meanwhile, or whose datasource is to be deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from controlplane.connections.kafka import topic_offsets
from controlplane.publishing import fence
from controlplane.publishing.models import Rewind, RewindPart
from controlplane.sources.models import Source
from controlplane.sources.spec_sources import source_key
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.rewind_rounds import run_rewinds
from controlplane.supervisors.run import run
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Goal, Task
from ingestion.specs.messages.protocol import Advance, Outcomes
from tests.integration.test_rewind_rounds import (
    asks,
    merged,
    next_task,
    reads,
    rows_in_use,
    source_of,
    supervisor,
    topic,
)
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as
from tests.support.html import parsed
from tests.support.publishes import request, send
from tests.support.records import numbered
from tests.support.stored_offsets import DRUID, post

__all__ = ["supervisor", "topic"]  # fixtures
pytestmark = pytest.mark.usefixtures("checked_here")
Change = Callable[[Client, Supervisor], Any]
DELETE = "/api/v1/datasources/{}/delete/"


def spec_of(supervisor: Supervisor, **io_config: Any) -> dict[str, Any]:
    """The present one, with changes."""
    spec: dict[str, Any] = supervisor.current.spec["spec"]
    return {"type": "kafka", **spec, "ioConfig": {**spec["ioConfig"], **io_config}}


def suspend(owner: Client, supervisor: Supervisor) -> Any:
    return post(owner, f"{DRUID}/{supervisor.pk}/suspend")


def suspend_and_resume(owner: Client, supervisor: Supervisor) -> Any:
    assert suspend(owner, supervisor).status_code == 200
    return post(owner, f"{DRUID}/{supervisor.pk}/resume")


def terminate(owner: Client, supervisor: Supervisor) -> Any:
    return post(owner, f"{DRUID}/{supervisor.pk}/terminate")


def terminate_and_submit(owner: Client, supervisor: Supervisor) -> Any:
    assert terminate(owner, supervisor).status_code == 200
    return post(owner, DRUID, spec_of(supervisor))


def change_spec(owner: Client, supervisor: Supervisor) -> Any:
    return post(owner, DRUID, spec_of(supervisor, taskDuration="PT2H"))


CHANGES = [suspend, suspend_and_resume, terminate, terminate_and_submit, change_spec]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["before it", "between parts", "while a part is read"])
def test_it_goes_on_with_the_spec_that_it_began_with(
    supervisor: Supervisor, owner: Client, change: Change, when: str
) -> None:
    """Rounds over the supervisor leave its task alone. All of it can be undone afterwards."""
    source = source_of(supervisor)

    def changes() -> None:
        assert change(owner, supervisor).status_code == 200
        run(supervisor.pk)

    if when == "before it":
        changes()
    begun = asks(owner, supervisor, spec_version=2, read_with=1).json()
    assert [(p["rows"], p["records"]) for p in begun["parts"]] == [(10, 10), (0, 2)]
    first = next_task()
    if when == "while a part is read":
        changes()
    assert Task.objects.get(pk=first).goal == Goal.RUN
    assert not Task.objects.get(pk=first).ended
    reads(first, source, {0: Outcomes(thrown_away=[(20, 30)])})
    if when == "between parts":
        changes()
    second = reads(next_task(), source)
    assert (second.spec_version, second.io_config.topic) == (1, source.topic)
    assert run_rewinds() == []
    assert (rows_in_use(supervisor), states(supervisor)) == (22, ["done", "done"])
    assert asks(owner, supervisor, "undo/", rewind=begun["rewind"]).status_code == 200
    assert (rows_in_use(supervisor), states(supervisor)) == (30, ["undone", "undone"])


def states(supervisor: Supervisor) -> list[str]:
    return list(
        RewindPart.objects.filter(rewind__supervisor_id=supervisor.pk).order_by("pk").values_list("state", flat=True)
    )


def test_one_of_a_terminated_supervisor_is_cancelled_on_its_page(
    supervisor: Supervisor, owner: Client, cast: Cast
) -> None:
    number = asks(owner, supervisor, spec_version=2).json()["rewind"]
    task = next_task()
    assert terminate(owner, supervisor).status_code == 200
    browser, address = browsing_as(cast, "owner"), f"/supervisors/{supervisor.pk}/rewinds/"
    assert f"?cancel={number}" in browser.get(address).content.decode()
    assert browser.post(address, {"cancel": number}).status_code == 302
    assert (states(supervisor), Task.objects.get(pk=task).ended) == (["cancelled", "cancelled"], True)
    assert (run_rewinds(), rows_in_use(supervisor)) == ([], 30)


def other_topic(supervisor: Supervisor, broker: Broker) -> Source:
    """One that it has read, too: its offsets 0 to 7 have rows, and 8 and 9 were thrown away."""
    name = broker.topic(partitions=1)
    broker.produce(name, numbered(0, 10), partition=0)
    found = topic_offsets(supervisor.io_config.consumerProperties, name)
    assert found is not None
    key = source_key(supervisor.io_config, supervisor.owner)
    other = fence.adopt_source(
        datasource=supervisor.datasource, **key, topic=name, cluster_id=found.cluster_id, topic_id=found.topic_id
    )
    epoch = fence.take_epoch(task_id="before", datasource=supervisor.datasource, source=other).epoch
    other.keys.create(partition=0, next_offset=0)
    what = request(
        epoch,
        {0: [(0, 8)]},
        {0: Outcomes(thrown_away=[(8, 10)])},
        progress={0: Advance(start=0, end=10)},
        topic_id=other.topic_id,
    )
    send(what, task="before")
    return other


def test_beside_one_of_the_topic_before_none_begins_and_none_is_undone(
    supervisor: Supervisor, owner: Client, broker: Broker
) -> None:
    """A part reads records of both topics if they share a segment. One that it throws away has no row. A rewind of the
    other topic reads it as such: if the first were undone meanwhile, it would have two.
    """
    own, other = source_of(supervisor), other_topic(supervisor, broker)
    merged(supervisor)
    first = asks(owner, supervisor, spec_version=1).json()["rewind"]
    assert post(owner, DRUID, spec_of(supervisor, topic=other.topic)).status_code == 200
    of_other: dict[str, Any] = {"start_offsets": {"0": 0}, "end_offsets": {"0": 8}}
    refused = asks(owner, supervisor, **of_other)
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        f"Rewind {first} of this supervisor is at work. Wait for it, or cancel it.",
    )
    reads(next_task(), own)
    reads(next_task(), other, {0: Outcomes(thrown_away=[(0, 8)])})
    assert (states(supervisor), rows_in_use(supervisor)) == (["done"], 30)
    second = asks(owner, supervisor, **of_other)
    assert [(p["rows"], p["records"]) for p in second.json()["parts"]] == [(0, 8)]
    undone = asks(owner, supervisor, "undo/", rewind=first)
    assert (
        undone.status_code == 409 and f"Rewind {second.json()['rewind']} of this supervisor" in undone.json()["detail"]
    )
    reads(next_task(), other)
    assert rows_in_use(supervisor) == 38
    again = asks(owner, supervisor, "undo/", rewind=first)
    assert again.status_code == 409 and "8 of its records were read again since" in again.json()["detail"]
    assert rows_in_use(supervisor) == 38


def test_a_datasource_is_not_deleted_under_a_rewind(supervisor: Supervisor, owner: Client, cast: Cast) -> None:
    begun = asks(owner, supervisor, spec_version=2).json()["rewind"]
    assert terminate(owner, supervisor).status_code == 200
    name = supervisor.datasource.name
    refused = post(owner, DELETE.format(name), {"name": name})
    assert refused.status_code == 409
    assert refused.json()["detail"] == (
        f"rewind of supervisor {supervisor.pk} write to {name}. Terminate the supervisors, cancel the rewinds and stop "
        "the tasks first."
    )
    page = parsed(browsing_as(cast, "owner").get(f"/datasources/{name}/delete/"))
    assert page.one("a", href=f"/supervisors/{supervisor.pk}/rewinds/").text == supervisor.pk
    assert asks(owner, supervisor, "cancel/", rewind=begun).status_code == 200
    assert post(owner, DELETE.format(name), {"name": name}).status_code == 200


def test_of_a_deleted_datasource_nothing_is_read_again(supervisor: Supervisor, owner: Client) -> None:
    """Also after a spec has made it again: its records without rows stay without."""
    begun = asks(owner, supervisor, spec_version=2).json()["rewind"]
    reads(next_task(), source_of(supervisor))
    end_task(Task.objects.get(pk=next_task()), error="Killed.")
    assert asks(owner, supervisor, "cancel/", rewind=begun).status_code == 200
    assert terminate(owner, supervisor).status_code == 200
    name = supervisor.datasource.name
    assert post(owner, DELETE.format(name), {"name": name}).status_code == 200
    for preview in (True, False):
        refused = asks(owner, supervisor, spec_version=2, preview=preview)
        assert (refused.status_code, refused.json()["detail"]) == (
            409,
            f"The datasource {name} is deleted, so its records can't be read again.",
        )
    undone = asks(owner, supervisor, "undo/", rewind=begun)
    assert undone.status_code == 409 and "were merged or removed since" in undone.json()["detail"]
    assert post(owner, DRUID, spec_of(supervisor)).status_code == 200
    assert (run_rewinds(), states(supervisor), rows_in_use(supervisor)) == ([], ["done", "cancelled"], 0)
    assert Rewind.objects.count() == 1
