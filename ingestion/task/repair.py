"""The repair job: reads holes of a share group's settled ranges with an ordinary consumer and settles them."""

from __future__ import annotations

import socket
import sys

from ingestion.client.http import HttpControlPlane
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.sources.repair import RepairSource
from ingestion.sources.topic import PinnedTopic, Topic, TopicWatch, checked_properties
from ingestion.specs.messages.protocol import RepairRange
from ingestion.task.control import Control
from ingestion.task.indexer import Indexer, IndexerDependencies
from ingestion.task.parse_exceptions import without_parse_limits
from ingestion.task.scratch import scratch_folder
from ingestion.task.standalone import run_standalone


def main() -> int:
    """Exit code 0 when every hole was looked into."""
    return run_standalone(_repair, HttpControlPlane)


def _repair(client: HttpControlPlane, control: Control) -> None:
    assignment = client.assignment()
    io_config = assignment.spec.ioConfig
    topic = io_config.topic
    properties, policy = assignment.consumer_properties, assignment.address_policy
    watch = _pinned_topic(TopicWatch(properties, topic, policy), topic, assignment.ranges)
    with scratch_folder() as scratch:
        surroundings = IndexerDependencies(
            client=client,
            topic=watch,
            make_source=lambda _: RepairSource(
                checked_properties(properties, policy),
                topic,
                assignment.ranges,
                lambda: control.directive != "continue",
                io_config.isolation,
                watch.identity,
            ),
            storage=open_deep_storage(assignment.deep_storage),
            scratch=scratch,
            host=socket.gethostname(),
        )
        unlimited = assignment.model_copy(update={"spec": without_parse_limits(assignment.spec)})
        Indexer(unlimited, control, surroundings).run()


def _pinned_topic(watch: TopicWatch, name: str, ranges: list[RepairRange]) -> Topic:
    """Holes of a topic that is gone are no other topic's. Those of an earlier version don't say whose they are."""
    topic_ids = {r.topic_id for r in ranges} - {""}
    return PinnedTopic(watch, name, topic_ids.pop()) if topic_ids else watch


if __name__ == "__main__":
    sys.exit(main())
