"""librdkafka says the same at every attempt to connect: it is kept as the source's problem, and printed nowhere."""

from __future__ import annotations

import pytest

from controlplane.embedded.waiting import poll_until
from ingestion.sources.reader import Reader
from ingestion.sources.share_group import ShareGroupSource
from ingestion.specs.inputs.io_config import ShareGroupIOConfig

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


def test_a_reader(capfd: pytest.CaptureFixture[str]) -> None:
    reader = Reader("topic", NOWHERE, "read_committed", "group", "client", 0.1)
    poll_until(lambda: reader.read(0.1) is not None or reader.client_problems.text, timeout_s=60)
    reader.consumer.close()
    assert capfd.readouterr().err == ""


def test_a_share_group(capfd: pytest.CaptureFixture[str]) -> None:
    io_config = ShareGroupIOConfig.model_validate(
        {"topic": "topic", "groupId": "group", "consumerProperties": NOWHERE, "inputFormat": {"type": "json"}}
    )
    source = ShareGroupSource(NOWHERE, io_config, "client")
    source.open()
    poll_until(lambda: source.poll(0.1) is not None or source.problem, timeout_s=60)
    source.close()
    assert capfd.readouterr().err == ""
