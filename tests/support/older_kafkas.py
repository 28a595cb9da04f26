"""Downloads the versions of Kafka on which ``test_kafka_versions`` also runs, unless they are there."""

from __future__ import annotations

import tempfile
from pathlib import Path

from controlplane.embedded.kafka_jars import OLDER, kafka_jars


def main() -> None:
    with tempfile.TemporaryDirectory() as logs:
        for version in OLDER:
            kafka_jars(Path(logs) / "ivy.log", version=version)


if __name__ == "__main__":
    main()
