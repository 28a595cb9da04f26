"""Why is there nothing? One row for each thing a user may have to be told."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.common.health import Code, Health, codes_of
from controlplane.publishing.selectors.totals import Totals
from controlplane.tasks.diagnosis import Facts, options_without_effect, why_nothing
from ingestion.specs.tasks import batch
from ingestion.specs.tasks.ingestion_spec import parse_task_spec

SPEC: dict[str, Any] = {
    "type": "index_kafka_share_group",
    "dataSchema": {"dataSource": "d", "timestampSpec": {"column": "t"}},
    "ioConfig": {
        "topic": "clicks",
        "groupId": "g",
        "consumerProperties": {"bootstrap.servers": "k:9092"},
        "inputFormat": {"type": "json"},
    },
}


def spec(**io_config: Any) -> dict[str, Any]:
    return parse_task_spec({**SPEC, "ioConfig": {**SPEC["ioConfig"], **io_config}}).canonical()


def of_offsets(**io_config: Any) -> dict[str, Any]:
    known = {name: SPEC["ioConfig"][name] for name in ("topic", "inputFormat")}
    io_config = {"consumerProperties": SPEC["ioConfig"]["consumerProperties"], **io_config}
    return parse_task_spec({**SPEC, "type": "index_kafka", "ioConfig": {**known, **io_config}}).canonical()


def seen(ends: list[int], starts: list[int] | None = None, **more: Any) -> dict[str, Any]:
    """An observation in the observer's form."""
    return {
        "topic_exists": True,
        "partitions": len(ends),
        "end_offsets": {str(p): end for p, end in enumerate(ends)},
        "log_start_offsets": {str(p): start for p, start in enumerate(starts or [0] * len(ends))},
        "settled": 0,
        "lag": sum(ends) - sum(starts or []),
        "error": "",
        "observed_at": "2025-06-01T00:00:00+00:00",
        **more,
    }


POLLING = {"bootstrap.servers": "k:9092", "max.poll.records": 5}
OF_SUPERVISORS = {"taskDuration": "PT2H", "startDelay": "PT1S", "period": "PT1M"}
NULLS = {"type": "json", "keepNullColumns": True}
NULLS_INSIDE = {"type": "kafka", "valueFormat": NULLS}
DIRTY = {"bootstrap.servers": "k:9092", "isolation.level": "read_uncommitted"}
TIMES = {"bootstrap.servers": "k:9092", "session.timeout.ms": 30_000, "heartbeat.interval.ms": 3_000}
TIMES_NAMED = [f"ioConfig.consumerProperties[{name!r}]" for name in ("heartbeat.interval.ms", "session.timeout.ms")]
READING = ("reading", "reading")
NOTHING = Totals()
NO_ROOM = Health.of(Code.WAITING_FOR_SLOT, "It needs 2 slots; 1 of 4 is free.")


@pytest.mark.parametrize(
    ("codes", "facts"),
    [
        (["starting"], {"status": "PENDING"}),
        (["waiting_for_slot"], {"status": "PENDING", "slot_wait": NO_ROOM}),
        (["starting"], {"status": "RUNNING"}),
        (["starting"], {"status": "RUNNING", "indexer_states": ["starting", "waiting_for_slot"]}),
        (["waiting_for_slot"], {"status": "RUNNING", "indexer_states": ["waiting_for_slot"] * 2, "slots": 1}),
        (["storage_refuses"], {"status": "RUNNING", "indexer_states": ["paused"], "observation": seen([5])}),
        (["kafka_refuses"], {"status": "RUNNING", "refusal": "no right", "totals": Totals(polled=5, published=5)}),
        (
            ["strangers_in_group"],
            {"observation": seen([5], strangers=["a at b"]), "totals": Totals(polled=5, published=5)},
        ),
        (["kafka_refuses"], {"observation": {"error": "no right", "refused": True}, "indexer_states": READING}),
        (["not_observed"], {"indexer_states": READING}),
        (["topic_missing"], {"observation": {"topic_exists": False, "error": ""}, "indexer_states": READING}),
        (["topic_empty"], {"observation": seen([0, 0]), "indexer_states": READING}),
        (["topic_empty"], {"observation": seen([]), "indexer_states": READING}),
        (["topic_expired"], {"observation": seen([7, 9], [7, 9]), "indexer_states": READING}),
        (["awaiting_delivery"], {"observation": seen([7, 9], [7, 0]), "indexer_states": READING}),
        (["kafka_unreachable"], {"observation": {"error": "timed out"}, "indexer_states": READING}),
        # What was seen before the error is no longer certain, so the error is told.
        (["kafka_unreachable"], {"observation": seen([5], error="timed out"), "indexer_states": READING}),
        (["share_groups_off"], {"observation": seen([5], share_groups_supported=False), "indexer_states": READING}),
        (["starts_at_latest"], {"spec": spec(useEarliestOffset=False), "observation": seen([5], lag=0)}),
        # Something was written since: then it is on its way.
        (
            ["awaiting_delivery"],
            {"spec": spec(useEarliestOffset=False), "observation": seen([5], lag=2), "indexer_states": READING},
        ),
        (["caught_up"], {"observation": seen([5], settled=5, lag=0), "indexer_states": READING}),
        (["awaiting_delivery"], {"observation": seen([9], settled=5, lag=4), "indexer_states": READING}),
        (["awaiting_records"], {"spec": of_offsets(), "observation": seen([9]), "indexer_states": READING}),
        (["awaiting_handoff"], {"spec": of_offsets(), "observation": seen([9]), "indexer_states": READING, "held": 7}),
        (["caught_up"], {"spec": of_offsets(), "observation": seen([9], passed=9), "indexer_states": READING}),
        (["awaiting_records"], {"spec": of_offsets(), "observation": seen([9], passed=4), "indexer_states": READING}),
        # Records came, none is published: how they ended tells why.
        (["all_filter_drops"], {"totals": Totals(polled=9, thrown_away=9, filtered=9)}),
        (["all_outside_window"], {"totals": Totals(polled=9, thrown_away=9, outside_window=9)}),
        (["filter_drops", "outside_window"], {"totals": Totals(polled=9, thrown_away=9, filtered=5, outside_window=4)}),
        (["outside_window", "filter_drops"], {"totals": Totals(polled=9, thrown_away=9, filtered=4, outside_window=5)}),
        (["all_unparseable"], {"totals": Totals(polled=9, unparseable=9, quarantined=9)}),
        (["all_duplicates"], {"totals": Totals(polled=9, duplicates=9)}),
        (["all_released"], {"totals": Totals(polled=9, released=9)}),
        (["unparseable", "released"], {"totals": Totals(polled=9, unparseable=6, released=3)}),
        # Published rows need no reason, whatever else is the matter.
        ([], {"totals": Totals(polled=9, published=1, unparseable=8)}),
        ([], {"status": "PENDING", "totals": Totals(polled=1, published=1)}),
        # Ended tasks.
        (["failed"], {"status": "FAILED", "error": "lost"}),
        (["failed", "topic_missing"], {"status": "FAILED", "error": "e", "observation": {"topic_exists": False}}),
        (["failed", "all_unparseable"], {"status": "FAILED", "error": "e", "totals": Totals(polled=1, unparseable=1)}),
        (["topic_empty"], {"status": "SUCCESS", "observation": seen([0])}),
        (["caught_up"], {"status": "SUCCESS", "observation": seen([5], settled=5, lag=0)}),
        ([], {"status": "SUCCESS", "observation": seen([5], lag=5)}),
    ],
)
def test_reasons(codes: list[str], facts: dict[str, Any]) -> None:
    given = {"status": "RUNNING", "spec": spec(), "totals": NOTHING, **facts}
    found = why_nothing(Facts(**given))
    assert [reason.code for reason in found] == codes
    assert set(codes) <= set(codes_of("task"))
    assert all(reason.action for reason in found if reason.calls), "what needs a person says what to do"


def test_texts_hold_the_numbers_and_names() -> None:
    def text(**facts: Any) -> str:
        [reason] = why_nothing(Facts(**{"status": "RUNNING", "spec": spec(), "totals": NOTHING, **facts}))
        return reason.text

    assert "'clicks'" in text(observation=seen([0]))
    assert "timed out" in text(observation={"error": "timed out"})
    assert text(totals=Totals(polled=1234, thrown_away=1234, filtered=1234)).startswith("All 1,234 records")
    assert text(status="FAILED", error="lost").startswith("lost. ")
    assert "7 records" in text(spec=of_offsets(), observation=seen([9]), indexer_states=READING, held=7)
    after_skip = text(spec=of_offsets(), observation=seen([9], passed=9), indexer_states=READING)
    assert after_skip.endswith("It has passed 9 offsets. Only backfills read these.")
    assert text(spec=of_offsets(), observation=seen([9], passed=4), indexer_states=READING).startswith("5 offsets wait")
    of_aborted = text(observation=seen([5], settled=5, lag=0))
    assert "The offsets were read, or hold no record (transaction markers, aborted and" in of_aborted
    partly = why_nothing(Facts(status="RUNNING", spec=spec(), totals=Totals(polled=9, unparseable=6, released=3)))
    assert [reason.text.split(" were")[0] for reason in partly] == ["6 of 9 records", "3 of 9 records"]


@pytest.mark.parametrize(
    ("paths", "document", "supervised"),
    [
        ([], spec(), True),
        ([], spec(idleConfig={"enabled": False}), False),
        ([], spec(idleConfig={"enabled": False}), True),
        ([], spec(idleConfig={"enabled": True}), True),
        (["ioConfig.idleConfig"], spec(idleConfig={"enabled": True}, useEarliestOffset=False), True),
        ([], spec(idleConfig={"inactiveAfterMillis": 5000}, useEarliestOffset=False), True),
        ([], of_offsets(idleConfig={"enabled": True}, useEarliestOffset=False), True),
        (["ioConfig.stopTaskCount"], of_offsets(stopTaskCount=1), True),
        (["context"], {**spec(), "context": {"priority": 1}}, False),
        ([], spec(consumerProperties=POLLING), False),
        (["ioConfig.consumerProperties['max.poll.records']"], of_offsets(consumerProperties=POLLING), False),
        ([], of_offsets(**OF_SUPERVISORS), True),
        ([f"ioConfig.{name}" for name in OF_SUPERVISORS], of_offsets(**OF_SUPERVISORS), False),
        ([], of_offsets(taskDuration="PT60M", completionTimeout="PT1M"), False),  # the first is the default
        (["ioConfig.inputFormat.keepNullColumns"], spec(inputFormat=NULLS), False),
        (["ioConfig.inputFormat.valueFormat.keepNullColumns"], spec(inputFormat=NULLS_INSIDE), False),
        ([], of_offsets(consumerProperties=DIRTY), False),
        ([], of_offsets(consumerProperties=TIMES, assignment="consumer_group"), False),
        (TIMES_NAMED, of_offsets(consumerProperties=TIMES), False),
        (TIMES_NAMED, spec(consumerProperties=TIMES), False),
        (["ioConfig.consumerProperties['group.id']"], spec(consumerProperties={**POLLING, "group.id": "g"}), False),
    ],
)
def test_options_without_effect(paths: list[str], document: dict[str, Any], supervised: bool) -> None:
    named = options_without_effect(document, supervised=supervised)
    assert [text.partition(":")[0] for text in named] == paths


def test_what_bounds_the_topics_of_a_pattern_has_an_effect_in_each() -> None:
    assert options_without_effect(of_offsets(stopTaskCount=1), supervised=True, of_pattern=True) == []


def test_tuning_options_that_nothing_reads_are_named() -> None:
    unread = {
        "maxTotalRows": 10,
        "maxRowsInMemory": 10,
        "intermediatePersistPeriod": "PT1M",
        "maxPendingPersists": 1,
        "intermediateHandoffPeriod": "PT1M",
        "resetOffsetAutomatically": True,
    }
    spec = {"spec": {"tuningConfig": {**unread, "maxRowsPerSegment": 10, "maxParseExceptions": 0}}}
    named = [text.split(":")[0] for text in options_without_effect(spec, supervised=False)]
    assert named == [f"tuningConfig.{name}" for name in unread]


def test_options_that_parquet_does_not_have_are_named() -> None:
    index = {"bitmap": {"type": "roaring"}, "dimensionCompression": "lzf", "metricCompression": "zstd"}
    tuning = {"indexSpec": index, "indexSpecForIntermediatePersists": index}
    spec: dict[str, Any] = {"spec": {"tuningConfig": tuning}}
    assert options_without_effect(spec, supervised=False) == [
        "tuningConfig.indexSpec.dimensionCompression: Parquet has no LZF, LZ4 is used",
        "tuningConfig.indexSpec.bitmap: Parquet has no bitmap indexes",
        "tuningConfig.indexSpecForIntermediatePersists: nothing is persisted between batches",
    ]
    spec["spec"]["ioConfig"] = {"type": "kafka"}
    assert [text.partition(":")[0] for text in options_without_effect(spec, supervised=True)] == [
        f"tuningConfig.{name}.{option}"
        for name in ("indexSpec", "indexSpecForIntermediatePersists")
        for option in ("dimensionCompression", "bitmap")
    ]


def test_options_of_the_data_schema_without_effect_are_named() -> None:
    dimensions = ["a", {"name": "b", "createBitmapIndex": False}, {"name": "c", "createBitmapIndex": True}]
    schema = {"dimensionsSpec": {"dimensions": dimensions}, "granularitySpec": {"intervals": ["2025/2026"]}}
    named = [t.split(":")[0] for t in options_without_effect({"spec": {"dataSchema": schema}}, supervised=False)]
    assert named == [
        "dataSchema.granularitySpec.intervals",
        "dataSchema.dimensionsSpec.dimensions[b].createBitmapIndex",
    ]


def test_a_type_that_casts_nothing_is_named_of_every_kind_of_task() -> None:
    casts = {"a": "LONG", "b": "INTEGER", "c": "COMPLEX<json>", "d": None, "e": "ARRAY<FLOAT>"}
    dimensions = [{"type": "auto", "name": name, "castToType": kind} for name, kind in casts.items()]
    spec = {"spec": {"dataSchema": {"dimensionsSpec": {"dimensions": dimensions}}}}
    named = [f"dataSchema.dimensionsSpec.dimensions[{n}].castToType" for n in "bc"]
    for options in (options_without_effect(spec, supervised=True), batch.options_without_effect(spec)):
        assert [text.split(":")[0] for text in options] == named
