"""When a supervisor is idle, and what wakes it: its iterations ask a real broker; its tasks are played."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions
from django.test import Client
from django.utils import timezone

from controlplane.publishing.models import ProgressKey, SettledRange
from controlplane.sources.models import SourceEvent
from controlplane.supervisors import services
from controlplane.supervisors.lag import observe_waiting
from controlplane.supervisors.models import Supervisor
from controlplane.supervisors.offset_reset import hand_off, reset, reset_offsets
from controlplane.supervisors.run import iterate, run, run_all
from controlplane.tasks.lifecycle import end_task
from controlplane.tasks.models import Goal, Status
from ingestion.specs.source_traits import SHARE_GROUPS, STORED_OFFSETS
from tests.integration.test_supervisor_iterations import DRUID, reads, states, submit, tasks_of
from tests.integration.test_waiting_lag import source_of
from tests.support.broker import Broker
from tests.support.django_cast import Cast, browsing_as, reasons_of, settle
from tests.support.html import parsed
from tests.support.waiting import wait_for

IDLE = {"enabled": True, "inactiveAfterMillis": 60_000}
AT_REST = ("IDLE", "IDLE")
WELL = ("RUNNING", "RUNNING")
WRITTEN = 6


class Sleeper:
    """A supervisor of one partition with six records, whose task reads, and has settled as many as is said."""

    def __init__(self, cast: Cast, broker: Broker, kind: str = "kafka", idle: Any = None, **io_config: Any) -> None:
        self.cast, self.broker = cast, broker
        self.topic = broker.topic(partitions=1)
        broker.produce(self.topic, [b"{}"] * WRITTEN, partition=0)
        io_config["idleConfig"] = IDLE if idle is None else idle
        self.supervisor = submit(cast, broker, broker.bootstrap, self.topic, kind, **io_config)
        iterate()
        [task] = tasks_of(self.supervisor)
        reads(task)
        stored = kind == "kafka"
        kept = STORED_OFFSETS.kind if stored else SHARE_GROUPS.kind
        group = self.supervisor.pk if stored else f"group-{self.topic}"
        self.source = source_of(self.supervisor, broker, self.topic, kept, group)
        self.stored = stored

    def settle(self, end: int, start: int = 0) -> None:
        """Offsets ``[start, end)``, as a publish settles them."""
        key, _ = self.source.keys.get_or_create(partition=0)
        settle(key, (start, end))
        if self.stored:
            ProgressKey.objects.filter(pk=key.pk).update(next_offset=end)

    def looks(self, after: float = 0.0) -> tuple[str, str]:
        """Its state after an iteration, when nothing has come for so many seconds more."""
        self.supervisor.refresh_from_db()
        if self.supervisor.inactive_since is not None:
            self.supervisor.inactive_since -= timedelta(seconds=after)
            self.supervisor.save(update_fields=["inactive_since"])
        iterate()
        return states(self.supervisor)

    def rests(self) -> None:
        """It becomes idle, and its task ends."""
        self.settle(WRITTEN)
        assert self.looks() == WELL
        assert self.looks(after=61) == AT_REST
        [task] = tasks_of(self.supervisor)
        assert task.goal == Goal.FINISH
        end_task(task)
        run(self.supervisor.pk)
        assert (states(self.supervisor), len(tasks_of(self.supervisor))) == (AT_REST, 1)


def at(supervisor: Supervisor, name: str) -> datetime | None:
    supervisor.refresh_from_db()
    found: datetime | None = getattr(supervisor, name)
    return found


@pytest.mark.parametrize("kind", ["kafka", "share_group"])
def test_it_rests_when_nothing_comes_and_the_first_new_record_wakes_it(
    cast: Cast, broker: Broker, clients: dict[str, Client], kind: str
) -> None:
    sleeper = Sleeper(cast, broker, kind)
    supervisor, viewer = sleeper.supervisor, clients["viewer"]
    sleeper.settle(WRITTEN - 1)
    assert sleeper.looks() == WELL
    assert sleeper.looks(after=3600) == WELL, "a record is not settled yet"
    sleeper.settle(WRITTEN, start=WRITTEN - 1)
    assert sleeper.looks(after=30) == WELL
    assert sleeper.looks(after=31) == AT_REST
    [task] = tasks_of(supervisor)
    assert task.goal == Goal.FINISH
    end_task(task)
    run(supervisor.pk)
    assert sleeper.looks() == AT_REST, "and stays so"
    assert [reason.code for reason in reasons_of(supervisor)] == ["idle"]
    asleep = viewer.get(f"/api/v1/supervisors/{supervisor.pk}/").json()
    assert (asleep["state"], asleep["health"]["code"], asleep["health"]["kind"]) == ("IDLE", "idle", "waiting")
    [listed] = viewer.get("/api/v1/supervisors/?state=IDLE").json()["results"]
    assert listed["id"] == supervisor.pk
    assert viewer.get(f"{DRUID}/{supervisor.pk}/health").json() == {"healthy": True}
    status = viewer.get(f"{DRUID}/{supervisor.pk}/status").json()["payload"]
    assert (status["state"], status["activeTasks"], status["publishingTasks"]) == ("IDLE", [], [])
    page = parsed(browsing_as(cast, "viewer").get(f"/supervisors/{supervisor.pk}/"))
    assert page.one("dd", data_state="IDLE").text == "IDLE"
    assert "the first new record starts a task" in page.one("div", data_reasons="").text
    broker.produce(sleeper.topic, [b"{}"] * 2, partition=0)
    assert sleeper.looks() == WELL
    assert [t.goal for t in tasks_of(supervisor)] == [Goal.RUN, Goal.FINISH]
    event = SourceEvent.objects.get(datasource=supervisor.datasource, kind="woken")
    assert (event.alarm, event.source) == (False, sleeper.source)
    assert "2 offsets arrived" in event.detail
    assert sleeper.looks(after=3600) == WELL


@pytest.mark.parametrize("idle", [{}, {"enabled": False, "inactiveAfterMillis": 60_000}])
def test_who_does_not_ask_for_it_is_never_idle(cast: Cast, broker: Broker, idle: dict[str, Any]) -> None:
    sleeper = Sleeper(cast, broker, idle=idle)
    sleeper.settle(WRITTEN)
    sleeper.looks()
    assert sleeper.looks(after=10**6) == WELL
    assert at(sleeper.supervisor, "inactive_since") is None


def test_unless_it_says_how_long_it_waits_for_ten_minutes(cast: Cast, broker: Broker) -> None:
    sleeper = Sleeper(cast, broker, idle={"enabled": True})
    sleeper.settle(WRITTEN)
    sleeper.looks()
    assert sleeper.looks(after=500) == WELL
    assert sleeper.looks(after=101) == AT_REST


def test_a_share_group_at_latest_reads_on(cast: Cast, broker: Broker) -> None:
    """Kafka would forget where it begins on partitions that nothing was read of."""
    sleeper = Sleeper(cast, broker, "share_group", useEarliestOffset=False)
    sleeper.settle(WRITTEN)
    sleeper.looks()
    assert sleeper.looks(after=3600) == WELL


def test_none_that_has_not_read_yet_is_idle(cast: Cast, broker: Broker) -> None:
    """Its first task makes the group, and stores where it begins."""
    sleeper = Sleeper(cast, broker)
    sleeper.settle(WRITTEN)
    Supervisor.objects.filter(pk=sleeper.supervisor.pk).update(steady=False, detailed_state="CREATING_TASKS")
    sleeper.supervisor.refresh_from_db()
    tasks_of(sleeper.supervisor)[0].indexers.update(state="starting")
    sleeper.looks()
    assert sleeper.looks(after=3600) == ("RUNNING", "CREATING_TASKS")


def test_a_transaction_that_is_open_keeps_it_awake(cast: Cast, broker: Broker) -> None:
    sleeper = Sleeper(cast, broker)
    sleeper.rests()
    config = {"transactional.id": sleeper.topic, "transaction.timeout.ms": 600_000, "log_level": 0}
    producer = Producer({"bootstrap.servers": broker.bootstrap, **config})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(sleeper.topic, b"{}", partition=0)
    producer.flush()
    wait_for("it wakes", lambda: sleeper.looks() == WELL, 30)
    assert "1 unread offset" in SourceEvent.objects.get(kind="woken").detail
    assert sleeper.looks(after=3600) == WELL
    producer.abort_transaction()
    sleeper.settle(WRITTEN + 2, start=WRITTEN)  # the record and the marker, as empty

    def aborted() -> bool:
        sleeper.looks()
        return sleeper.supervisor.ends_seen is not None and sleeper.supervisor.ends_seen["offsets"] == {
            "0": WRITTEN + 2
        }

    wait_for("the broker has aborted it", aborted, 30)
    assert sleeper.looks(after=61) == AT_REST


def test_partitions_that_are_added_and_a_topic_made_again_wake_it(cast: Cast, broker: Broker) -> None:
    for what in ("partitions", "topic"):
        sleeper = Sleeper(cast, broker)
        sleeper.rests()
        if what == "partitions":
            broker.admin.create_partitions([NewPartitions(sleeper.topic, 3)])[sleeper.topic].result(30)
        else:
            broker.admin.delete_topics([sleeper.topic])[sleeper.topic].result(30)
            wait_for("it misses the topic", lambda s=sleeper: s.looks() == AT_REST and s.supervisor.lacks_topic, 30)
            broker.make_topic(sleeper.topic, 1)
            broker.produce(sleeper.topic, [b"{}"] * WRITTEN, partition=0)  # it ends where the old one did
        wait_for("it wakes", lambda s=sleeper: s.looks() == WELL, 30)


def test_a_task_that_did_not_publish_what_it_held_wakes_it(cast: Cast, broker: Broker) -> None:
    sleeper = Sleeper(cast, broker)
    sleeper.settle(WRITTEN)
    sleeper.looks()
    assert sleeper.looks(after=61) == AT_REST
    SettledRange.objects.filter(span__isnull=False).delete()
    ProgressKey.objects.filter(source=sleeper.source).update(next_offset=WRITTEN - 2)
    end_task(tasks_of(sleeper.supervisor)[0])
    assert sleeper.looks() == WELL
    assert "2 unread offsets" in SourceEvent.objects.get(kind="woken").detail
    assert len(tasks_of(sleeper.supervisor)) == 2


@pytest.mark.parametrize("offsets", [None, {0: 2}])
def test_a_reset_wakes_it(cast: Cast, broker: Broker, offsets: dict[int, int] | None) -> None:
    sleeper = Sleeper(cast, broker)
    sleeper.rests()
    owner = cast.users["owner"]
    if offsets is None:
        reset(user=owner, supervisor=sleeper.supervisor)
    else:
        reset_offsets(user=owner, supervisor=sleeper.supervisor, offsets=offsets)
    run_all()
    assert (states(sleeper.supervisor), len(tasks_of(sleeper.supervisor))) == (WELL, 2)


def test_what_a_reset_skips_is_not_waited_for(cast: Cast, broker: Broker) -> None:
    sleeper = Sleeper(cast, broker)
    sleeper.settle(1)
    reset_offsets(user=cast.users["owner"], supervisor=sleeper.supervisor, offsets={0: WRITTEN})
    sleeper.looks()
    assert sleeper.looks(after=61) == AT_REST


def test_it_may_be_suspended_resumed_handed_over_scaled_and_terminated(cast: Cast, broker: Broker) -> None:
    sleeper = Sleeper(cast, broker)
    sleeper.rests()
    supervisor, owner = sleeper.supervisor, cast.users["owner"]
    hand_off(user=owner, supervisor=supervisor)
    services.scale(user=owner, supervisor=supervisor, task_count=3)
    run(supervisor.pk)
    assert (states(supervisor), len(tasks_of(supervisor))) == (AT_REST, 1), "there is nothing to hand over"
    services.suspend(user=owner, supervisor=supervisor)
    run(supervisor.pk)
    assert states(supervisor) == ("SUSPENDED", "SUSPENDED")
    services.resume(user=owner, supervisor=supervisor)
    iterate()
    assert (states(supervisor), len(tasks_of(supervisor))) == (("RUNNING", "CREATING_TASKS"), 2)
    [task, _] = tasks_of(supervisor)
    assert task.indexers_wanted == 3
    reads(task)
    run(supervisor.pk)
    assert sleeper.looks(after=61) == AT_REST
    services.terminate(user=owner, supervisor=supervisor)
    end_task(task)
    run(supervisor.pk)
    assert states(supervisor) == ("STOPPING", "TERMINATED")


def test_another_spec_wakes_it(cast: Cast, broker: Broker) -> None:
    sleeper = Sleeper(cast, broker)
    sleeper.rests()
    submit(cast, broker, broker.bootstrap, sleeper.topic, idleConfig=IDLE, taskCount=2)
    iterate()
    assert len(tasks_of(sleeper.supervisor)) == 2
    assert at(sleeper.supervisor, "idle_since") is None


def test_rounds_leave_it_alone_and_its_lag_is_followed(cast: Cast, broker: Broker) -> None:
    sleeper = Sleeper(cast, broker)
    sleeper.rests()
    before = at(sleeper.supervisor, "ran_at")
    run_all()
    assert at(sleeper.supervisor, "ran_at") == before
    observe_waiting()
    sleeper.source.refresh_from_db()
    assert sleeper.source.looked_at is not None and sleeper.source.looked_at > timezone.now() - timedelta(minutes=1)


def test_one_whose_task_failed_goes_on_trying(cast: Cast, broker: Broker, settings: Any) -> None:
    settings.RESTART_LONGEST_DELAY = timedelta(0)
    sleeper = Sleeper(cast, broker)
    sleeper.settle(WRITTEN)
    sleeper.looks()
    end_task(tasks_of(sleeper.supervisor)[0], error="killed for the test")
    assert sleeper.looks(after=61)[0] == "RUNNING"
    wait_for("another one", lambda: run(sleeper.supervisor.pk) and len(tasks_of(sleeper.supervisor)) == 2, 30)
    assert [t.status for t in tasks_of(sleeper.supervisor)] == [Status.PENDING, Status.FAILED]
