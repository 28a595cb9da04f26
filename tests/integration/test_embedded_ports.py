"""Two stacks that start together: each has ports of its own, and does not take the other's Kafka for its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.embedded.errors import ServiceFailed
from controlplane.embedded.home import PROJECT
from controlplane.embedded.kafka import Kafka
from controlplane.embedded.ports import PortBook, choose_port
from tests.support.broker import Broker

_OTHER = """
import sys
from pathlib import Path
from controlplane.embedded.ports import PortBook
print(PortBook(Path(sys.argv[1])).assign("kafka", int(sys.argv[2])), flush=True)
sys.stdin.read()
"""


def test_a_port_that_another_stack_has_chosen_is_passed_over_before_anybody_listens(tmp_path: Path) -> None:
    port = choose_port(None)
    command = [sys.executable, "-c", _OTHER, str(tmp_path / "other" / "ports.json"), str(port)]
    (tmp_path / "other").mkdir()
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdin is not None
        assert int(other.stdout.readline()) == port
        assert PortBook(tmp_path / "ports.json").assign("kafka", port) != port
        other.stdin.close()
    assert PortBook(tmp_path / "third.json").assign("kafka", port) == port, "it was held until its stack ended"


def test_another_s_broker_at_its_port_is_not_taken_for_its_own(broker: Broker, tmp_path: Path) -> None:
    kafka = Kafka(tmp_path / "home", port=broker.kafka.port)
    try:
        with pytest.raises(ServiceFailed, match="ended with exit code"):
            kafka.start().wait_ready()
    finally:
        kafka.stop()
