"""What compaction is to bear with: merges and their application killed, what they read taken out of use or deleted for
good, replays.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import psutil

from benchmarks.soak.faults import Fault, Faults
from benchmarks.soak.lanes import Lane
from tests.support.house import House
from tests.support.waiting import wait_for

Span = tuple[datetime, datetime]
LEASE = {"HEADGATE_SNAPSHOT_LEASE": "PT2S"}  # nobody else reads
_EVER = "2000-01-01/2100-01-01"

_JOBS = """
    SELECT j.state, count(*), coalesce(sum(greatest(j.attempt - 1, 0)), 0), coalesce(sum(cardinality(j.inputs)), 0),
           coalesce(sum(j.segments_after), 0)
    FROM compaction_job j JOIN datasources_datasource d ON d.id = j.datasource_id WHERE d.name = ANY (%s) GROUP BY 1
"""
_DELETED = "SELECT coalesce(sum(parts_done), 0) FROM tasks_task WHERE kind = 'kill'"
_INTERVALS = """
    SELECT i.start, i."end" FROM segments_interval i JOIN datasources_datasource d ON d.id = i.datasource_id
    WHERE d.name = %s AND i.segments > 0 ORDER BY i.segments DESC LIMIT 3
"""


@dataclass
class Merging:
    """Beside the other faults."""

    house: House
    faults: Faults
    lanes: list[Lane]
    chance: random.Random
    unused: set[tuple[str, Span]] = field(default_factory=set)  # intervals that are to be put back into use

    def kinds(self) -> list[Fault]:
        store, api = frozenset({"postgres"}), frozenset({"postgres", "web"})
        return [
            Fault(4, store, self._kill_a_merge),
            Fault(1.5, store, self._kill_the_application),
            Fault(2.5, api, self._mark_unused),
            Fault(4, api, self._delete_permanently),
            Fault(1, api, self._replay),
        ]

    def _application(self) -> str:
        rows = self.house.sql("SELECT id FROM tasks_resident WHERE ended_at IS NULL")
        return str(rows[0][0]) if rows else ""

    def _kill_the_application(self) -> str:
        name = self._application()
        return f"compaction: application {name} killed" if name and self.house.kill_application(name) else ""

    def _kill_a_merge(self) -> str:
        """One of the processes that its application has forked for jobs."""
        pid = self.house.application_pid(self._application() or "none")
        try:
            inside = psutil.Process(pid).children(recursive=True) if pid else []
            merging = [p for p in inside if "ingestion.spark.daemon" in p.cmdline() and not p.children()]
            if not merging:
                return ""
            process = self.chance.choice(merging)
            process.kill()
        except psutil.NoSuchProcess:
            return ""
        return f"compaction: merge with pid {process.pid} killed"

    def _mark_unused(self) -> str:
        lane = self.chance.choice(self.lanes)
        spans = self.house.sql(_INTERVALS, lane.datasource)
        if not spans:
            return ""
        span = self.chance.choice(spans)
        self.unused.add((lane.datasource, (span[0], span[1])))
        self._mark("markUnused", lane.datasource, (span[0], span[1]))
        seconds = self.chance.uniform(2, 15)
        self.faults.plan(seconds, self._restore_some)
        return f"{lane.kind}: {span[0]:%H:%M} to {span[1]:%H:%M} out of use for {seconds:.1f} s"

    def _restore_some(self) -> None:
        """Those that can't be while the control plane is away are later."""
        self.faults.attempt(self._restore_one)

    def _restore_one(self) -> str:
        for datasource, span in sorted(self.unused):
            self._mark("markUsed", datasource, span)
            self.unused.discard((datasource, span))
        return ""

    def _mark(self, how: str, datasource: str, span: Span) -> None:
        between = f"{span[0].isoformat()}/{span[1].isoformat()}".replace("+00:00", "Z")
        self.house.api("POST", f"/druid/coordinator/v1/datasources/{datasource}/{how}", {"interval": between})

    def _delete_permanently(self) -> str:
        """What merges have replaced; of a datasource of which nothing is to be put back."""
        lanes = [lane for lane in self.lanes if lane.datasource not in {name for name, _ in self.unused}]
        if not lanes:
            return ""
        lane = self.chance.choice(lanes)
        self._submit_kill(lane)
        return f"{lane.kind}: what is not in use is deleted for good"

    def _submit_kill(self, lane: Lane) -> str:
        """The task that does it. It may run when something is out of use again, which it leaves."""
        until = datetime.now(UTC).isoformat()
        task = {"type": "kill", "dataSource": lane.datasource, "interval": _EVER, "maxUsedStatusLastUpdatedTime": until}
        return str(self.house.api("POST", "/druid/indexer/v1/task", task)["task"])

    def _replay(self) -> str:
        """All that is in quarantine: it can't be read the second time either."""
        lane = self.chance.choice(self.lanes)
        path = f"/api/v1/datasources/{lane.datasource}/quarantine/replay/"
        self.house.api("POST", path, {"mode": "ingest", "filter": {}})
        return f"{lane.kind}: its quarantine is replayed"

    def end(self) -> list[str]:
        """Everything is in use again, what merges have replaced is gone, and nothing is merged any more; what is wrong
        with what was.
        """
        self._restore_one()
        self._wait(lambda: self.jobs()["merges_done"] > 0, "a merge is done")
        tasks = [self._submit_kill(lane) for lane in self.lanes]
        self._wait(lambda: not {"PENDING", "RUNNING"} & {self.house.status(t) for t in tasks}, "all is deleted")
        for service in (self.house.beat, self.house.worker):
            service.stop()
        if name := self._application():
            self.house.kill_application(name)
        jobs = self.jobs()
        required = {"merges_done": "no merge was done", "segments_deleted": "nothing was deleted for good"}
        return [f"compaction: {what}" for key, what in required.items() if not jobs[key]]

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_for(what, condition, 60, lambda: self.house.sql("SELECT state, error FROM compaction_job"))

    def jobs(self) -> dict[str, Any]:
        """Keys as documented in benchmarks/README.md."""
        rows = self.house.sql(_JOBS, [lane.datasource for lane in self.lanes])
        states = {state: count for state, count, *_ in rows}
        [(_, _, _, read, written)] = [row for row in rows if row[0] == "done"] or [(0, 0, 0, 0, 0)]
        return {
            "merges_done": states.get("done", 0),
            "merges_failed": states.get("failed", 0),
            "merges_refused": states.get("refused", 0),
            "merges_begun_again": int(sum(row[2] for row in rows)),
            "merged_segments": int(read),
            "merged_into": int(written),
            "segments_deleted": int(self.house.sql(_DELETED)[0][0]),
        }
