"""What rewinds are to bear with: they begin, are undone and cancelled, and their readers are killed, under the storm.

All versions of a lane's spec store the same records and differ only in columns. So whichever version has read a record
in the end, what must be stored does not change.
"""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from benchmarks.soak.faults import Fault, Faults
from benchmarks.soak.lanes import PARTITIONS, Lane
from controlplane.common.process_identity import Identity
from tests.support.house import House

MOST_RECORDS = 2_000  # of a choice by offsets
DRY_RUNS = 0.15

_PARTS = """
    SELECT r.dry_run, p.state, count(*) FROM publishing_rewindpart p JOIN publishing_rewind r ON r.id = p.rewind_id
    JOIN datasources_datasource d ON d.id = r.datasource_id WHERE d.name = ANY (%s) GROUP BY 1, 2
"""
_REASONS = """
    SELECT p.reason, count(*) FROM publishing_rewindpart p JOIN publishing_rewind r ON r.id = p.rewind_id
    JOIN datasources_datasource d ON d.id = r.datasource_id WHERE d.name = ANY (%s) AND p.state = 'failed' GROUP BY 1
"""
_WITH_PARTS = """
    SELECT DISTINCT r.id, d.name FROM publishing_rewind r JOIN publishing_rewindpart p ON p.rewind_id = r.id
    JOIN datasources_datasource d ON d.id = r.datasource_id WHERE d.name = ANY (%s) AND p.state = %s ORDER BY r.id
"""
# One that is done. Its undo is refused while another of the same supervisor is at work.
_DONE = f"""
    {_WITH_PARTS.replace("ORDER BY r.id", "")}
    AND NOT EXISTS (
        SELECT 1 FROM publishing_rewindpart q JOIN publishing_rewind o ON o.id = q.rewind_id
        WHERE o.datasource_id = d.id AND q.state = 'waiting'
    ) ORDER BY r.id
"""
_HOURS = """
    SELECT i.start, i."end" FROM segments_interval i JOIN datasources_datasource d ON d.id = i.datasource_id
    WHERE d.name = %s AND i.segments > 0 ORDER BY i.start
"""
_READERS = """
    SELECT i.pid FROM tasks_indexer i JOIN tasks_task t ON t.id = i.task_id
    WHERE t.kind = 'rewind' AND t.status = 'RUNNING' AND i.pid > 0 AND i.state <> 'stopped' ORDER BY t.id
"""


@dataclass
class Rewinding:
    """Beside the other faults."""

    house: House
    faults: Faults
    lanes: list[Lane]
    chance: random.Random

    def kinds(self) -> list[Fault]:
        store, api = frozenset({"postgres"}), frozenset({"postgres", "web"})
        return [
            Fault(10, api | {"kafka"}, self._begin),
            Fault(8, api, self._undo),
            Fault(0.7, api, self._cancel),
            Fault(3, store, self._kill_a_reader),
        ]

    def _begin(self) -> str:
        """Some of a lane's records, with any version of its spec. It leaves what can't be recomputed."""
        lane = self.chance.choice(self.lanes)
        path = f"/api/v1/supervisors/{lane.datasource}/"
        versions = int(self.house.api("GET", path)["version"])
        is_dry = self.chance.random() < DRY_RUNS
        how = {"read_with": self.chance.randint(1, versions), "only_possible": True, "dry_run": is_dry}
        plan = self.house.api("POST", f"{path}rewinds/", {**self._choice(lane, versions), **how})
        what = "dry run" if is_dry else "rewind"
        return (
            f"{lane.kind}: {what} {plan['rewind']} of {plan['records']} records in {len(plan['parts'])} parts, "
            f"with version {how['read_with']} of {versions}"
        )

    def _choice(self, lane: Lane, versions: int) -> dict[str, Any]:
        """An hour of rows, which soon is done and can be undone; what a spec version stored; or offsets."""
        number = self.chance.random()
        if number < 0.6 and (hours := self.house.sql(_HOURS, lane.datasource)):
            start, until = self.chance.choice(hours)
            return {"rows_from": start.isoformat(), "rows_until": until.isoformat()}
        if number < 0.75:
            return {"spec_version": self.chance.randint(1, versions)}
        partition, first = str(self.chance.randrange(PARTITIONS)), self.chance.randrange(5 * MOST_RECORDS)
        end = first + self.chance.randint(1, MOST_RECORDS)
        return {"start_offsets": {partition: first}, "end_offsets": {partition: end}}

    def _undo(self) -> str:
        """One of those that are done, not only the newest."""
        return self._end("undo", _DONE, "done")

    def _cancel(self) -> str:
        return self._end("cancel", _WITH_PARTS, "waiting")

    def _end(self, action: str, query: str, state: str) -> str:
        lanes = {lane.datasource: lane for lane in self.lanes}
        found = self.house.sql(query, list(lanes), state)
        if not found:
            return ""
        number, datasource = self.chance.choice(found)
        self.house.api("POST", f"/api/v1/supervisors/{datasource}/rewinds/{action}/", {"rewind": number})
        return f"{lanes[datasource].kind}: {action} of rewind {number}"

    def _kill_a_reader(self) -> str:
        readers = [pid for (pid,) in self.house.sql(_READERS)]
        if not readers:
            return ""
        with suppress(psutil.Error, ProcessLookupError):  # a row may outlive its process
            process = Identity.of(self.chance.choice(readers))
            os.kill(process.pid, signal.SIGKILL)
            return f"rewind: reader with pid {process.pid} killed"
        return ""

    def is_at_rest(self, lane: Lane) -> bool:
        """Whether no part waits."""
        return not self.house.sql(_WITH_PARTS, [lane.datasource], "waiting")

    def end(self) -> list[str]:
        """What is wrong with what was done."""
        for reason, count in self.house.sql(_REASONS, [lane.datasource for lane in self.lanes]):
            self.faults.note(f"rewind: {count} parts failed: {reason}")
        parts = self.parts()
        return [] if parts["rewound_parts"] + parts["undone_parts"] else ["rewind: no part was read again"]

    def parts(self) -> dict[str, Any]:
        """Keys as documented in benchmarks/README.md."""
        rows = self.house.sql(_PARTS, [lane.datasource for lane in self.lanes])
        real = {state: count for is_dry, state, count in rows if not is_dry}
        return {
            "rewound_parts": real.get("done", 0),
            "undone_parts": real.get("undone", 0),
            "failed_parts": real.get("failed", 0),
            "dry_run_parts": sum(count for is_dry, state, count in rows if is_dry and state == "read"),
        }
