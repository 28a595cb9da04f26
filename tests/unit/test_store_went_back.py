"""An indexer whose metadata store falls back behind what it had answered: it reads from what is stored now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ingestion.client.memory import MemoryControlPlane
from ingestion.specs.messages.protocol import HeartbeatRequest, StartAnswer, StartRequest
from ingestion.task.control import Control
from tests.support.indexer import OneLog, assignment, record, stored, total


class TwoServers:
    """A primary, and a standby that has none of its commits when it takes over."""

    def __init__(self, folder: Path) -> None:
        self.lost, self.standby = (MemoryControlPlane(assignment(folder, kafka=True)) for _ in range(2))
        self.server, self.starts = self.lost, list[StartRequest]()

    def start(self, number: int, asked: StartRequest) -> StartAnswer:
        self.starts.append(asked)
        return self.server.start(number, asked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)


def test_a_quiet_partition_is_read_again_when_a_heartbeat_says_so(run_indexer: Any, tmp_path: Path) -> None:
    """No record comes after the failover. The driver says it in every heartbeat, and the indexer begins again once."""
    control, servers = Control(0, 1), TwoServers(tmp_path)
    answers: list[dict[int, int] | None] = []

    def pass_a_heartbeat_on() -> None:
        if total(servers.lost).polled == 250:
            servers.server = servers.standby
        answer = servers.heartbeat(HeartbeatRequest(indexers=[control.status], slots=1))
        answers.append(answer.start_again)
        lost = (answer.start_again or {}).get(0)
        control.update("finish" if total(servers.standby).polled == 250 else "continue", start_again=lost)

    log = OneLog(map(record, range(250)), control, at_end=pass_a_heartbeat_on)
    run_indexer(log, servers, control=control, kafka=True)
    assert stored(servers.lost, tmp_path) == stored(servers.standby, tmp_path) == list(range(250))
    assert [answer for answer in answers if answer] == [{0: 1}]
    assert len(log.made) == 2
    status = control.status
    assert (status.epoch, status.answered) == (2, len(servers.standby.published))


def test_what_it_holds_is_given_up_and_counted(run_indexer: Any, tmp_path: Path) -> None:
    """What it had read and not published is read again, too: it lies behind what is lost."""
    control, servers = Control(0, 1), TwoServers(tmp_path)

    def lose_the_epoch() -> None:
        if control.status.epoch == 1:
            control.update("continue", start_again=1)
        else:
            control.update("finish")

    log, patient = OneLog(map(record, range(50)), control, at_end=lose_the_epoch), {"intermediateHandoffPeriod": "PT1H"}
    run_indexer(log, servers, control=control, kafka=True, tuningConfig=patient)
    assert stored(servers.lost, tmp_path) == list(range(50))
    assert [asked.released for asked in servers.starts] == [0, 50]


def test_what_was_said_of_an_older_epoch_changes_nothing() -> None:
    """A heartbeat that is answered late: the indexer has begun again meanwhile."""
    control = Control(0, 1)
    control.new_epoch(3, answered=5)
    control.update("continue", start_again=2)
    assert not control.has_lost_publishes
    control.update("continue", start_again=3)
    assert control.has_lost_publishes
    control.new_epoch(4, answered=5)
    assert not control.has_lost_publishes


def test_a_store_of_the_version_before_says_no_count_and_none_is_kept() -> None:
    control = Control(0, 1)
    control.new_epoch(1)
    control.count_publish()
    assert (control.status.publishes, control.status.answered) == (1, None)
