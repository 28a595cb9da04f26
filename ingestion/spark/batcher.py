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
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import RDD, SparkContext

from ingestion.batch.bins import wanted_rows
from ingestion.batch.errors import InputChanged
from ingestion.batch.inputs import Inputs
from ingestion.batch.kept import Room, of_all
from ingestion.batch.partitions import Keys, Sample, division_of
from ingestion.batch.reading import Place, Told, check_parse_exceptions
from ingestion.batch.shuffle_partitions import ShufflePartitions
from ingestion.batch.splits import Split, splits_of
from ingestion.client.batch import BatchControlPlane
from ingestion.client.errors import ClientError, PublishRefused, TaskOver
from ingestion.client.patience import until_answered
from ingestion.errors import IngestionError
from ingestion.failpoints import Failpoints
from ingestion.spark.batch_work import Failed, Order, Read, read, written
from ingestion.spark.last_word import say_end
from ingestion.spark.restarts import python_said
from ingestion.spark.shuffle import Shuffled, samples_of, shuffle_by_keys
from ingestion.specs.counters import Counters
from ingestion.specs.messages.batch_protocol import (
    MOST_COLUMNS,
    MOST_SEGMENTS,
    BatchAssignment,
    BatchPublishRequest,
    FileRecord,
)
from ingestion.specs.messages.protocol import EndRequest, HeartbeatRequest, SegmentFile, UnreadRecord
from ingestion.task.ending import Ending
from ingestion.task.errors import TooManyParseExceptions
from ingestion.task.log import Trouble, logger_for

BEAT_S = 1.0
LONGEST_S = 600.0  # that a publish is sent again without an answer
STOPPED = "Stopped before it had published: nothing was changed."
MOST_PLANS = 5  # of a task that reads segments which others replace meanwhile
_MOST_SAID = 2000
_GROUP = "batch"
_LOST = re.compile(r"^(?:[\w.]*\.)?(\w*(?:Error|Exception|Unreachable)): (.*)$", re.MULTILINE)
Item = TypeVar("Item")


class JobFailed(Exception):
    """A Spark job came to nothing; the message says why."""


class Batcher:
    """Runs a batch task to its end, or until it is told to stop, by the control plane or by a signal."""

    def __init__(
        self,
        spark: SparkContext,
        client: BatchControlPlane,
        assignment: BatchAssignment,
        url: str,
        token: str,
        ending: Ending,
    ) -> None:
        self._spark = spark
        self._client = client
        self._assignment = assignment
        self._url = url
        self._token = token
        self._ending = ending
        self._failpoints = Failpoints(assignment.failpoints)
        self._message = "Looking for what there is to read."
        self._phase, self._parts = "", 0
        self._unread: list[UnreadRecord] = []
        self._given_up = Counters()
        self._quarantined: list[FileRecord] = []
        self._over = threading.Event()  # the control plane has no use for it any more
        self._done = threading.Event()
        self._stopped = False
        self._log = logger_for(task=assignment.task_id, datasource=assignment.spec.dataSchema.dataSource)
        self._silence = Trouble(self._log, "the control plane does not answer")

    def run(self) -> None:
        """Come to an end, and tell it."""
        work = threading.Thread(target=self._work, name="batch", daemon=True)
        work.start()
        while not self._done.wait(BEAT_S):
            self._beat()
            if self._ending.asked or self._over.is_set():
                self._spark.cancelAllJobs()
            if self._ending.overdue or self._over.is_set():
                return

    def _work(self) -> None:
        error = ""
        try:
            self._work_until_published()
        except TaskOver as over:
            self._log.info("the task is over", reason=str(over))
            self._over.set()
        except PublishRefused as refused:
            error = f"The publish was refused, nothing was changed: {refused}"
        except (IngestionError, JobFailed) as failure:
            error = str(failure)
        except Exception as failure:  # whatever it is, somebody has to be told
            self._log.exception("the driver failed")
            error = f"The driver failed: {type(failure).__name__}. Its log says why."
        if error or self._ending.asked or self._stopped:
            self._say_end(error)
        self._done.set()

    def _work_until_published(self) -> None:
        """Once; and of segments that were read and are no longer in use, which others have replaced, anew."""
        for attempt in range(MOST_PLANS):
            try:
                self._publish(*self._segments())
                return
            except PublishRefused as refused:
                inputs = self._assignment.inputs
                if refused.refusal.code != "changed" or not inputs or attempt == MOST_PLANS - 1:
                    raise
                self._log.info("planned again", reason=str(refused))
            self._assignment = self._client.start_batch()

    def _segments(self) -> tuple[list[SegmentFile], Counters]:
        spec, plain = self._assignment.spec, self._assignment.model_dump_json()
        slots = self._assignment.slots
        splits = splits_of(spec, Inputs(self._assignment.reachable), slots, self._assignment.inputs)
        self._begin("Reading", len(splits), "splits")
        room, lanes = Room.of_split(self._assignment.most_quarantined, len(splits)), ShufflePartitions.of(slots)
        work = self._spark.parallelize(splits, len(splits)).mapPartitions(read(plain, room, lanes))
        found = Shuffled(work, lanes.count)
        rows, held, told = self._read(found.shares([[lanes.told]]), splits)
        self._quarantined = of_all((t.kept for t in told), self._assignment.most_quarantined)
        if not rows:
            return [], _counters(told, 0, len(self._quarantined))
        dealt, count = self._dealt(found, lanes, rows, held)
        self._begin("Writing", count, "parts")
        done = self._collected(dealt.mapPartitions(written(Order(plain, self._url, self._token))))
        records = sum(w.records for w in done)
        if records != sum(rows.values()):
            raise InputChanged(f"{sum(rows.values())} rows were read and {records} written: the input has changed.")
        files = sorted((f for w in done for f in w.files), key=lambda f: (f.interval_start, f.interval_end, f.path))
        _check_size(files)
        return files, _counters(told, sum(f.rows for f in files), len(self._quarantined))

    def _dealt(
        self, found: Shuffled, lanes: ShufflePartitions, rows: Counter[Place], held: Collection[pa.Schema]
    ) -> tuple[RDD[Any], int]:
        """What each writer gets, a Spark partition each, and how many these are."""
        spec, slots = self._assignment.spec, self._assignment.slots
        if spec.tuningConfig.dividing is None:
            shares = lanes.shares(rows, spec.tuningConfig.rows_per_segment, slots)
            return found.shares(shares), len(shares)
        chunks = found.shares(lanes.shares(rows, wanted_rows(rows.total(), rows.total(), slots), slots))
        keys = Keys.of(spec, held)
        samples: dict[Place, Sample] = {}
        if keys.needs_sample:
            self._begin("Sampling", chunks.getNumPartitions(), "parts")
            samples = dict(self._collected(samples_of(chunks, keys)))
        division = division_of(spec, keys, rows, samples, slots)
        if division.bins.count > MOST_SEGMENTS:
            raise JobFailed(
                f"partitionsSpec makes {division.bins.count:,} segments, and a task may publish {MOST_SEGMENTS:,}: "
                "choose a longer segmentGranularity, or fewer partitions."
            )
        return shuffle_by_keys(chunks, division), division.bins.count

    def _read(self, of: RDD[Any], splits: Sequence[Split]) -> tuple[Counter[Place], dict[pa.Schema, None], list[Told]]:
        """How many rows each interval has, which dimensions chunks have, and what became of the records."""
        found: list[Read] = sorted(self._collected(of), key=lambda read_: read_.told.split)
        rows: Counter[Place] = Counter()
        for read_ in found:
            rows.update(read_.rows)
        told = [read_.told for read_ in found]
        unread = self._keep(told)
        if self._assignment.spec.tuningConfig.logParseExceptions:
            for one in unread:
                self._log.warning("parse exception", place=one.place, error=one.error)
        try:
            check_parse_exceptions(self._assignment.spec, sum(t.parse_exceptions for t in told), unread)
        except TooManyParseExceptions:
            self._give_up(told)
            raise
        if [t.split for t in told] != [s.number for s in splits]:
            raise JobFailed("Not all that there is to read was read; the log says why.")
        return rows, dict.fromkeys(schema for read_ in found for schema in read_.held), told

    def _keep(self, told: Sequence[Told]) -> list[UnreadRecord]:
        """For the report, as many as the spec allows. Returns all that is told of."""
        unread = [one for t in told for one in t.unread]
        self._unread = unread[: self._assignment.spec.tuningConfig.saved_parse_exceptions]
        return unread

    def _give_up(self, told: Sequence[Told]) -> None:
        """For the report: what was read is not published."""
        self._keep(told)
        self._given_up = _counters(told, 0, 0)

    def _collected(self, of: RDD[Any]) -> list[Any]:
        """What a job brings. Raises ``JobFailed``."""
        self._spark.setJobGroup(_GROUP, self._message, interruptOnCancel=True)
        try:
            items = of.collect()
        except Exception as error:  # py4j wraps what a job threw; a killed Python process too
            if self._stopped or self._ending.asked or self._over.is_set():
                raise JobFailed(STOPPED) from None
            raise JobFailed(_said(str(error))) from None
        failed = [i for i in items if isinstance(i, Failed)]
        if failed:
            found = [i.told for i in items if isinstance(i, Read | Failed) and i.told is not None]
            self._give_up(sorted(found, key=lambda told: told.split))
            raise JobFailed(failed[0].error)
        return items

    def _publish(self, files: list[SegmentFile], counters: Counters) -> None:
        self._failpoints.reach("written")
        if self._stopped or self._ending.asked:
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
        answer = until_answered(lambda: self._client.publish_batch(request), LONGEST_S, self._silence.met)
        self._failpoints.reach("published")
        self._log.info("published", segments=len(answer.segment_ids), replaced=answer.replaced)

    def _begin(self, what: str, many: int, of: str) -> None:
        self._phase, self._parts = f"{what}: {{done}} of {many} {of} done.", many
        self._message = self._phase.format(done=0)
        self._log.info("a phase begins", phase=what, parts=many)

    def _beat(self) -> None:
        done = _completed(self._spark, self._parts) if self._phase else 0
        self._message = self._phase.format(done=done) or self._message
        request = HeartbeatRequest(
            indexers=[],
            slots=self._spark.defaultParallelism,
            message=self._message,
            parts=self._parts if self._phase else 0,
            parts_done=done,
        )
        try:
            answer = self._client.heartbeat(request)
        except TaskOver as over:
            self._log.info("the task is over", reason=str(over))
            self._over.set()
            return
        except ClientError as error:
            self._silence.met(str(error))
            return
        self._silence.over()
        if answer.directive == "stop":
            self._stopped = True
            self._spark.cancelAllJobs()

    def _say_end(self, error: str) -> None:
        interrupted = self._ending.asked and not self._stopped
        said = "" if interrupted else error[:_MOST_SAID]
        request = EndRequest(error=said, interrupted=interrupted, unread=self._unread, given_up=self._given_up)
        say_end(self._client, request, self._ending, self._silence)


def _counters(told: Sequence[Told], rows: int, quarantined: int) -> Counters:
    """Of the whole task; ``rows``: in segments."""
    processed = sum(t.processed for t in told)
    filtered, outside = sum(t.filtered for t in told), sum(t.outside for t in told)
    return Counters(
        polled=sum(t.polled for t in told),
        published=rows,
        rolled_up=processed - rows,
        thrown_away=filtered + outside,
        filtered=filtered,
        outside_window=outside,
        unparseable=sum(t.unparseable for t in told),
        processed_with_error=sum(t.with_error for t in told),
        quarantined=quarantined,
        input_bytes=sum(t.input_bytes for t in told),
    )


def _check_size(files: Sequence[SegmentFile]) -> None:
    columns = sum(len(f.columns) for f in files)
    if len(files) > MOST_SEGMENTS or columns > MOST_COLUMNS:
        raise JobFailed(
            f"It has written {len(files):,} segments with {columns:,} columns in all, and a task may publish "
            f"{MOST_SEGMENTS:,} and {MOST_COLUMNS:,}: choose a longer segmentGranularity, or read less at once."
        )


def _completed(spark: SparkContext, parts: int) -> int:
    """How many Spark tasks have ended of the stage that has so many."""
    try:
        tracker = spark.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # py4j wraps what the JVM threw: the context may be ending
        return 0
    return max((stage.numCompletedTasks for stage in stages if stage and stage.numTasks == parts), default=0)


def _said(error: str) -> str:
    """Why a job failed, by what Spark says: the last error that Python named."""
    named = [f"{kind}: {text}" for kind, text in _LOST.findall(error) if not kind.startswith(("Py4J", "Spark"))]
    told = python_said(error) or (named[-1] if named else "a process of it ended")
    return f"A Spark task failed as often as maxRetry allows: {told[:_MOST_SAID]}. The log says more."
