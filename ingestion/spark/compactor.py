"""The driver of compaction: asks for jobs once a second and when one has ended; each is a Spark task of its own.

A job that fails takes no other with it, and is told to the control plane, which decides when to try again. The task
itself has its segments replaced: of a driver that dies at that time nothing is needed.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkContext

from ingestion.batch.rewrite_interval import rewrite_interval
from ingestion.client.compaction import CompactionControlPlane
from ingestion.client.errors import ClientError, PublishRefused, TaskOver
from ingestion.compaction.merge_job import Work, run
from ingestion.compaction.merging import Merged, merge
from ingestion.errors import IngestionError
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import DeepStorage
from ingestion.spark.restarts import python_error
from ingestion.specs.messages.compaction import CompactionJob, DepartureRequest, FailedRequest, WorkAnswer, WorkRequest
from ingestion.specs.tasks.batch import BatchSpec
from ingestion.task.log import OngoingProblem, configure, logger_for
from ingestion.task.scratch import scratch_folder
from ingestion.task.shutdown import Ending

HEARTBEAT_S = 1.0
UNANSWERED_LIMIT_S = 600.0  # without an answer for so long it is over
PROGRESS_CHECK_S = 10.0  # between two looks at what Spark does with its jobs
STALLED_S = 600.0  # with jobs of which Spark has run none for so long, too: another one may get cores
_MAX_ERROR_LENGTH = 4000


@dataclass(frozen=True)
class JobOrder:
    """All that a Spark task needs; it travels in the task's closure."""

    job: str  # JSON of CompactionJob
    url: str
    application: str
    token: str


@dataclass(frozen=True)
class JobOutcome:
    """Empty when the job is done, or was somebody else's by then; else why it failed."""

    error: str = ""
    permanent: bool = False


class Compactor:
    """Runs until it is told to finish, or by a signal."""

    def __init__(
        self,
        spark: SparkContext,
        client: CompactionControlPlane,
        url: str,
        name: str,
        token: str,
        ending: Ending,
    ) -> None:
        self._spark = spark
        self._client = client
        self._url = url
        self._name = name
        self._token = token
        self._ending = ending
        self._running: dict[str, tuple[int, threading.Thread]] = {}
        self._ended = threading.Event()  # a job has, and there is room for the next
        self._log = logger_for(task=name)
        self._control_plane_problem = OngoingProblem(self._log, "the control plane does not answer")
        self._answered_at = self._worked_at = self._next_check_at = time.monotonic()

    def run(self) -> None:
        """Take up jobs until there is nothing more to do; those that run are waited for."""
        while True:
            began = time.monotonic()
            self._ended.clear()
            self._running = {j: attempt for j, attempt in self._running.items() if attempt[1].is_alive()}
            try:
                answer = self._request_work()
            except TaskOver as over:
                self._log.info("the application is over", reason=str(over))
                return
            if answer is not None:
                self._handle_answer(answer)
            if self._is_stalled():
                self._report_end(f"Spark has started none of its jobs for {STALLED_S:.0f} s.")
                return
            finish = self._ending.is_requested or (answer is not None and answer.directive != "continue")
            if self._ending.overdue or (finish and not self._running):
                self._report_end()
                return
            self._ended.wait(max(0.0, HEARTBEAT_S - (time.monotonic() - began)))

    def _is_stalled(self) -> bool:
        now = time.monotonic()
        if not self._running:
            self._worked_at = now
        elif now >= self._next_check_at:
            self._next_check_at = now + PROGRESS_CHECK_S
            self._worked_at = now if self._has_running_task() else self._worked_at
        return now - self._worked_at > STALLED_S

    def _has_running_task(self) -> bool:
        """Whether a task of one of its jobs runs."""
        tracker = self._spark.statusTracker()
        jobs = [tracker.getJobInfo(number) for job in self._running for number in tracker.getJobIdsForGroup(job)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return any(stage.numActiveTasks for stage in stages if stage is not None)

    def _request_work(self) -> WorkAnswer | None:
        """None without an answer. Raises ``TaskOver``, also after too long a silence."""
        free = 0 if self._ending.is_requested else self._spark.defaultParallelism - len(self._running)
        running = {job: attempt for job, (attempt, _) in self._running.items()}
        try:
            answer = self._client.work(WorkRequest(running=running, free=max(0, free)))
        except TaskOver:
            raise
        except ClientError as error:
            self._control_plane_problem.report_failure(str(error))
            if time.monotonic() - self._answered_at > UNANSWERED_LIMIT_S:
                raise TaskOver(f"the control plane has not answered for {UNANSWERED_LIMIT_S:.0f} s: {error}") from None
            return None
        self._control_plane_problem.report_recovery()
        self._answered_at = time.monotonic()
        return answer

    def _handle_answer(self, answer: WorkAnswer) -> None:
        for job_id in answer.dropped:
            self._spark.cancelJobGroup(job_id)
        for job in answer.jobs:
            thread = threading.Thread(target=self._work, args=(job,), name=job.job_id, daemon=True)
            self._running[job.job_id] = (job.attempt, thread)
            thread.start()

    def _work(self, job: CompactionJob) -> None:
        try:
            self._run_to_end(job)
        finally:
            self._ended.set()

    def _run_to_end(self, job: CompactionJob) -> None:
        began = time.monotonic()
        self._log.info("a job begins", job=job.job_id, attempt=job.attempt, segments=len(job.segments))
        outcome = self._spark_job(job)
        self._log.info("a job ended", job=job.job_id, seconds=round(time.monotonic() - began, 1), error=outcome.error)
        if not outcome.error:
            return
        failure = FailedRequest(
            attempt=job.attempt, error=outcome.error[:_MAX_ERROR_LENGTH], permanent=outcome.permanent
        )
        try:
            self._client.failed(job.job_id, failure)
        except ClientError as error:  # the job is then found missing among those that run
            self._log.warning("a failure could not be reported", job=job.job_id, reason=str(error))

    def _spark_job(self, job: CompactionJob) -> JobOutcome:
        order = JobOrder(job.model_dump_json(), self._url, self._name, self._token)
        self._spark.setJobGroup(job.job_id, job.job_id)
        try:
            [outcome] = self._spark.parallelize([0], 1).mapPartitions(job_runner(order)).collect()
        except Exception as error:  # py4j wraps what a job threw; a killed Python process too
            return JobOutcome(python_error(str(error)) or f"The merging process ended: {str(error)[:500]}")
        return outcome

    def _report_end(self, error: str = "") -> None:
        while not self._ending.is_time_up:
            try:
                self._client.end(DepartureRequest(error=error))
                return
            except TaskOver:
                return
            except ClientError as problem:
                self._control_plane_problem.report_failure(str(problem))
                if time.monotonic() - self._answered_at > UNANSWERED_LIMIT_S:
                    return
                time.sleep(HEARTBEAT_S)


def _rewrite_with(spec: BatchSpec) -> Work:
    """Instead of a merge: rows are dealt out as a batch task deals them out, in one process."""

    def rewrite(job: CompactionJob, storage: DeepStorage, scratch: Path, ids: ColumnIds) -> Merged:
        files = rewrite_interval(spec, job.segments, job.version, storage, scratch, ids)
        return Merged(files, {s.id: s.rows for s in job.segments}, {})

    return rewrite


def job_runner(order: JobOrder) -> Callable[[Iterable[int]], Iterable[JobOutcome]]:
    """The function for ``mapPartitions``: yields how the job ended."""

    def merged(_: Iterable[int]) -> Iterator[JobOutcome]:
        yield _run_job(order)

    return merged


def _run_job(order: JobOrder) -> JobOutcome:
    configure(host=socket.gethostname())
    job = CompactionJob.model_validate_json(order.job)
    client = CompactionControlPlane(order.url, order.application, order.token)
    try:
        with scratch_folder() as scratch:
            run(job, client, scratch, merge if job.anew is None else _rewrite_with(job.anew))
    except (PublishRefused, TaskOver) as over:
        logger_for(job=job.job_id).info("another application has the job, or was faster", reason=str(over))
    except IngestionError as error:
        return JobOutcome(str(error), error.permanent)
    finally:
        client.close()
    return JobOutcome()
