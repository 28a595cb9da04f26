"""The driver of a batch task: reads in one Spark job, writes in a second one, and publishes once.

What was read is kept on the executors' disks in between, by Spark's shuffle, since only then it is known how many rows
each interval has.
Spark does again what fails; files that are written twice have names of their own, and only those are published that the
second job returned. The publish ends the task: without an answer it is sent again, and taken once.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import RDD, SparkContext

from ingestion.batch.bins import target_rows
from ingestion.batch.errors import InputChanged
from ingestion.batch.inputs import Inputs
from ingestion.batch.partitions import PartitionKeys, Sample, plan_partitions
from ingestion.batch.reading import IntervalMs, SplitReport, check_parse_exceptions
from ingestion.batch.shuffle_partitions import ShufflePartitions
from ingestion.batch.split_quarantine import QuarantineLimits, merge_quarantines
from ingestion.batch.splits import Split, plan_splits
from ingestion.client.batch import BatchControlPlane
from ingestion.client.errors import ClientError, PublishRefused, TaskOver
from ingestion.client.retry import until_answered
from ingestion.errors import IngestionError
from ingestion.failpoints import Failpoints
from ingestion.spark.batch_work import SplitSummary, TaskFailure, WriteOrder, read_splits, write_bins
from ingestion.spark.end_report import say_end
from ingestion.spark.restarts import python_error
from ingestion.spark.shuffle import Shuffled, sample_chunks, shuffle_by_keys
from ingestion.specs.counters import Counters
from ingestion.specs.messages.batch_protocol import (
    MAX_COLUMNS,
    MAX_SEGMENTS,
    BatchAssignment,
    BatchPublishRequest,
    FileRecord,
)
from ingestion.specs.messages.protocol import EndRequest, HeartbeatRequest, SegmentFile, UnreadRecord
from ingestion.task.errors import TooManyParseExceptions
from ingestion.task.log import OngoingProblem, logger_for
from ingestion.task.shutdown import Ending

HEARTBEAT_S = 1.0
PUBLISH_TIMEOUT_S = 600.0  # that a publish is sent again without an answer
STOPPED = "Stopped before the publish. Nothing was changed."
MAX_ATTEMPTS = 5  # of a task that reads segments which others replace meanwhile
_MAX_ERROR_LENGTH = 2000
_JOB_GROUP = "batch"
_PYTHON_ERROR = re.compile(r"^(?:[\w.]*\.)?(\w*(?:Error|Exception|Unreachable)): (.*)$", re.MULTILINE)
Item = TypeVar("Item")


class JobFailed(Exception):
    """A Spark job came to nothing; the message says why."""


class SparkTaskFailed(JobFailed):
    """One of its tasks failed as often as Spark tries it."""


class Batcher:
    """Runs a batch task to its end, or until it is told to stop, by the control plane or by a signal.

    ``start_again``: if Spark is not yet as the spec has it, starts it so, once, after a Spark task has failed.
    """

    def __init__(
        self,
        spark: SparkContext,
        client: BatchControlPlane,
        assignment: BatchAssignment,
        url: str,
        token: str,
        ending: Ending,
        start_again: Callable[[SparkContext, BatchAssignment], SparkContext] | None = None,
    ) -> None:
        self.spark = spark
        self._start_again = start_again
        self._client = client
        self._assignment = assignment
        self._url = url
        self._token = token
        self._ending = ending
        self._failpoints = Failpoints(assignment.failpoints)
        self._message = "Listing the input."
        self._phase, self._parts = "", 0
        self._unread: list[UnreadRecord] = []
        self._given_up = Counters()
        self._quarantined: list[FileRecord] = []
        self._cancelled = threading.Event()  # the control plane has no use for it any more
        self._done = threading.Event()
        self._stopped = False
        self._log = logger_for(task=assignment.task_id, datasource=assignment.spec.dataSchema.dataSource)
        self._control_plane_problem = OngoingProblem(self._log, "the control plane does not answer")

    def run(self) -> None:
        """Come to an end, and tell it."""
        work = threading.Thread(target=self._work, name="batch", daemon=True)
        work.start()
        while not self._done.wait(HEARTBEAT_S):
            self._beat()
            if self._ending.is_requested or self._cancelled.is_set():
                self._cancel_jobs()
            if self._ending.overdue or self._cancelled.is_set():
                return

    def _work(self) -> None:
        error = ""
        try:
            self._work_until_published()
        except TaskOver as over:
            self._log.info("the task is over", reason=str(over))
            self._cancelled.set()
        except PublishRefused as refused:
            error = f"The publish was refused, and nothing was changed: {refused}"
        except (IngestionError, JobFailed) as failure:
            error = str(failure)
        except Exception as failure:  # whatever it is, somebody has to be told
            self._log.exception("the driver failed")
            error = f"The driver failed: {type(failure).__name__}. Its log says why."
        if error or self._ending.is_requested or self._stopped:
            self._report_end(error)
        self._done.set()

    def _work_until_published(self) -> None:
        """Plan and publish. If others replaced segments that were read, plan again."""
        for attempt in range(MAX_ATTEMPTS):
            try:
                self._publish(*self._written())
                return
            except PublishRefused as refused:
                inputs = self._assignment.inputs
                if refused.refusal.code != "changed" or not inputs or attempt == MAX_ATTEMPTS - 1:
                    raise
                self._log.info("planned again", reason=str(refused))
            self._assignment = self._client.start_batch()

    def _written(self) -> tuple[list[SegmentFile], Counters]:
        try:
            return self._segments()
        except SparkTaskFailed as failed:
            if self._start_again is None:
                raise
            self._log.warning("Spark starts again, and the task begins again", reason=str(failed))
        self._phase, self._message = "", "Starting Spark again."
        self.spark, self._start_again = self._start_again(self.spark, self._assignment), None
        return self._segments()

    def _cancel_jobs(self) -> None:
        with suppress(Exception):  # py4j wraps what the JVM threw: Spark may be starting again
            self.spark.cancelAllJobs()

    def _segments(self) -> tuple[list[SegmentFile], Counters]:
        spec, plain = self._assignment.spec, self._assignment.model_dump_json()
        slots = self._assignment.slots
        splits = plan_splits(spec, Inputs(self._assignment.reachable), slots, self._assignment.inputs)
        self._begin("Reading", len(splits), "splits")
        room, lanes = (
            QuarantineLimits.of_split(self._assignment.most_quarantined, len(splits)),
            ShufflePartitions.of(slots),
        )
        work = self.spark.parallelize(splits, len(splits)).mapPartitions(read_splits(plain, room, lanes))
        shuffled = Shuffled(work, lanes.count)
        rows, schemas, reports = self._read(shuffled.shares([[lanes.report_partition]]), splits)
        self._quarantined = merge_quarantines((t.quarantine for t in reports), self._assignment.most_quarantined)
        if not rows:
            return [], _counters(reports, 0, len(self._quarantined))
        dealt, count = self._distribute(shuffled, lanes, rows, schemas)
        self._begin("Writing", count, "parts")
        outputs = self._collected(dealt.mapPartitions(write_bins(WriteOrder(plain, self._url, self._token))))
        records = sum(w.records for w in outputs)
        if records != sum(rows.values()):
            raise InputChanged(f"{sum(rows.values())} rows were read and {records} written: the input has changed.")
        files = sorted((f for w in outputs for f in w.files), key=lambda f: (f.interval_start, f.interval_end, f.path))
        _check_size(files)
        return files, _counters(reports, sum(f.rows for f in files), len(self._quarantined))

    def _distribute(
        self, shuffled: Shuffled, lanes: ShufflePartitions, rows: Counter[IntervalMs], schemas: Collection[pa.Schema]
    ) -> tuple[RDD[Any], int]:
        """What each writer gets, a Spark partition each, and how many these are."""
        spec, slots = self._assignment.spec, self._assignment.slots
        if spec.tuningConfig.dividing is None:
            shares = lanes.shares(rows, spec.tuningConfig.rows_per_segment, slots)
            return shuffled.shares(shares), len(shares)
        chunks = shuffled.shares(lanes.shares(rows, target_rows(rows.total(), rows.total(), slots), slots))
        keys = PartitionKeys.of(spec, schemas)
        samples: dict[IntervalMs, Sample] = {}
        if keys.needs_sample:
            self._begin("Sampling", chunks.getNumPartitions(), "parts")
            samples = dict(self._collected(sample_chunks(chunks, keys)))
        division = plan_partitions(spec, keys, rows, samples, slots)
        if division.bins.count > MAX_SEGMENTS:
            raise JobFailed(
                f"partitionsSpec makes {division.bins.count:,} segments, and a task may publish {MAX_SEGMENTS:,}: "
                "choose a longer segmentGranularity, or fewer partitions."
            )
        return shuffle_by_keys(chunks, division), division.bins.count

    def _read(
        self, rdd: RDD[Any], splits: Sequence[Split]
    ) -> tuple[Counter[IntervalMs], dict[pa.Schema, None], list[SplitReport]]:
        """How many rows each interval has, which dimensions chunks have, and what became of the records."""
        summaries: list[SplitSummary] = sorted(self._collected(rdd), key=lambda read_: read_.report.split)
        rows: Counter[IntervalMs] = Counter()
        for read_ in summaries:
            rows.update(read_.rows)
        reports = [read_.report for read_ in summaries]
        unread = self._add_to_report(reports)
        if self._assignment.spec.tuningConfig.logParseExceptions:
            for record in unread:
                self._log.warning("parse exception", place=record.place, error=record.error)
        try:
            check_parse_exceptions(self._assignment.spec, sum(t.parse_exceptions for t in reports), unread)
        except TooManyParseExceptions:
            self._give_up(reports)
            raise
        if [t.split for t in reports] != [s.number for s in splits]:
            raise JobFailed("Not all of the input was read. The log says why.")
        return rows, dict.fromkeys(schema for read_ in summaries for schema in read_.held), reports

    def _add_to_report(self, reports: Sequence[SplitReport]) -> list[UnreadRecord]:
        """For the report, as many as the spec allows. Returns all that is told of."""
        unread = [record for t in reports for record in t.unread]
        self._unread = unread[: self._assignment.spec.tuningConfig.saved_parse_exceptions]
        return unread

    def _give_up(self, reports: Sequence[SplitReport]) -> None:
        """For the report: what was read is not published."""
        self._add_to_report(reports)
        self._given_up = _counters(reports, 0, 0)

    def _collected(self, rdd: RDD[Any]) -> list[Any]:
        """What a job brings. Raises ``JobFailed``."""
        self.spark.setJobGroup(_JOB_GROUP, self._message, interruptOnCancel=True)
        try:
            items = rdd.collect()
        except Exception as error:  # py4j wraps what a job threw; a killed Python process too
            if self._stopped or self._ending.is_requested or self._cancelled.is_set():
                raise JobFailed(STOPPED) from None
            raise SparkTaskFailed(_failure_reason(str(error))) from None
        failed = [i for i in items if isinstance(i, TaskFailure)]
        if failed:
            reports = [i.report for i in items if isinstance(i, SplitSummary | TaskFailure) and i.report is not None]
            self._give_up(sorted(reports, key=lambda report: report.split))
            raise JobFailed(failed[0].error)
        return items

    def _publish(self, files: list[SegmentFile], counters: Counters) -> None:
        self._failpoints.reach("written")
        if self._stopped or self._ending.is_requested:
            raise JobFailed(STOPPED)
        self._phase, self._message = "", f"Publishing {len(files)} segments."
        request = BatchPublishRequest(
            publish_id=uuid.uuid4(),
            epoch=self._assignment.epoch,
            segments=files,
            counters=counters,
            read=[s.id for s in self._assignment.inputs],
            unread=self._unread,
            quarantined=self._quarantined,
        )
        # Without an answer it is sent again; one that was taken has ended the task.
        answer = until_answered(
            lambda: self._client.publish_batch(request), PUBLISH_TIMEOUT_S, self._control_plane_problem.report_failure
        )
        self._failpoints.reach("published")
        self._log.info("published", segments=len(answer.segment_ids), replaced=answer.replaced)

    def _begin(self, phase: str, count: int, noun: str) -> None:
        self._phase, self._parts = f"{phase}: {{done}} of {count} {noun} done.", count
        self._message = self._phase.format(done=0)
        self._log.info("a phase begins", phase=phase, parts=count)

    def _beat(self) -> None:
        parts_done = _count_completed(self.spark, self._parts) if self._phase else 0
        self._message = self._phase.format(done=parts_done) or self._message
        request = HeartbeatRequest(
            indexers=[],
            slots=self._assignment.slots,
            message=self._message,
            parts=self._parts if self._phase else 0,
            parts_done=parts_done,
        )
        try:
            answer = self._client.heartbeat(request)
        except TaskOver as over:
            self._log.info("the task is over", reason=str(over))
            self._cancelled.set()
            return
        except ClientError as error:
            self._control_plane_problem.report_failure(str(error))
            return
        self._control_plane_problem.report_recovery()
        if answer.directive == "stop":
            self._stopped = True
            self._cancel_jobs()

    def _report_end(self, error: str) -> None:
        interrupted = self._ending.is_requested and not self._stopped
        message = "" if interrupted else error[:_MAX_ERROR_LENGTH]
        request = EndRequest(error=message, interrupted=interrupted, unread=self._unread, given_up=self._given_up)
        say_end(self._client, request, self._ending, self._control_plane_problem)


def _counters(reports: Sequence[SplitReport], rows: int, quarantined: int) -> Counters:
    """Of the whole task; ``rows``: in segments."""
    processed = sum(t.processed for t in reports)
    filtered, outside = sum(t.filtered for t in reports), sum(t.outside for t in reports)
    return Counters(
        polled=sum(t.polled for t in reports),
        published=rows,
        rolled_up=processed - rows,
        thrown_away=filtered + outside,
        filtered=filtered,
        outside_window=outside,
        unparseable=sum(t.unparseable for t in reports),
        processed_with_error=sum(t.with_error for t in reports),
        quarantined=quarantined,
        input_bytes=sum(t.input_bytes for t in reports),
    )


def _check_size(files: Sequence[SegmentFile]) -> None:
    columns = sum(len(f.columns) for f in files)
    if len(files) > MAX_SEGMENTS or columns > MAX_COLUMNS:
        raise JobFailed(
            f"It has written {len(files):,} segments with {columns:,} columns in all, and a task may publish "
            f"{MAX_SEGMENTS:,} and {MAX_COLUMNS:,}: choose a longer segmentGranularity, or read less at once."
        )


def _count_completed(spark: SparkContext, parts: int) -> int:
    """How many Spark tasks have ended of the stage that has so many."""
    try:
        tracker = spark.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # py4j wraps what the JVM threw: the context may be ending
        return 0
    return max((stage.numCompletedTasks for stage in stages if stage and stage.numTasks == parts), default=0)


def _failure_reason(error: str) -> str:
    """Why a job failed, by what Spark says: the last error that Python named."""
    named = [f"{kind}: {text}" for kind, text in _PYTHON_ERROR.findall(error) if not kind.startswith(("Py4J", "Spark"))]
    reason = python_error(error) or (named[-1] if named else "a process of it ended")
    return f"A Spark task failed as often as maxRetry allows: {reason[:_MAX_ERROR_LENGTH]}. The log says more."
