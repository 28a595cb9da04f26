"""When unread records expire, asked of a real broker; on the page, in REST, as a metric and in an alert."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client import REGISTRY

from controlplane.alerts.evaluating import evaluate
from controlplane.alerts.models import Alert, Rule
from controlplane.lag.models import UnreadTimes
from controlplane.metrics.snapshot import take_snapshot
from controlplane.sources.models import Source
from controlplane.supervisors import services
from controlplane.supervisors.lag import observe_waiting
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.retention_countdown import Code
from controlplane.supervisors.unread_times import countdown_of, observe_unread
from ingestion.specs.source_traits import SHARE_GROUPS
from tests.integration.test_supervisor_iterations import submit
from tests.integration.test_waiting_lag import read_source, source_of
from tests.support.alert_rounds import rule_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as, settle
from tests.support.forwarder import Forwarder
from tests.support.html import parsed

DAY_MS = 86_400_000
METRIC = "headgate_supervisor_retention_left_seconds"


def ms_ago(hours: float) -> int:
    return int((datetime.now(UTC) - timedelta(hours=hours)).timestamp() * 1000)


def time_of(ms: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)


def produce(broker: Broker, topic: str, partition: int, *times_ms: int) -> None:
    for time_ms in times_ms:
        broker.producer.produce(topic, value=b"{}", partition=partition, timestamp=time_ms)
    assert broker.producer.flush(60) == 0


def read_by_the_cast(cast: Cast, broker: Broker, topic: str, bootstrap: str = "") -> Supervisor:
    """Suspended, with four records of partition 0 published and none of partition 1, as last observed."""
    supervisor = submit(cast, broker, bootstrap or broker.bootstrap, topic)
    read_source(supervisor, broker, topic)
    services.suspend(user=cast.users["owner"], supervisor=supervisor)
    observe_waiting()
    return supervisor


def reads_of_records() -> float:
    names = {"request": "first_record_times", "outcome": "ok"}
    return REGISTRY.get_sample_value("headgate_kafka_request_duration_seconds_count", names) or 0


def test_a_suspended_supervisor_says_when_its_unread_records_expire(
    cast: Cast, broker: Broker, clients: dict[str, Client]
) -> None:
    topic = broker.topic(partitions=2, config={"retention.ms": str(DAY_MS)})
    oldest, other = ms_ago(19), ms_ago(2)
    produce(broker, topic, 0, *[ms_ago(20)] * 4, oldest, ms_ago(1))
    produce(broker, topic, 1, other, ms_ago(1))
    read_by_the_cast(cast, broker, topic)
    observe_unread()
    answer = clients["viewer"].get(f"/api/v1/supervisors/{topic}/lag/").json()
    told = answer["unread"]
    assert (told["code"], told["short"]) == ("limited", True)
    assert datetime.fromisoformat(told["expires_at"]) == time_of(oldest + DAY_MS)
    assert 4 * 3600 < told["left_s"] <= 5 * 3600
    by_partition = [datetime.fromisoformat(p["expires_at"]) for p in answer["partitions"]]
    assert by_partition == [time_of(oldest + DAY_MS), time_of(other + DAY_MS)]
    for path in ("", "lag/"):
        [fact] = [
            e
            for e in parsed(browsing_as(cast, "viewer").get(f"/supervisors/{topic}/{path}")).all()
            if "data-unread" in e.attributes
        ]
        assert f"{time_of(oldest + DAY_MS):%Y-%m-%d %H:%M:%S} UTC" in fact.text
    [(labels, left_s)] = take_snapshot()[METRIC]
    assert labels == ("alpha", topic, topic)
    assert 4 * 3600 < left_s <= 5 * 3600
    rule_of(cast, "expiring", datasource=topic)
    evaluate()
    assert Alert.objects.get(subject=topic).state == "firing"
    Rule.objects.update(params={"left_s": 3600})
    evaluate()
    assert Alert.objects.get(subject=topic).state == "ok"


def test_a_share_groups_oldest_unread_record_is_its_first_hole(cast: Cast, broker: Broker) -> None:
    topic = broker.topic(partitions=1, config={"retention.ms": str(DAY_MS)})
    times = [ms_ago(10 - n) for n in range(6)]
    produce(broker, topic, 0, *times)
    spec = {**broker.spec(topic, useEarliestOffset=True), "suspended": True}
    supervisor = services.submit_supervisor(user=cast.users["owner"], document=spec, team_name="alpha")
    source = source_of(supervisor, broker, topic, SHARE_GROUPS.kind, f"group-{topic}")
    settle(source.keys.create(partition=0), (0, 2), (3, 5))
    observe_waiting()
    observe_unread()
    found = countdown_of(supervisor)
    assert found is not None
    assert found.expires_at == time_of(times[2] + DAY_MS)


@pytest.mark.parametrize(
    ("config", "times_ms", "code", "says"),
    [
        ({"retention.ms": "-1"}, [1000], Code.KEPT, "by time or size"),
        ({"cleanup.policy": "compact"}, [1000], Code.KEPT, "by time or size"),
        ({"retention.ms": "-1", "retention.bytes": "1000000"}, [1000], Code.UNKNOWN, "by size only"),
        ({"retention.ms": str(2**63 - 1)}, [1000], Code.KEPT, "beyond the year"),
        ({"retention.ms": str(DAY_MS)}, [1000], Code.UNKNOWN, "newer records in its log segment keep it"),
        (
            {"retention.ms": str(DAY_MS), "message.timestamp.type": "LogAppendTime"},
            [1000],
            Code.LIMITED,
            "Kafka may delete unread records in",
        ),
    ],
)
def test_odd_topics(
    cast: Cast, broker: Broker, config: dict[str, str], times_ms: list[int], code: Code, says: str
) -> None:
    """A record of 1970, by its producer's clock."""
    topic = broker.topic(partitions=2, config=config)
    for time_ms in times_ms:
        broker.producer.produce(topic, key=b"k", value=b"{}", partition=1, timestamp=time_ms)
    assert broker.producer.flush(60) == 0
    supervisor = read_by_the_cast(cast, broker, topic)
    observe_unread()
    found = countdown_of(supervisor)
    assert found is not None
    assert found.code == code
    assert says in found.text


def test_a_record_is_read_once_and_what_is_known_outlasts_a_broker(cast: Cast, broker: Broker) -> None:
    topic = broker.topic(partitions=2, config={"retention.ms": str(DAY_MS)})
    produce(broker, topic, 1, ms_ago(3))
    forwarder = Forwarder(broker.bootstrap)
    supervisor = read_by_the_cast(cast, broker, topic, forwarder.address)
    before = reads_of_records()
    observe_unread()
    assert reads_of_records() == before + 1
    first = countdown_of(supervisor)
    observe_unread()
    assert reads_of_records() == before + 1
    forwarder.close()
    observe_unread()
    found = countdown_of(supervisor)
    assert first is not None
    assert found is not None
    assert found.expires_at == first.expires_at is not None
    assert "Kafka does not say" in UnreadTimes.objects.get(source__topic=topic).problem


@pytest.mark.parametrize("change", ["it keeps up", "it is idle", "it is terminated"])
def test_one_that_has_nothing_to_lose_is_not_asked_about(cast: Cast, broker: Broker, change: str) -> None:
    topic = broker.topic(partitions=2, config={"retention.ms": str(DAY_MS)})
    produce(broker, topic, 1, ms_ago(3))
    supervisor = read_by_the_cast(cast, broker, topic)
    observe_unread()
    assert countdown_of(supervisor) is not None
    now = timezone.now()
    changes: dict[str, dict[str, Any]] = {"it is idle": {"idle_since": now}, "it is terminated": {"terminated_at": now}}
    Supervisor.objects.filter(pk=supervisor.pk).update(**changes.get(change, {}))
    if change == "it keeps up":
        Source.objects.filter(topic=topic).update(complete_until=now)
    observe_unread()
    assert not UnreadTimes.objects.filter(source__topic=topic).exists()
    assert countdown_of(supervisor) is None
