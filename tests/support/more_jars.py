"""Downloads what the deep lanes need besides, unless it is there: older versions of Kafka, and a YARN cluster."""

from __future__ import annotations

import tempfile
from pathlib import Path

from controlplane.embedded.kafka_jars import OLDER, kafka_jars
from tests.support import yarn_cluster


def main() -> None:
    with tempfile.TemporaryDirectory() as logs:
        for version in OLDER:
            kafka_jars(Path(logs) / "ivy.log", version=version)
        yarn_cluster.fetch(Path(logs) / "ivy.log")


if __name__ == "__main__":
    main()
