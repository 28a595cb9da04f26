"""A part of a rewind: records are read again by an ordinary consumer, and what they give now is published.

Nobody sees a publish before the last one of the part: as many as it needs are made, each within a publish's limits.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path

from ingestion.client.http import HttpControlPlane
from ingestion.segments.deep_storage import DeepStorage, open_deep_storage
from ingestion.segments.local import LocalStorage
from ingestion.sources.repair import RepairSource
from ingestion.sources.rewind import MAX_OFFSETS, RewindSource
from ingestion.sources.topic import PinnedTopic, TopicWatch, checked_properties
from ingestion.specs.messages.protocol import Assignment, PublishAnswer, PublishRequest, RepairRange
from ingestion.specs.tasks.ingestion_spec import IngestionSpec
from ingestion.task.column_summaries import summarise
from ingestion.task.control import Control
from ingestion.task.indexer import Indexer, IndexerDependencies
from ingestion.task.parse_exceptions import without_parse_limits
from ingestion.task.scratch import scratch_folder
from ingestion.task.standalone import run_standalone


class RewindClient(HttpControlPlane):
    """Of a dry run each publish says what its columns hold, and what those of the replaced segments do."""

    summarised: Callable[[PublishRequest], PublishRequest] = staticmethod(lambda request: request)

    def publish(self, number: int, request: PublishRequest) -> PublishAnswer:
        return super().publish(number, self.summarised(request))


def main() -> int:
    """Exit code 0 when all records were read and published."""
    return run_standalone(_rewind, RewindClient)


def _rewind(client: RewindClient, control: Control) -> None:
    assignment = client.assignment()
    io_config = assignment.spec.ioConfig
    topic, ranges = io_config.topic, assignment.ranges
    properties, policy = assignment.consumer_properties, assignment.address_policy
    watch = PinnedTopic(TopicWatch(properties, topic, policy), topic, ranges[0].topic_id)

    def make_reader(left: list[RepairRange]) -> RepairSource:
        return RepairSource(
            checked_properties(properties, policy),
            topic,
            left,
            lambda: control.directive != "continue",
            io_config.isolation,
            watch.identity,
            most_offsets=MAX_OFFSETS,
            delivery_count=1,
        )

    with scratch_folder() as scratch:
        storage = _storage(assignment, scratch)
        if assignment.dry_run:
            before = summarise(open_deep_storage(assignment.deep_storage), assignment.replaces)

            def summarised(request: PublishRequest) -> PublishRequest:
                after = summarise(storage, [f.path for f in request.segments])
                return request.model_copy(update={"columns_before": before, "columns_after": after})

            client.summarised = summarised
        surroundings = IndexerDependencies(
            client=client,
            topic=watch,
            make_source=lambda _: RewindSource(ranges, make_reader),
            storage=storage,
            scratch=scratch,
            host=socket.gethostname(),
        )
        Indexer(assignment.model_copy(update={"spec": for_rewind(assignment.spec)}), control, surroundings).run()


def _storage(assignment: Assignment, scratch: Path) -> DeepStorage:
    """Of a dry run, a folder that goes with the task."""
    if assignment.dry_run:
        return LocalStorage(scratch / "dry-run", fsync=False)
    return open_deep_storage(assignment.deep_storage)


def for_rewind(spec: IngestionSpec) -> IngestionSpec:
    """Any number of records may be unreadable, and none is late by the time of now: it was on time, or is not read.

    ``maxTotalRows`` is for a stream, whose rows are to be visible soon.
    """
    unlimited = {"lateMessageRejectionPeriod": None, "earlyMessageRejectionPeriod": None, "replicas": 1}
    io_config = spec.ioConfig.model_copy(update=unlimited)
    tuning = without_parse_limits(spec).tuningConfig.model_copy(update={"maxTotalRows": None})
    return spec.model_copy(update={"ioConfig": io_config, "tuningConfig": tuning})


if __name__ == "__main__":
    sys.exit(main())
