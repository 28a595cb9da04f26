"""What each benchmark is to reach, so that a loss is seen on the day it comes.

Ratios of one run and processor time, where there are any: they say the same on a busy machine. Times and rates are of a
calm one with 2 cores. A benchmark that has no targets fails ``python -m benchmarks all``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Target:
    key: str  # of the benchmark's results
    comparison: Literal["at least", "at most"]
    value: float

    def met_by(self, results: Mapping[str, Any]) -> bool:
        """A figure that is missing does not meet it."""
        figure = results.get(self.key)
        if figure is None:
            return False
        return bool(figure >= self.value if self.comparison == "at least" else figure <= self.value)

    def __str__(self) -> str:
        return f"{self.comparison} {self.value:,.10g}"


def _zero_targets(*keys: str) -> tuple[Target, ...]:
    return tuple(Target(key, "at most", 0) for key in keys)


_EXACTLY_ONCE = _zero_targets("lost", "duplicated")
TARGETS: dict[str, tuple[Target, ...]] = {
    "pages": (
        Target("slowest_p95_ms", "at most", 300),
        Target("streams_cpu_percent", "at most", 20),
        Target("streams_broken", "at most", 0),
    ),
    "timeline": (
        Target("timeline_p95_ms", "at most", 100),
        Target("lists_p95_ms", "at most", 300),
        Target("publish_p99_ms", "at most", 50),
        Target("plan_day_p95_ms", "at most", 50),
    ),
    "publish": (
        Target("empty_p99_ms", "at most", 50),
        Target("settled_p99_ms", "at most", 50),
        Target("empty_web_cpu_ms", "at most", 5),
        Target("settled_web_cpu_ms", "at most", 5),
        Target("empty_postgres_cpu_ms", "at most", 4),
        Target("settled_postgres_cpu_ms", "at most", 5),
        Target("empty_upkeep_cpu_ms", "at most", 2.5),
        Target("settled_upkeep_cpu_ms", "at most", 3.5),
    ),
    "topics": (
        Target("applications", "at most", 1),
        Target("peak_pss_mb", "at most", 2_000),
        *_EXACTLY_ONCE,
    ),
    "scale": (
        *_zero_targets("wrong", "heartbeats_late"),
        Target("heartbeat_web_cpu_ms", "at most", 5),
        Target("heartbeat_postgres_cpu_ms", "at most", 2),
        Target("heartbeat_p99_ms", "at most", 1_000),
    ),
    "index": (
        Target("add_us", "at most", 0.1),
        Target("persist_us", "at most", 0.5),
        Target("write_us", "at most", 0.6),
        Target("decode_us", "at most", 1.8),
        Target("peak_mb", "at most", 350),
    ),
    "decode": (
        Target("json_ratio", "at least", 3),
        Target("json_rollup_ratio", "at least", 3),
        Target("json_flatten_ratio", "at least", 1.8),
        Target("json_transforms_ratio", "at least", 1.2),
        Target("kafka_json_ratio", "at least", 1.2),
        Target("tsv_ratio", "at least", 0.9),
        Target("csv_ratio", "at least", 0.7),
        Target("protobuf_headgate_rows_per_s", "at least", 120_000),
        Target("avro_headgate_rows_per_s", "at least", 110_000),
        Target("thrift_headgate_rows_per_s", "at least", 35_000),
    ),
    "latency": (
        Target("share_p99_s", "at most", 0.5),
        Target("offsets_p99_s", "at most", 3),
        Target("sampler_pasted_max_s", "at most", 3),
        Target("sampler_topic_max_s", "at most", 3),
        *_EXACTLY_ONCE,
    ),
    "memory": (Target("peak_rss_mb", "at most", 400), *_EXACTLY_ONCE),
    "share": (Target("ratio", "at least", 0.6), *_EXACTLY_ONCE),
    "offsets": (Target("ratio_spark", "at least", 1.7), Target("ratio_bare", "at least", 0.7), *_EXACTLY_ONCE),
    "start": (
        Target("first_row_s", "at most", 15),
        Target("first_row_share_s", "at most", 9),
        Target("first_row_spare_s", "at most", 6),
        Target("first_row_spare_share_s", "at most", 4),
        Target("batch_spare_s", "at most", 5),
        Target("replay_spare_s", "at most", 5),
        Target("repair_spare_s", "at most", 5),
        Target("ratio_from_submit", "at least", 1),
        Target("ratio_from_submit_spare", "at least", 2.5),
        *_EXACTLY_ONCE,
    ),
    "backfill": (Target("ratio_live", "at least", 0.85), Target("ratio_backfill", "at least", 0.9), *_EXACTLY_ONCE),
    "connector": (
        Target("ratio_bare", "at least", 0.6),
        Target("ratio_spark_kafka", "at least", 0.5),
        Target("slow_work_ratio_12_readers", "at least", 2.4),
        *_EXACTLY_ONCE,
    ),
    "read": (
        Target("ratio_by_hand", "at least", 0.9),
        Target("ratio_by_hand_interval", "at least", 0.9),
        *_zero_targets("wrong"),
    ),
    "catalog": (Target("warm_load_p95_ms", "at most", 200), Target("publish_p99_ms", "at most", 50)),
    "engines": (Target("slowest_s", "at most", 10), *_zero_targets("wrong")),
    "sql": (
        Target("beyond_1_ms", "at most", 30),
        Target("beyond_100_ms", "at most", 30),
        Target("beyond_10000_ms", "at most", 30),
        *_zero_targets("wrong"),
    ),
    "compaction": (
        Target("ratio_duckdb", "at least", 0.5),
        Target("ratio_spark_sql", "at least", 2),
        Target("ratio_ingestion", "at least", 0.85),
        Target("write_amplification", "at most", 3),
        Target("live_segments_last_5_min_growth", "at most", 0.02),
        *_EXACTLY_ONCE,
        *_zero_targets("wrong"),
    ),
    "batch": (Target("ratio_spark", "at least", 1), *_EXACTLY_ONCE),
    "upgrade": (
        Target("longest_silence_s", "at most", 10),
        *_EXACTLY_ONCE,
        *_zero_targets("wrong", "client_errors"),
    ),
    "soak": (*_EXACTLY_ONCE, *_zero_targets("wrong")),
}
