"""A datasource's quarantine as a page: it offers what can be done, and sorts."""

from __future__ import annotations

import re

import pytest

from controlplane.quarantine.models import QuarantinedRecord
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.models import Task
from tests.support.django_cast import Cast, browsing_as

PAGE = "/datasources/flights/quarantine/"


@pytest.mark.parametrize("state", ["replaying", "stored", "produced"])
def test_the_page_offers_what_can_be_done_with_the_records(cast: Cast, state: str) -> None:
    QuarantinedRecord.objects.update(state=state)
    purges = state != "replaying"
    for address in (PAGE, f"{PAGE}{cast.quarantined.pk}/"):
        page = browsing_as(cast, "owner").get(address).content.decode()
        assert "Ingest…" not in page and "Produce again…" not in page, address
        assert ("Purge…" in page) is purges, address
    assert ('name="record"' in page) is purges


def test_records_of_a_deleted_datasource_are_not_offered_to_be_replayed(cast: Cast) -> None:
    cast.datasource.deleted_at, cast.datasource.deleted_by = cast.task.created_at, "ann"
    cast.datasource.save()
    page = browsing_as(cast, "owner").get(PAGE).content.decode()
    assert "submit a spec that names it first" in page
    assert "Ingest…" not in page and "Purge…" in page


def test_a_replay_that_nothing_can_read_is_refused_before_it_asks(cast: Cast) -> None:
    Supervisor.objects.all().delete()
    Task.objects.all().delete()
    chosen = {"action": "ingest", "scope": "ticked", "record": [cast.quarantined.pk]}
    answer = browsing_as(cast, "operator").post(f"{PAGE}confirm/", chosen, follow=True)
    assert "there is no spec to decode" in answer.content.decode()
    assert answer.redirect_chain == [(PAGE, 302)]


def test_records_are_read_from_either_end_through_their_filter(cast: Cast) -> None:
    sample = cast.quarantined
    for n in range(30):
        QuarantinedRecord.objects.create(
            source=sample.source, datasource=sample.datasource, task_id=sample.task_id, partition=3, offset=n,
            delivery_count=1, reason="unparseable", error="bad", payload=b"{", created_at=sample.created_at,
            publish_id=sample.publish_id,
        )  # fmt: skip
    client, seen, link = browsing_as(cast, "viewer"), [], "?partition=3&sort=since"
    while link:
        text = client.get(f"{PAGE}{link}").content.decode()
        seen += re.findall(r'data-record="3:(\d+)"', text)
        following = re.search(r'rel="next" href="([^"]+)"', text)
        link = following[1].replace("&amp;", "&") if following else ""
    assert seen == [str(n) for n in range(30)]
    assert client.get(PAGE, {"sort": "delivery"}).status_code == 400
