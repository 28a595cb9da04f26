"""A spec names its topics by a pattern: the one that tests submit."""

from __future__ import annotations

from typing import Any

from tests.support.broker import Broker

V1 = "/api/v1/supervisors/"


def a_spec(broker: Broker, stem: str, kind: str = "kafka", **io_config: Any) -> dict[str, Any]:
    """Of a supervisor that is due whenever it is asked. Without a topic it reads those that begin with the stem."""
    spec_of = broker.kafka_spec if kind == "kafka" else broker.spec
    spec = spec_of(stem, startDelay="PT0S", period="PT0.000001S")
    del spec["ioConfig"]["topic"]
    pattern = {} if "topic" in io_config else {"topicPattern": f"{stem}-.*"}
    spec["ioConfig"] |= {**pattern, **io_config}
    return spec
