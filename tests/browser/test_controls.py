"""Every form and button of ``control_table`` does what the table says."""

from __future__ import annotations

import pytest

from controlplane.connections.kafka import topic_offsets
from controlplane.sources.models import Source
from controlplane.supervisors.models import SpecVersion
from controlplane.supervisors.share_group import group_configuration
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from tests.browser.conftest import Quiet
from tests.browser.control_rows import places
from tests.browser.control_table import GROUPS, PREVIEWED, WITH_A_BROKER
from tests.browser.crawl import controls
from tests.browser.site import STORED, Visit, kafka_spec
from tests.support.django_cast import spec_for
from tests.support.house import House
from tests.support.records import numbered


@pytest.mark.parametrize("group", GROUPS)
def test_every_form_and_button_does_what_it_says(visit: Visit, quiet: Quiet, group: str) -> None:
    if group == "queries":
        quiet.expected.append("409 (Conflict)")  # the browser's own line about a query that was cancelled
    for row in GROUPS[group]:
        visit.become("owner")
        row.walk(visit)


def test_the_configuration_of_a_group_is_applied(visit: Visit, stack: House) -> None:
    """On the broker, by the one form that is there only when it answers."""
    topic = stack.topic("apply")
    spec = spec_for("flights", topic=topic, groupId=topic, consumerProperties={"bootstrap.servers": stack.bootstrap})
    SpecVersion.objects.filter(supervisor="flights", version=2).delete()
    canonical = parse_supervisor_spec(spec).canonical()
    SpecVersion.objects.create(supervisor=visit.site.supervisor(), version=2, spec=canonical)
    visit.open("/supervisors/flights/share-group/config/")
    assert {c for here in controls(visit.page).values() for c in here} == {c for _, c in places(WITH_A_BROKER)}
    for row in WITH_A_BROKER:
        row.walk(visit)
    assert not group_configuration(visit.site.supervisor()).drifted


def test_a_backfill_begins_as_it_was_shown(visit: Visit, stack: House) -> None:
    """By the answers that are there only when a broker has the offsets."""
    topic, spec = stack.topic("fill", 1), kafka_spec(STORED)
    stack.produce(topic, numbered(0, 9))
    spec["ioConfig"] |= {"topic": topic, "consumerProperties": {"bootstrap.servers": stack.bootstrap}}
    SpecVersion.objects.filter(supervisor=STORED).update(spec=parse_supervisor_spec(spec).canonical())
    seen = topic_offsets(spec["ioConfig"]["consumerProperties"], topic)
    assert seen is not None
    read = {"topic": topic, "topic_id": seen.topic_id, "cluster_id": seen.cluster_id}
    Source.objects.filter(group=STORED).update(**read)
    for row in PREVIEWED:
        row.walk(visit)
