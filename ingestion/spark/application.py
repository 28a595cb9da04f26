"""The driver's part: one Spark job per indexer, heartbeats for all, directives to each.

A lost worker takes no neighbour with it, since every indexer is a job of its own; a failed one starts again with
back-off and a new epoch. Indexers come and go while the application runs. Jobs are of RDDs: to start Spark SQL for a
``mapInArrow`` would be half of an application's start.
"""

from __future__ import annotations

import os
import re
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from pyspark import SparkContext

from ingestion.client.errors import ClientError, TaskOver
from ingestion.client.http import HttpControlPlane
from ingestion.sources.base import SourceProblem
from ingestion.sources.topic import configure_group
from ingestion.spark.board import Board
from ingestion.spark.end_report import say_end
from ingestion.spark.restarts import Restarts, SilentStarts, has_slot, job_group, python_error
from ingestion.spark.sources import IndexerLimit
from ingestion.spark.worker import IndexerEnd, WorkerConfig, indexer_runner
from ingestion.specs.counters import Counters
from ingestion.specs.inputs.io_config import ShareGroupIOConfig
from ingestion.specs.limits import MAX_UNREAD
from ingestion.specs.messages.protocol import (
    Assignment,
    Directive,
    EndRequest,
    HeartbeatAnswer,
    HeartbeatRequest,
    IndexerStatus,
    UnreadRecord,
)
from ingestion.task.control import stricter
from ingestion.task.log import OngoingProblem, logger_for
from ingestion.task.shutdown import Ending

HEARTBEAT_S = 1.0
SLOWEST_HEARTBEAT_S = 5.0
ANSWER_SHARE = 10  # of the time between two heartbeats, the control plane answers for a tenth at most
STATUS_TIMEOUT_S = 10.0
STARTING_S = 5.0  # a job that finds no slot in this time waits for one; before, Spark is about to give it one
MAX_ERROR_LENGTH = 1000
STABLE_AFTER_S = 60.0  # an indexer that ran this long begins its back-off anew


def heartbeat_pause(answered_in_s: float) -> float:
    """Seconds from one heartbeat to the next. Of more tasks than the control plane has time for, each asks less."""
    return min(SLOWEST_HEARTBEAT_S, max(HEARTBEAT_S, ANSWER_SHARE * answered_in_s))


@dataclass
class Slot:
    """One indexer number: its thread and what it is to do."""

    number: int
    directive: Directive = "continue"
    restarts: int = 0
    failures: int = 0  # in a row, for one reason
    thread: threading.Thread | None = None
    running: bool = False
    started_s: float = 0.0  # its job, by the monotonic clock
    error: str = ""
    ended: str = ""  # why its job did, the last time
    done: bool = False  # it has read its part of a bounded read
    changed: threading.Event = field(default_factory=threading.Event)


class Application:
    """Runs until told to end, by the control plane or, through ``ending``, by a signal.

    ``starting``: Spark, which is waited for when there is nothing else to do.
    """

    def __init__(
        self,
        starting: Future[SparkContext],
        client: HttpControlPlane,
        assignment: Assignment,
        url: str,
        token: str,
        ending: Ending,
    ) -> None:
        self._starting = starting
        self._client = client
        self._assignment = assignment
        self._url = url
        self._token = token
        self._ending = ending
        self._slots: dict[int, Slot] = {}
        self._places = IndexerLimit(assignment)
        self._message = ""
        self._answered_in_s = 0.0  # the last heartbeat
        self._failure = ""  # for good: the task ends with it once all indexers have ended
        self._directive_for_others: Directive = "finish"  # what the other indexers are told then
        self._given_up, self._unread = Counters(), list[UnreadRecord]()  # what is unpublished then
        self._log = logger_for(task=assignment.task_id, datasource=assignment.spec.dataSchema.dataSource)
        self._control_plane_problem = OngoingProblem(self._log, "the control plane does not answer")

    @property
    def _spark(self) -> SparkContext:
        return self._starting.result()

    @property
    def _slot_count(self) -> int:
        """How many Spark tasks can run side by side."""
        return self._spark.defaultParallelism

    @cached_property
    def _board(self) -> Board:
        return Board(self._spark.getConf().get("spark.driver.host", "127.0.0.1") or "127.0.0.1")

    def run(self) -> None:
        """Start the indexers, then beat once a second until all have ended."""
        try:
            self._run()
        finally:
            self._places.close()

    def _run(self) -> None:
        indexers = self._assignment.indexers
        directive: Directive = self._ending.directive
        if not self._configure_group():
            return
        while True:
            started = time.monotonic()
            self._limit_indexers(self._places.fitting(indexers), directive)
            try:
                answer = self._beat()
            except TaskOver as over:
                self._log.info("the task is over", reason=str(over))
                self._limit_indexers(0, "stop")
                self._join(30.0)
                return
            if answer is not None:
                indexers, directive = answer.indexers, answer.directive
            directive = stricter(directive, self._ending.directive)
            if self._failure and directive != "stop":
                directive = self._directive_for_others
            if self._all_read or (directive != "continue" and not self._alive()) or self._ending.overdue:
                self._report_end(self._failure)
                return
            self._wait(started, directive)

    def _wait(self, started: float, directive: Directive) -> None:
        """Until the next heartbeat. Who ends, or is told to by a signal, waits for no busy control plane."""
        while True:
            calm = directive == "continue" and not self._ending.is_requested
            left = started + (heartbeat_pause(self._answered_in_s) if calm else HEARTBEAT_S) - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, HEARTBEAT_S))

    @property
    def _all_read(self) -> bool:
        """Whether every indexer of a bounded read has read its part."""
        return bool(self._slots) and all(slot.done for slot in self._slots.values()) and not self._alive()

    def _configure_group(self) -> bool:
        """Before a share group's first poll, or it would begin at latest. False when told to end meanwhile."""
        io_config = self._assignment.spec.ioConfig
        if not isinstance(io_config, ShareGroupIOConfig) or self._assignment.bounded:
            return True
        trouble = OngoingProblem(self._log, "can't configure the share group")
        while True:
            try:
                assignment = self._assignment
                configure_group(assignment.consumer_properties, io_config, assignment.address_policy)
                self._message = ""
                return True
            except SourceProblem as problem:
                self._message = str(problem)
                trouble.report_failure(self._message)
            try:
                answer = self._beat()
            except TaskOver:
                return False
            if self._ending.is_requested or (answer is not None and answer.directive != "continue"):
                self._report_end("")
                return False
            time.sleep(2.0)

    def _limit_indexers(self, count: int, directive: Directive) -> None:
        """Have ``wanted`` indexers, the lowest numbers; the others finish."""
        for number in range(count if directive == "continue" else 0):
            slot = self._slots.get(number)
            if slot is None or (slot.directive != "continue" and not self._is_alive(slot)):
                self._start(number)
        for slot in self._slots.values():
            if directive != "continue":
                self._send_directive(slot, directive)
            elif slot.number >= count:
                self._send_directive(slot, "finish")

    def _start(self, number: int) -> None:
        slot = Slot(number)
        self._slots[number] = slot
        self._board.forget(number)
        self._board.set_directive(number, "continue")
        slot.thread = threading.Thread(target=self._indexer, args=(slot,), name=f"indexer-{number}", daemon=True)
        slot.thread.start()

    def _send_directive(self, slot: Slot, directive: Directive) -> None:
        slot.directive = directive
        slot.changed.set()
        self._board.set_directive(slot.number, directive)
        if self._waits_for_slot(slot):
            self._spark.cancelJobGroup(job_group(slot.number))  # nobody is there to hear of it, and nothing is held

    def _indexer(self, slot: Slot) -> None:
        """One indexer's thread: its Spark job, again after a failure, until one reason has made it fail too often."""
        restarts, silent = Restarts(self._assignment.most_failures), SilentStarts()
        while slot.directive == "continue":
            began = slot.started_s = time.monotonic()
            before = self._published(slot)
            slot.running = True
            try:
                ended = self._job(slot)
            except Exception as error:  # py4j wraps what a job threw
                ended = IndexerEnd.of_crash(_first_line(error))
            self._record_end(slot, ended)
            if ended.is_failure and ended.permanent:
                self._directive_for_others, self._failure = ended.directive_for_others, slot.error
            elif silent.count(self._has_status_since(slot, began)):
                self._failure = slot.error = silent.failure(ended.reason)[:MAX_ERROR_LENGTH]
            if slot.directive != "continue" or ended.permanent or self._failure:
                return
            if self._assignment.bounded and ended == IndexerEnd():
                slot.done = True
                return
            restarts.failed(ended.reason, self._published(slot) > before, time.monotonic() - began > STABLE_AFTER_S)
            slot.failures = restarts.in_a_row
            if restarts.are_over:
                self._failure = f"Indexer {slot.number} failed {restarts.in_a_row} times in a row: {ended.reason}"[
                    :MAX_ERROR_LENGTH
                ]
                return
            slot.restarts += 1
            slot.changed.wait(restarts.wait_s)

    def _record_end(self, slot: Slot, ended: IndexerEnd) -> None:
        slot.running = False
        slot.ended = (ended.reason if ended.may_pass else f"{ended.kind}: {ended.reason}")[:MAX_ERROR_LENGTH]
        if ended.is_failure:
            slot.error = ended.reason[:MAX_ERROR_LENGTH]
        self._given_up += ended.given_up
        self._unread += ended.unread
        self._log.info("an indexer's job ended", indexer=slot.number, how=ended.kind, reason=ended.reason)

    def _published(self, slot: Slot) -> tuple[int, int]:
        """Epoch and publishes, which grow with each publish, as far as the indexer has told."""
        last_status = self._board.status(slot.number)
        return (
            (last_status[1].epoch, last_status[1].publishes)
            if last_status is not None and last_status[1].publishes
            else (0, 0)
        )

    def _job(self, slot: Slot) -> IndexerEnd:
        """Run the indexer to its end. Raises what py4j makes of what the job threw."""
        self._spark.setJobGroup(job_group(slot.number), f"indexer {slot.number}")
        orders = self._worker_config(slot)
        [ended] = self._spark.parallelize([slot.number], 1).mapPartitions(indexer_runner(orders)).collect()
        return ended

    def _worker_config(self, slot: Slot) -> WorkerConfig:
        return WorkerConfig(
            number=slot.number,
            assignment=self._assignment.model_dump_json(),
            url=self._url,
            token=self._token,
            board=self._board.address,
            authkey=self._board.authkey,
            is_remote=not str(self._spark.master).startswith("local"),
            niceness=os.getpriority(os.PRIO_PROCESS, 0),
        )

    def _has_status_since(self, slot: Slot, began: float) -> bool:
        last_status = self._board.status(slot.number)
        return last_status is not None and last_status[0] < time.monotonic() - began

    def _beat(self) -> HeartbeatAnswer | None:
        """None when the control plane did not answer."""
        request = HeartbeatRequest(indexers=self._statuses(), slots=self._slot_count, message=self._message)
        asked_at = time.monotonic()
        try:
            answer = self._client.heartbeat(request)
        except TaskOver:
            raise
        except ClientError as error:
            self._board.note_store(False)
            self._control_plane_problem.report_failure(str(error))
            return None
        self._answered_in_s = time.monotonic() - asked_at
        self._control_plane_problem.report_recovery()
        self._board.note_store(True, answer.start_again)
        return answer

    def _statuses(self) -> list[IndexerStatus]:
        return [self._status(slot) for slot in self._slots.values()]

    def _status(self, slot: Slot) -> IndexerStatus:
        last_status = self._board.status(slot.number)
        changes: dict[str, object] = {
            "restarts": slot.restarts,
            "restarted_after": slot.ended,
            "failures": slot.failures,
        }
        if last_status is None:
            return IndexerStatus(
                number=slot.number, epoch=0, state=self._state_without_status(slot), message=slot.error
            ).model_copy(update=changes)
        age, status = last_status
        if not (slot.running or slot.done) and slot.directive == "continue":
            changes |= {"state": "restarting", "message": slot.error, "in_flight": 0}
        elif age > STATUS_TIMEOUT_S and self._waits_for_slot(slot):
            changes |= {"state": "waiting_for_slot", "message": slot.error, "in_flight": 0}
        elif age > STATUS_TIMEOUT_S and slot.running:
            changes |= {"state": "silent", "message": f"no heartbeat for {age:.0f} s"}
        elif not self._is_alive(slot):
            changes |= {"state": "stopped", "in_flight": 0}
        return status.model_copy(update=changes)

    def _state_without_status(self, slot: Slot) -> Literal["restarting", "waiting_for_slot", "starting"]:
        """The state of an indexer that has not told one yet."""
        if slot.failures and not slot.running:
            return "restarting"
        return "waiting_for_slot" if self._waits_for_slot(slot) else "starting"

    def _waits_for_slot(self, slot: Slot) -> bool:
        """What has spoken has a slot, whatever Spark says: its status may be as old as its heartbeat, 10 s."""
        patient = time.monotonic() - slot.started_s < STARTING_S
        if not slot.running or patient or self._has_status_since(slot, slot.started_s):
            return False
        return not has_slot(self._spark, slot.number)

    def _is_alive(self, slot: Slot) -> bool:
        return slot.thread is not None and slot.thread.is_alive()

    def _alive(self) -> bool:
        return any(self._is_alive(s) for s in self._slots.values())

    def _join(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for slot in self._slots.values():
            if slot.thread is not None:
                slot.thread.join(max(0.0, end - time.monotonic()))

    def _report_end(self, error: str) -> None:
        most = min(MAX_UNREAD, self._assignment.spec.tuningConfig.saved_parse_exceptions_limit)
        request = EndRequest(
            indexers=self._statuses(),
            error=error,
            interrupted=self._ending.is_requested,
            unread=self._unread[:most],
            given_up=self._given_up,
        )
        say_end(self._client, request, self._ending, self._control_plane_problem)


_ERROR_LINE = re.compile(r"[\w.]*(Error|Exception|\.[A-Z]\w+): ")  # the line of a traceback that names it


def _first_line(error: BaseException) -> str:
    if message := python_error(str(error)):
        return message[:MAX_ERROR_LENGTH]
    lines = [
        line.strip().removeprefix("Caused by: ").removeprefix(": ") for line in str(error).splitlines() if line.strip()
    ]
    error_lines = [line for line in lines if _ERROR_LINE.match(line) or "exited" in line]
    return (error_lines[-1] if error_lines else lines[0] if lines else type(error).__name__)[:1000]
