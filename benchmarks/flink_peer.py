"""Flink SQL from Kafka to Parquet, run by an interpreter that has PyFlink: prints the seconds of each pass as JSON.

``python benchmarks/flink_peer.py BOOTSTRAP PARALLELISM MODE FOLDER JARS TOPIC…``: one pass for each topic in turn, in
one JVM. MODE: batch or streaming. JARS: with commas between them. Imports nothing of the project.
"""

from __future__ import annotations

import json
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

SOURCE = """CREATE TEMPORARY TABLE source_{number} (
  `time` TIMESTAMP_LTZ(3), n BIGINT, kind STRING, `value` BIGINT, pad STRING
) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{bootstrap}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'properties.max.poll.records' = '20000', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'
)"""
SINK = """CREATE TEMPORARY TABLE sink_{number} (
  `__time` TIMESTAMP_LTZ(3), n BIGINT, kind STRING, `value` BIGINT, pad STRING, `day` STRING
) PARTITIONED BY (`day`) WITH (
  'connector' = 'filesystem', 'path' = 'file://{folder}/{number}', 'format' = 'parquet', 'parquet.compression' = 'ZSTD',
  'parquet.utc-timezone' = 'true'
)"""
INSERT = """INSERT INTO sink_{number}
SELECT `time`, n, kind, `value`, pad, DATE_FORMAT(`time`, 'yyyy-MM-dd') FROM source_{number}"""


def main(bootstrap: str, parallelism: str, mode: str, folder: str, jars: str, *topics: str) -> None:
    tables = environment(parallelism, mode, jars)
    seconds = []
    for number, topic in enumerate(topics):
        names = {"number": number, "topic": topic, "bootstrap": bootstrap, "folder": folder}
        tables.execute_sql(SOURCE.format(**names))
        tables.execute_sql(SINK.format(**names))
        began = time.monotonic()
        tables.execute_sql(INSERT.format(**names)).wait()
        seconds.append(time.monotonic() - began)
    print(json.dumps({"passes_s": seconds}))


def environment(parallelism: str, mode: str, jars: str) -> TableEnvironment:
    """A cluster within this JVM."""
    is_batch = mode == "batch"
    settings = EnvironmentSettings.in_batch_mode() if is_batch else EnvironmentSettings.in_streaming_mode()
    tables = TableEnvironment.create(settings)
    options = {
        "pipeline.jars": ";".join(f"file://{jar}" for jar in jars.split(",")),
        "parallelism.default": parallelism,
        "table.local-time-zone": "UTC",
        "pipeline.object-reuse": "true",
        "restart-strategy.type": "none",
    }
    if not is_batch:
        options["execution.checkpointing.interval"] = "10 s"
    for name, value in options.items():
        tables.get_config().set(name, value)
    return tables


if __name__ == "__main__":
    main(*sys.argv[1:])
