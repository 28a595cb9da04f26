"""A client's walk through Druid's addresses, with what is wrong too: recorded, and walked here in the same order.

It needs no Kafka: a supervisor that is recorded asks a broker that nobody is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.druid_overlord import V1, sent, shape_of, suspended

GOLDEN = Path(__file__).parent.parent / "golden" / "druid_walk.json"
COORDINATOR = "/druid/coordinator/v1"
NAME = "walked"
_OF_SPECS = ("spec", "dataSchema", "ioConfig", "tuningConfig", "context")
SPEC = suspended(NAME)
_OFFSETS = '{"type": "kafka", "partitions": {"type": "end", "stream": "%s", "partitionOffsetMap": {"0": 1}}}'
# A call each line: method, address under the first one's root, and a body if one is sent.
_OVERLORD = f"""
GET task/none | GET task/none/status | GET task/none/reports | GET task/none/log | GET task/none/log?offset=-5
POST task/none/shutdown | POST task {{ | POST task {{}} | POST task {{"type": "nonesuch"}} | GET task | PUT task {{}}
DELETE task/none | GET tasks?state=bogus | GET tasks?state= | GET tasks?state=waiting | GET tasks?type=bogus
GET tasks?max=x | GET tasks?createdTimeInterval=x | GET tasks?max=-1 | GET tasks?datasource=none
GET tasks?state=complete&max=0 | GET completeTasks?n=x | GET completeTasks?n=-1 | GET runningTasks?type=bogus
GET supervisor/none | GET supervisor/none/status | GET supervisor/none/history | GET supervisor/none/stats
GET supervisor/none/health | POST supervisor/none/suspend | POST supervisor/none/resume | POST supervisor/none/reset
POST supervisor/none/resetOffsets {_OFFSETS % "t"} | POST supervisor/none/terminate | POST supervisor/none/shutdown
POST supervisor/none/taskGroups/handoff {{"taskGroupIds": [0]}} | GET supervisor/none/suspend | POST supervisor {{
POST supervisor {{}} | POST supervisor {{"type": "bogus"}} | POST supervisor {{"type": "kafka"}}
POST supervisor {json.dumps(SPEC)} | POST supervisor?skipRestartIfUnmodified=true {json.dumps(SPEC)}
GET supervisor/{NAME} | GET supervisor/{NAME}/status | GET supervisor/{NAME}/history | GET supervisor/{NAME}/stats
GET supervisor/{NAME}/health | GET supervisor | GET supervisor?full | GET supervisor?full=true
GET supervisor?full=false | GET supervisor?state=true | GET supervisor?state=false | GET supervisor?state
POST supervisor/{NAME}/suspend
POST supervisor/{NAME}/resume | POST supervisor/{NAME}/resume | POST supervisor/{NAME}/resetOffsets {_OFFSETS % "t"}
POST supervisor/{NAME}/resetOffsets {_OFFSETS % "other"} | POST supervisor/{NAME}/resetOffsets {{}}
POST supervisor/{NAME}/resetOffsets | POST supervisor/{NAME}/reset | POST supervisor/{NAME}/taskGroups/handoff {{}}
POST supervisor/{NAME}/suspend | POST supervisor/{NAME}/terminate | POST supervisor/{NAME}/terminate
GET supervisor/{NAME} | GET supervisor/{NAME}/status | GET supervisor/{NAME}/history | POST supervisor/suspendAll
POST supervisor/resumeAll | POST supervisor/terminateAll | POST taskStatus {{}} | POST taskStatus []
POST lockedIntervals | POST lockedIntervals/v2 [{{"datasource": "none", "priority": 0}}] | POST lockedIntervals/v2
POST sampler {{ | POST sampler {{}} | POST sampler {{"type": "bogus"}} | GET sampler
"""
_COORDINATOR = """
GET leader | GET isLeader | GET datasources/none | GET datasources/none?full | GET datasources/none/intervals
GET datasources/none/intervals/2020-01-01_2021-01-01 | GET datasources/none/intervals/x | GET datasources/none/segments
GET datasources/none/segments/x | GET datasources/none/tiers | GET datasources/none/loadstatus
GET datasources/none/loadstatus?forceMetadataRefresh=true | GET metadata/datasources/none
GET metadata/datasources/none/segments | GET metadata/datasources/none/segments/x
GET metadata/datasources/none/unusedSegments | GET rules | GET rules/none | GET rules/none?full
GET rules/none/history | GET loadstatus | GET loadstatus?simple | GET loadstatus?full | GET config/compaction
GET config/compaction/none | GET config/compaction/none/history | GET compaction/status | GET compaction/progress
GET compaction/progress?dataSource=none | GET compaction/status?dataSource=none | DELETE datasources/none
POST datasources/none/markUnused {} | POST datasources/none/markUnused {"interval": "2020/2021"}
DELETE config/compaction/none | POST config/compaction {} | POST rules/none {} | GET none
"""


def calls() -> list[tuple[str, str, str | None]]:
    """In order: method, address, and body as text."""
    found = []
    for root, lines in ((V1, _OVERLORD), (COORDINATOR, _COORDINATOR)):
        for call in " | ".join(lines.strip().splitlines()).split(" | "):
            method, _, rest = call.partition(" ")
            address, _, body = rest.partition(" ")
            found.append((method, f"{root}/{address}", body or None))
    return found


def told(answer: dict[str, Any]) -> dict[str, Any]:
    """What is compared: the status, and of what is answered well the media type and the shape."""
    if answer["status"] != 200:
        return {"status": answer["status"]}
    return {"status": 200, "type": answer["type"], "shape": _but_specs(shape_of(answer["body"]))}


def _but_specs(shape: Any) -> Any:
    """Specs have tests of their own."""
    if isinstance(shape, list):
        return [_but_specs(each) for each in shape]
    if isinstance(shape, dict):
        return {name: "object" if name in _OF_SPECS else _but_specs(each) for name, each in shape.items()}
    return shape


def record(overlord: str, version: str) -> None:
    """Walk there, and write what is answered to ``GOLDEN``."""
    found = []
    for method, address, body in calls():
        data = b"" if body is None and method == "POST" else body.encode() if body else None
        found.append([method, address, body, told(sent(overlord, address, data, method))])
    lines = ",\n".join(f"  {json.dumps(call)}" for call in found)
    GOLDEN.write_text(f'{{\n "druid": {json.dumps(version)},\n "walk": [\n{lines}\n ]\n}}\n', encoding="utf-8")
