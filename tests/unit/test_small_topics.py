"""Topics that share an application: which specs may ask for it, and which topics are small, by table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.lag.trend import LagTrend
from controlplane.supervisors.small_topics import is_small
from ingestion.specs.errors import SpecError
from ingestion.specs.tasks.ingestion_spec import parse_supervisor_spec
from ingestion.specs.tasks.stored_specs import for_ranges, for_topic

NOW = datetime(2025, 6, 1, tzinfo=UTC)
SCALER = {"enableTaskAutoScaler": True, "taskCountMin": 1, "taskCountMax": 2}


def a_spec(kind: str = "kafka", **io_config: Any) -> dict[str, Any]:
    group = {} if kind == "kafka" else {"groupId": "g"}
    return {
        "type": "kafka" if kind == "kafka" else "index_kafka_share_group",
        "dataSchema": {"dataSource": "d", "timestampSpec": {"column": "time"}},
        "ioConfig": {
            "topicPattern": "small-.*",
            "consumerProperties": {"bootstrap.servers": "kafka:9092"},
            "inputFormat": {"type": "json"},
            **group,
            **io_config,
        },
    }


@pytest.mark.parametrize("kind", ["kafka", "share"])
@pytest.mark.parametrize("rate", [0.5, 1, 1_000])
def test_a_spec_says_how_small(kind: str, rate: float) -> None:
    spec = parse_supervisor_spec(a_spec(kind, smallTopicRate=rate))
    assert spec.spec.ioConfig.smallTopicRate == rate
    of_topic = parse_supervisor_spec(for_topic(spec.canonical(), "small-1")).spec.ioConfig
    assert (of_topic.topic, of_topic.smallTopicRate) == ("small-1", rate)


@pytest.mark.parametrize(
    ("io_config", "said"),
    [
        ({"smallTopicRate": 0}, "more than 0"),
        ({"smallTopicRate": 1_001}, "1000.0 or less"),
        ({"smallTopicRate": "many"}, "number"),
        ({"smallTopicRate": True}, "number"),
        ({"smallTopicRate": 10, "taskCount": 2}, "taskCount of 1"),
        ({"smallTopicRate": 10, "replicas": 2}, "replicas of 1"),
        ({"smallTopicRate": 10, "autoScalerConfig": SCALER}, "autoScalerConfig"),
    ],
    ids=str,
)
def test_what_can_not_be_is_refused(io_config: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse_supervisor_spec(a_spec(**io_config))


def test_a_backfill_of_such_a_topic_may_have_more_indexers() -> None:
    """It has an application of its own."""
    stored = parse_supervisor_spec(a_spec(smallTopicRate=10)).canonical()
    bounds = {"startSequenceNumbers": {"0": 0, "1": 0}, "endSequenceNumbers": {"0": 9, "1": 9}}
    bounded = parse_supervisor_spec(for_ranges(for_topic(stored, "small-1"), bounds, 2))
    assert bounded.spec.ioConfig.taskCount == 2


@pytest.mark.parametrize(
    ("trend", "small"),
    [
        (None, True),  # nothing is known yet
        (LagTrend(NOW, 0, 0), True),
        (LagTrend(NOW, 0, 0, taken_per_s=10), True),
        (LagTrend(NOW, 0, 0, taken_per_s=10.1), False),
        (LagTrend(NOW, 600, 600, taken_per_s=1), True),
        (LagTrend(NOW, 601, 601, taken_per_s=1), False),
        (LagTrend(NOW, 9_000, 0, taken_per_s=1), True),  # an indexer holds them
        (LagTrend(NOW, 0, 0, records_per_s_now=600, taken_per_s=1), True),  # a publish of what was gathered
    ],
)
def test_which_topics_are_small(trend: LagTrend | None, small: bool) -> None:
    assert is_small(trend, 10) is small
