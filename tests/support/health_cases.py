"""What was observed of a supervisor → the kind and code of its health, and what its text has to say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from controlplane.common.health import Code, Health, Kind
from controlplane.lag.quarantined_since import BadSince
from controlplane.lag.trend import LagTrend
from controlplane.quotas.services import OverQuota
from controlplane.supervisors.health_facts import ErrorStreak, HealthFacts, PastAction
from controlplane.supervisors.health_messages import Idleness
from controlplane.supervisors.pattern_health import PatternFacts, health_of_pattern
from controlplane.supervisors.states import Detail
from controlplane.tasks.bounded_reads import BoundedProgress
from controlplane.tasks.slot_needs import TeamSlots
from controlplane.tasks.slot_waits import SlotWait

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=48)
LATELY = timedelta(minutes=5)
CAUGHT_UP = LagTrend(NOW, lag=40, unread=0, before=30, elapsed=LATELY, records_per_s=1000.0, records_per_s_now=1000.0)
QUIET = LagTrend(NOW, lag=0, unread=0, before=0, elapsed=LATELY, records_per_s=0.0, records_per_s_now=0.0)
GROWING = LagTrend(NOW, lag=90_000, unread=80_000, before=60_000, elapsed=LATELY, records_per_s=1000.0)
SHRINKING = replace(GROWING, lag=60_000, before=90_000)
FILLED = replace(CAUGHT_UP, lag=2_100_040, passed=2_100_000, records_per_s_now=900_000.0)
TOO_BAD = replace(CAUGHT_UP, ended=12_000, quarantined=4_000)
STUCK = replace(GROWING, before=90_000, records_per_s=0.0)
CALM = HealthFacts(
    now=NOW, topic="clicks", topic_exists=True, topic_seen_at=NOW, indexer_states=("reading",), lag=CAUGHT_UP
)
SILENT = ErrorStreak(2, "Connection refused", EARLIER, "KafkaProblem", is_of_source=True)
NO_TOPIC = ErrorStreak(1, "There is no topic 'clicks'.", EARLIER, "TopicMissing", is_of_source=True)
FAILED = ErrorStreak(3, "Out of memory.", EARLIER)
WAITS = SlotWait(needed=4, since=EARLIER, size=8, free=1, users=(("clicks", 5),), other_slots=2)
RESTS = Idleness(EARLIER, timedelta(seconds=30))
BY_OPS = PastAction("ops", EARLIER)
LOST = Detail.LOST_CONTACT_WITH_STREAM

TABLE: list[tuple[str, dict[str, Any], Kind, Code, list[str]]] = [
    ("keeps up", {}, Kind.OK, Code.UP_TO_DATE, ["1,000 records per second"]),
    (
        "a quota is used up",
        {"quota": OverQuota("web", "rows_a_day", 5000, EARLIER, NOW), "tasks": 1},
        Kind.NEEDS_ATTENTION,
        Code.QUOTA_USED_UP,
        ["Team web has used up its quota of 5,000 rows a day", "publishes what it holds"],
    ),
    (
        "its team runs as many indexers as it may",
        {"slot_wait": replace(WAITS, team=TeamSlots("web", 4, 4))},
        Kind.WAITING,
        Code.WAITING_FOR_SLOT,
        ["It needs 4 slots; team web uses 4 of 4."],
    ),
    (
        "a third of what comes is quarantined, and nothing waits",
        {"lag": TOO_BAD, "quarantining_since": BadSince(EARLIER)},
        Kind.NEEDS_ATTENTION,
        Code.QUARANTINING,
        [
            "4,000 of the last 12,000 records (33%), within 15 min, could not be read",
            "The share has been 5% or more since 2025-06-01 11:12:00 UTC. Fix the spec",
        ],
    ),
    (
        "a third of what comes has been quarantined for longer than is known",
        {"lag": TOO_BAD, "quarantining_since": BadSince(EARLIER, at_least=True)},
        Kind.NEEDS_ATTENTION,
        Code.QUARANTINING,
        ["The share has been 5% or more for at least 48 min. Fix the spec"],
    ),
    (
        "one bad record in a hundred",
        {"lag": replace(CAUGHT_UP, ended=10_000, quarantined=100)},
        Kind.OK,
        Code.UP_TO_DATE,
        [],
    ),
    (
        "a few bad records of few",
        {"lag": replace(CAUGHT_UP, ended=10, quarantined=9)},
        Kind.OK,
        Code.UP_TO_DATE,
        [],
    ),
    (
        "it reads at the end while its backfill reads two million offsets",
        {"lag": FILLED, "filling": BoundedProgress(total=3_000_000, done=900_000, rate=500.0)},
        Kind.OK,
        Code.UP_TO_DATE,
        [
            "It keeps up with its topic and stores what comes in.",
            "Its backfills fill 2,100,000 offsets, done at about 13:10 UTC.",
        ],
    ),
    (
        "it is behind while its backfill reads two million offsets",
        {
            "lag": replace(FILLED, lag=2_190_000, unread=80_000, before=60_000),
            "filling": BoundedProgress(total=3_000_000, done=900_000),
            "behind_since": EARLIER,
        },
        Kind.NEEDS_ATTENTION,
        Code.BEHIND,
        ["90,000 offsets behind for 48 min, and growing", "stores 1,000 records per second", "fill 2,100,000 offsets."],
    ),
    (
        "its backfill has just read all, and its lag was last seen before",
        {"lag": FILLED},
        Kind.OK,
        Code.UP_TO_DATE,
        ["It keeps up with its topic and stores 900,000 records per second."],
    ),
    (
        "its backfill is suspended",
        {"lag": replace(FILLED, passed_stays=True)},
        Kind.OK,
        Code.UP_TO_DATE,
        ["It has passed 2,100,000 offsets that no running backfill reads: see its page Backfills."],
    ),
    (
        "its backfill is suspended, and nothing comes in",
        {"lag": replace(QUIET, lag=2_100_000, passed=2_100_000, passed_stays=True)},
        Kind.OK,
        Code.UP_TO_DATE,
        ["It keeps up with its topic; no records arrived for a minute. It has passed 2,100,000 offsets"],
    ),
    (
        "all is read, and little of it stored",
        {"lag": replace(CAUGHT_UP, lag=138_475, before=120_000)},
        Kind.WORKING,
        Code.HOLDING,
        ["138,475 offsets are not stored yet", "store them when they hand off"],
    ),
    (
        "what comes in within a minute is held",
        {"lag": replace(CAUGHT_UP, lag=60_000, before=20_000)},
        Kind.OK,
        Code.UP_TO_DATE,
        [],
    ),
    ("nothing comes", {"lag": QUIET}, Kind.WAITING, Code.IDLE, ["'clicks'", "in the last 5 min."]),
    (
        "nothing comes, for as long as anybody has looked",
        {"lag": replace(QUIET, elapsed=timedelta(minutes=5, seconds=1))},
        Kind.WAITING,
        Code.IDLE,
        ["No records arrived in the last 5 min."],
    ),
    (
        "a bounded read is done",
        {"detailed_state": Detail.COMPLETED, "tasks": 0, "bounded": BoundedProgress(100, 100)},
        Kind.OK,
        Code.COMPLETED,
        ["All of its 100 offsets are settled."],
    ),
    (
        "a bounded read goes on",
        {"bounded": BoundedProgress(total=600, done=300, rate=5.0), "lag": None},
        Kind.WORKING,
        Code.BEHIND,
        ["300 of its 600 offsets are settled, 50 %.", "About 1 min left."],
    ),
    (
        "idle, and its task still publishes",
        {"idleness": RESTS, "lag": QUIET},
        Kind.WAITING,
        Code.IDLE,
        ["no records arrived since 2025-06-01 11:12:00 UTC", "every 30 s", "Its task publishes what it holds"],
    ),
    (
        "idle, and nobody has looked at its lag",
        {"idleness": RESTS, "lag": replace(GROWING, at=EARLIER), "tasks": 0},
        Kind.WAITING,
        Code.IDLE,
        ["the first new record starts a task."],
    ),
    ("idle, and Kafka is silent", {"idleness": RESTS, "iterations": SILENT}, Kind.WAITING, Code.KAFKA_UNREACHABLE, []),
    (
        "falls behind",
        {"lag": GROWING, "behind_since": EARLIER, "indexers": 2},
        Kind.NEEDS_ATTENTION,
        Code.BEHIND,
        ["90,000 offsets behind for 48 min", "growing", "its 2 indexers store 1,000 records per second", "Scale it up"],
    ),
    (
        "one indexer falls behind",
        {"lag": replace(GROWING, records_per_s=1.0), "behind_since": EARLIER, "indexers": 1},
        Kind.NEEDS_ATTENTION,
        Code.BEHIND,
        ["growing", "its 1 indexer stores 1 record per second", "Scale it up"],
    ),
    (
        "what came in a burst and is read off now does not grow, though more waits than five minutes ago",
        {"lag": replace(GROWING, read_in_minute=40_000), "behind_since": EARLIER},
        Kind.WORKING,
        Code.BEHIND,
        ["catching up", "done in about 2 min"],
    ),
    ("a burst is no reason to worry", {"lag": GROWING, "behind_since": NOW}, Kind.WORKING, Code.BEHIND, ["growing"]),
    (
        "scales itself",
        {"lag": GROWING, "behind_since": EARLIER, "scales_itself": True},
        Kind.NEEDS_ATTENTION,
        Code.BEHIND,
        ["Its autoscaler may add indexers"],
    ),
    (
        "catches up: 30,000 less in five minutes, 60,000 are left",
        {"lag": SHRINKING, "behind_since": EARLIER},
        Kind.WORKING,
        Code.BEHIND,
        ["catching up", "done in about 10 min"],
    ),
    (
        "it has just begun, on a topic that was full",
        {"lag": LagTrend(NOW, lag=90_000, unread=90_000)},
        Kind.WORKING,
        Code.BEHIND,
        ["90,000 offsets behind, and its indexers have just started to read."],
    ),
    (
        "it stores since some seconds",
        {"lag": replace(SHRINKING, elapsed=timedelta(seconds=10), records_per_s=500.0)},
        Kind.WORKING,
        Code.BEHIND,
        ["and catching up: done in about 20 s."],
    ),
    (
        "it begins again, holds nearly all that there is, and has stored nothing yet",
        {"lag": replace(STUCK, lag=2_500, before=2_500, unread=20, read_in_minute=2_480, taken_per_s=8.0)},
        Kind.WORKING,
        Code.HOLDING,
        ["2,500 offsets are not stored yet. Its indexers hold nearly all of them"],
    ),
    (
        "it begins again, holds some, and reads on",
        {"lag": replace(STUCK, unread=60_000, read_in_minute=30_000, taken_per_s=100.0)},
        Kind.WORKING,
        Code.BEHIND,
        ["90,000 offsets behind, and catching up: done in about 2 min."],
    ),
    (
        "less waits than before, and nobody has read",
        {"lag": replace(STUCK, lag=2_500, unread=2_500, read_in_minute=87_500), "behind_since": NOW, "tasks": 1},
        Kind.WORKING,
        Code.BEHIND,
        ["2,500 offsets behind for 0 s, and nothing is stored."],
    ),
    (
        "behind for longer than is known",
        {"lag": GROWING},
        Kind.NEEDS_ATTENTION,
        Code.BEHIND,
        ["90,000 offsets behind, and"],
    ),
    (
        "stuck",
        {"lag": STUCK, "behind_since": EARLIER},
        Kind.NEEDS_ATTENTION,
        Code.BEHIND,
        ["nothing is stored", "Check its tasks"],
    ),
    ("what indexers hold is no lag", {"lag": replace(GROWING, unread=0)}, Kind.OK, Code.UP_TO_DATE, []),
    ("ten seconds' worth is no lag", {"lag": replace(GROWING, unread=10_000)}, Kind.OK, Code.UP_TO_DATE, []),
    (
        "nobody looks",
        {"lag": replace(GROWING, at=EARLIER)},
        Kind.WAITING,
        Code.NOT_OBSERVED,
        ["2025-06-01 11:12:00 UTC", "beat"],
    ),
    (
        "it has no rounds any more, and is to start a task",
        {"ran_at": EARLIER, "tasks": 0, "idleness": RESTS},
        Kind.WAITING,
        Code.NOT_OBSERVED,
        [
            "Its last run was at 2025-06-01 11:12:00 UTC",
            "No task starts meanwhile. Check that the processes `worker` and `beat` are running.",
        ],
    ),
    ("it had a round just now", {"ran_at": NOW - LATELY / 6}, Kind.OK, Code.UP_TO_DATE, []),
    ("not looked at yet", {"lag": None, "topic_seen_at": None}, Kind.WORKING, Code.STARTING, []),
    ("a first task", {"tasks": 0, "lag": None}, Kind.WORKING, Code.STARTING, ["first task starts within seconds"]),
    (
        "a start delay",
        {"tasks": 0, "lag": None, "next_start_at": NOW + timedelta(minutes=1)},
        Kind.WORKING,
        Code.STARTING,
        ["12:01:00"],
    ),
    (
        "asks Kafka",
        {"tasks": 0, "detailed_state": Detail.CONNECTING_TO_STREAM},
        Kind.WORKING,
        Code.STARTING,
        ["Headgate asks Kafka"],
    ),
    (
        "the topic is not there yet",
        {"tasks": 0, "iterations": NO_TOPIC, "topic_seen_at": None, "lag": None},
        Kind.WAITING,
        Code.WAITING_FOR_TOPIC,
        ["no topic 'clicks'", "when it exists"],
    ),
    (
        "its pattern matches too many topics",
        {"topics": health_of_pattern(PatternFacts("a.*", Detail.TOO_MANY_TOPICS, 50, 51))},
        Kind.NEEDS_ATTENTION,
        Code.TOO_MANY_TOPICS,
        ["51 topics match 'a.*'", "Narrow the pattern"],
    ),
    (
        "something is wrong with topics of its pattern",
        {"topics": health_of_pattern(PatternFacts("a.*", Detail.UNHEALTHY_TASKS, 50, 3, 3, 1))},
        Kind.WORKING,
        Code.TOPICS_UNWELL,
        ["1 of 3 topics"],
    ),
    (
        "the topic does not come",
        {"tasks": 0, "iterations": NO_TOPIC, "topic_seen_at": None, "lag": None, "detailed_state": LOST},
        Kind.FAILED,
        Code.TOPIC_MISSING,
        ["Check its name"],
    ),
    (
        "the topic is gone",
        {"iterations": NO_TOPIC, "topic_seen_at": EARLIER, "stored": 1_204_331},
        Kind.FAILED,
        Code.TOPIC_MISSING,
        ["missing since 2025-06-01 11:12:00 UTC", "1,204,331 rows"],
    ),
    (
        "its task saw first that the topic is gone",
        {"topic_exists": False, "topic_seen_at": EARLIER},
        Kind.FAILED,
        Code.TOPIC_MISSING,
        ["missing since"],
    ),
    (
        "Kafka was silent once",
        {"iterations": SILENT, "contacted_at": EARLIER},
        Kind.WAITING,
        Code.KAFKA_UNREACHABLE,
        ["Connection refused. It last answered at 2025-06-01 11:12:00 UTC.", "Running tasks continue"],
    ),
    (
        "Kafka is silent",
        {"iterations": SILENT, "detailed_state": LOST, "tasks": 0},
        Kind.FAILED,
        Code.KAFKA_UNREACHABLE,
        ["Kafka has not answered yet: Connection refused. No task starts before it does.", "Check bootstrap.servers"],
    ),
    (
        "Kafka is silent for the next version alone",
        {"iterations": SILENT, "detailed_state": LOST, "versions": (1, 2)},
        Kind.FAILED,
        Code.KAFKA_UNREACHABLE,
        ["Check bootstrap.servers", "Its task uses version 1 of the spec until a task with version 2 runs."],
    ),
    (
        "a topic that was made again is seen before the next iteration",
        {"iterations": NO_TOPIC, "contacted_at": EARLIER, "topic_seen_at": NOW},
        Kind.WORKING,
        Code.RECOVERING,
        ["exists again"],
    ),
    ("a task sees it first", {"kafka_error": "timed out"}, Kind.WAITING, Code.KAFKA_UNREACHABLE, ["timed out"]),
    (
        "its own work fails",
        {
            "iterations": ErrorStreak(4, "Its secrets can't be opened.", EARLIER, "SecretsLost"),
            "detailed_state": Detail.UNHEALTHY_SUPERVISOR,
        },
        Kind.FAILED,
        Code.UNHEALTHY,
        ["4 times in a row", "secrets can't be opened"],
    ),
    (
        "well again, soon",
        {"detailed_state": LOST, "runs_to_recover": 2},
        Kind.WORKING,
        Code.RECOVERING,
        ["Its state turns healthy after 2 more successful runs."],
    ),
    (
        "no room",
        {"slot_wait": WAITS},
        Kind.WAITING,
        Code.WAITING_FOR_SLOT,
        ["4 slots; 1 of 8 is free (clicks has 5, others have 2)"],
    ),
    (
        "a failure",
        {"tasks": 0, "failures": replace(FAILED, times=1), "next_start_at": NOW + timedelta(seconds=4)},
        Kind.WORKING,
        Code.FAILING,
        ["Its last task failed at", "12:00:04", "Out of memory"],
    ),
    ("another task is at work", {"failures": replace(FAILED, times=1)}, Kind.OK, Code.UP_TO_DATE, []),
    (
        "fails over and over",
        {"failures": FAILED, "detailed_state": Detail.UNHEALTHY_TASKS},
        Kind.FAILED,
        Code.FAILING,
        ["Its last 3 tasks have all failed since 2025-06-01 11:12:00 UTC", "Out of memory"],
    ),
    (
        "reads again",
        {"detailed_state": Detail.UNHEALTHY_TASKS},
        Kind.WORKING,
        Code.RECOVERING,
        [],
    ),
    (
        "Kafka refuses one indexer of two",
        {"indexer_states": ("reading", "refused"), "refusal": "lacks the right READ on topic 'flights'."},
        Kind.FAILED,
        Code.KAFKA_REFUSES,
        ["1 of 2 indexers: lacks the right READ on topic 'flights'."],
    ),
    (
        "its login may not describe the topic",
        {
            "tasks": 0,
            "iterations": ErrorStreak(3, "This login lacks DESCRIBE.", EARLIER, "KafkaRefuses", True),
            "detailed_state": LOST,
        },
        Kind.FAILED,
        Code.KAFKA_REFUSES,
        ["This login lacks DESCRIBE. Headgate retries every ioConfig.period."],
    ),
    (
        "its login may no longer describe the topic",
        {"kafka_error": "This login lacks DESCRIBE.", "kafka_refuses": True},
        Kind.FAILED,
        Code.KAFKA_REFUSES,
        ["This login lacks DESCRIBE."],
    ),
    (
        "others are in its consumer group",
        {"foreign_members": ("console at 10.0.0.7",)},
        Kind.NEEDS_ATTENTION,
        Code.STRANGERS_IN_GROUP,
        ["Another application is in the consumer group: console at 10.0.0.7."],
    ),
    (
        "storage refuses",
        {"indexer_states": ("paused", "paused"), "indexer_message": "No space left on device"},
        Kind.FAILED,
        Code.STORAGE_REFUSES,
        ["No space left on device"],
    ),
    ("one indexer of two pauses", {"indexer_states": ("paused", "reading")}, Kind.OK, Code.UP_TO_DATE, []),
    (
        "indexers fail",
        {"indexer_states": ("restarting",), "indexer_message": "killed by signal 9"},
        Kind.FAILED,
        Code.FAILING,
        ["killed by signal 9"],
    ),
    ("a new spec", {"versions": (5, 6)}, Kind.WORKING, Code.CHANGING_SPEC, ["version 5", "version 6"]),
    (
        "the filter drops all",
        {"reason": Health.of(Code.ALL_FILTER_DROPS, "All 9 records were dropped.", "Check the filter.")},
        Kind.NEEDS_ATTENTION,
        Code.NOTHING_STORED,
        ["All 9 records were dropped. Check the filter."],
    ),
    ("some are dropped", {"reason": Health.of(Code.FILTER_DROPS, "1 of 9")}, Kind.OK, Code.UP_TO_DATE, []),
    (
        "an empty topic",
        {"reason": Health.of(Code.TOPIC_EMPTY, "It is empty.")},
        Kind.WAITING,
        Code.IDLE,
        ["It is empty."],
    ),
    ("stopping", {"suspended": BY_OPS}, Kind.WORKING, Code.STOPPING, ["by ops"]),
    (
        "suspended",
        {"suspended": BY_OPS, "tasks": 0, "lag": GROWING},
        Kind.WAITING,
        Code.SUSPENDED,
        ["by ops since 2025-06-01 11:12:00 UTC", "lag is 90,000 offsets", "Resume it"],
    ),
    (
        "a suspended bounded read",
        {"suspended": BY_OPS, "tasks": 0, "bounded": BoundedProgress(total=600, done=300), "lag": None},
        Kind.WAITING,
        Code.SUSPENDED,
        ["by ops since", "Of its offsets, 300 are not settled.", "Resume it"],
    ),
    ("by nobody who is known", {"suspended": PastAction(), "tasks": 0}, Kind.WAITING, Code.SUSPENDED, ["Suspended."]),
    (
        "a terminated backfill",
        {"terminated": BY_OPS, "tasks": 0, "bounded": BoundedProgress(total=600, done=300), "fills": "clicks"},
        Kind.WAITING,
        Code.TERMINATED,
        ["Of its offsets, 300 are not settled.", "Fill them again on the page Backfills of clicks."],
    ),
    (
        "a terminated backfill that had read all",
        {"terminated": BY_OPS, "tasks": 0, "bounded": BoundedProgress(total=600, done=600), "fills": "clicks"},
        Kind.WAITING,
        Code.TERMINATED,
        ["All of its offsets are settled."],
    ),
    (
        "a terminated backfill that was suspended before",
        {
            "terminated": BY_OPS,
            "suspended": BY_OPS,
            "tasks": 0,
            "bounded": BoundedProgress(600, 300),
            "fills": "clicks",
        },
        Kind.WAITING,
        Code.TERMINATED,
        ["Terminated by ops since", "Of its offsets, 300 are not settled.", "page Backfills of clicks."],
    ),
    (
        "a terminated bounded read that was suspended before, and its task ends",
        {"terminated": BY_OPS, "suspended": BY_OPS, "tasks": 1, "bounded": BoundedProgress(total=600, done=300)},
        Kind.WAITING,
        Code.TERMINATED,
        ["Its task publishes what it holds, and ends.", "300 are not settled.", "Submit its spec again"],
    ),
    (
        "a terminated bounded read that had read all",
        {"terminated": BY_OPS, "tasks": 0, "bounded": BoundedProgress(total=600, done=600)},
        Kind.WAITING,
        Code.TERMINATED,
        ["All of its offsets are settled."],
    ),
    ("terminated", {"terminated": BY_OPS, "tasks": 0}, Kind.WAITING, Code.TERMINATED, ["Terminated by ops since"]),
]
