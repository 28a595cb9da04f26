"""A replay of records of files: they are ingested with a batch task's spec, some at a time, each time with a publish.

A plain process, without Spark, which the launcher starts.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ingestion.batch.quarantine_reader import QuarantineReader, RereadRecords
from ingestion.batch.writing import write_bin
from ingestion.client.batch import BatchControlPlane
from ingestion.client.errors import Unacceptable
from ingestion.client.retry import until_answered
from ingestion.failpoints import Failpoints
from ingestion.segments.column_ids import ColumnIds
from ingestion.segments.deep_storage import open_deep_storage
from ingestion.specs.messages.batch_protocol import BatchAssignment
from ingestion.specs.messages.replays import KeptPublishRequest, KeptRecord
from ingestion.task.batch_splitting import MAX_IN_A_ROW
from ingestion.task.control import Control
from ingestion.task.errors import Refused
from ingestion.task.replay import next_page
from ingestion.task.scratch import scratch_folder
from ingestion.task.standalone import run_standalone

LONGEST_S = 600.0  # that the same is said again without an answer


def main() -> int:
    """Exit code 0 when every record was dealt with."""
    return run_standalone(_replay, BatchControlPlane)


def _replay(client: BatchControlPlane, control: Control) -> None:
    assignment = client.start_batch()
    control.new_epoch(assignment.epoch)
    after = 0
    with scratch_folder() as scratch, QuarantineReader(assignment) as reader:
        replay = _Replay(assignment, client, reader, scratch)
        while records := next_page(client, control, after):
            control.show(in_flight=len(records))
            replay.ingest(records)
            control.count_publish()
            control.show(in_flight=0)
            after = records[-1].number
    control.show(state="stopped")


class _Replay:
    """``ingest`` takes one page after the other."""

    def __init__(
        self, assignment: BatchAssignment, client: BatchControlPlane, reader: QuarantineReader, scratch: Path
    ) -> None:
        self._assignment = assignment
        self._client = client
        self._reader = reader
        self._scratch = scratch
        self._storage = open_deep_storage(assignment.deep_storage)
        self._failpoints = Failpoints(assignment.failpoints)
        self._ids = ColumnIds(lambda request: until_answered(lambda: client.columns(request), LONGEST_S))
        self._refused_in_a_row = 0

    def ingest(self, records: Sequence[KeptRecord]) -> None:
        """To rows that are stored, and published with what became of each.

        What is refused for what it says is cut up until the records at fault stand alone, as a reader's publish is; see
        ``ingestion.task.batch_splitting``. Raises ``Refused`` when it is not for a record's sake.
        """
        read = self._reader.read(records)
        try:
            self._publish(self._kept_request(read))
            self._refused_in_a_row = 0
        except Unacceptable as refusal:
            if len(records) == 1:
                self._add_refused(read, str(refusal))
                return
            middle = len(records) // 2
            self.ingest(records[:middle])
            self.ingest(records[middle:])

    def _kept_request(self, read: RereadRecords) -> KeptPublishRequest:
        assignment = self._assignment
        return read.outcome(
            write_bin(read.chunks(), assignment.spec, assignment.version, self._storage, self._scratch, self._ids)
        )

    def _publish(self, request: KeptPublishRequest) -> None:
        self._failpoints.reach("written")
        until_answered(lambda: self._client.publish_kept(request), LONGEST_S)
        self._failpoints.reach("published")

    def _add_refused(self, read: RereadRecords, reason: str) -> None:
        """One record, with the refusal."""
        self._refused_in_a_row += 1
        if self._refused_in_a_row > MAX_IN_A_ROW:
            raise Refused(f"Publishes are refused, but not because of a record: {reason}")
        try:
            self._publish(read.refused(reason))
        except Unacceptable as second_error:
            raise Refused(
                f"Publishes are refused, even of records that stay in quarantine: {second_error}"
            ) from second_error


if __name__ == "__main__":
    sys.exit(main())
