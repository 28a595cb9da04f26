"""A replay: quarantined records are ingested with the present spec, or produced to their topic again."""

from __future__ import annotations

import socket
import sys

from ingestion.client.errors import Unreachable
from ingestion.client.http import HttpControlPlane
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.sources.base import SourceProblem
from ingestion.sources.quarantine_source import QuarantineSource
from ingestion.sources.reproducer import Reproducer
from ingestion.sources.topic import KnownTopic, TopicIdentity
from ingestion.specs.messages.protocol import Assignment
from ingestion.specs.messages.replays import KeptRecord, ProducedRequest
from ingestion.specs.tasks.ingestion_spec import IngestionSpec
from ingestion.task.control import Control
from ingestion.task.indexer import Indexer, IndexerDependencies
from ingestion.task.parse_exceptions import without_parse_limits
from ingestion.task.scratch import scratch_folder
from ingestion.task.standalone import run_standalone

RETRY_S = 1.0


def main() -> int:
    """Exit code 0 when every record was dealt with."""
    return run_standalone(_replay, HttpControlPlane)


def _replay(client: HttpControlPlane, control: Control) -> None:
    assignment = client.assignment()
    if assignment.replay is None:
        raise SourceProblem("The assignment is no replay's.")
    if assignment.replay.mode == "produce":
        _produce(assignment, client, control)
    else:
        _ingest(assignment, assignment.replay.cluster_id, assignment.replay.topic_id, client, control)


def _ingest(assignment: Assignment, cluster_id: str, topic_id: str, client: HttpControlPlane, control: Control) -> None:
    """The one loop, on what is kept. Kafka is not asked for anything."""
    with scratch_folder() as scratch:
        surroundings = IndexerDependencies(
            client=client,
            topic=KnownTopic(TopicIdentity(cluster_id, topic_id)),
            make_source=lambda _: QuarantineSource(lambda after: next_page(client, control, after)),
            storage=open_deep_storage(assignment.deep_storage),
            scratch=scratch,
            host=socket.gethostname(),
        )
        Indexer(assignment.model_copy(update={"spec": _without_limits(assignment.spec)}), control, surroundings).run()


def _without_limits(spec: IngestionSpec) -> IngestionSpec:
    """A replay may meet any number of bad records, and none is late: it was on time when it was first read."""
    unlimited = {
        "lateMessageRejectionStartDateTime": None,
        "lateMessageRejectionPeriod": None,
        "earlyMessageRejectionPeriod": None,
        "boundedStreamConfig": None,
    }
    io_config = spec.ioConfig.model_copy(update=unlimited)
    return without_parse_limits(spec).model_copy(update={"ioConfig": io_config})


def _produce(assignment: Assignment, client: HttpControlPlane, control: Control) -> None:
    """Page by page: the control plane is told of a page's records once the broker has confirmed them."""
    topic = assignment.spec.ioConfig.topic
    producer = Reproducer(assignment.consumer_properties, topic, assignment.address_policy)
    control.show(state="reading")
    after = 0
    while records := next_page(client, control, after):
        control.show(in_flight=len(records))
        delivered = producer.produce(records)
        _report_produced(client, control, ProducedRequest(records=delivered.records))
        control.show(in_flight=0)
        if delivered.refused:
            raise SourceProblem(f"{len(delivered.refused)} records were not produced. {delivered.refused[0]}")
        after = records[-1].number
    control.show(state="stopped")


def next_page(client: HttpControlPlane, control: Control, after: int) -> list[KeptRecord]:
    """The next records; none as soon as the task is told to end. Waits for the control plane."""
    while control.directive == "continue":
        try:
            return client.quarantined(after)
        except Unreachable as error:
            control.show(message=f"The control plane does not answer: {error}")
            control.pause(RETRY_S)
    return []


def _report_produced(client: HttpControlPlane, control: Control, request: ProducedRequest) -> None:
    """Insists, whatever the task is told meanwhile: what is in the topic must not be produced once more."""
    while True:
        try:
            client.produced(request)
            return
        except Unreachable as error:
            control.show(message=f"The control plane does not answer: {error}")
            control.pause(RETRY_S)


if __name__ == "__main__":
    sys.exit(main())
