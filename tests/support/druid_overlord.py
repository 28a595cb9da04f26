"""What a real Druid's Overlord answers about itself and its tasks: asked for, recorded, and compared by its shape."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent.parent / "golden" / "druid_overlord.json"
V1 = "/druid/indexer/v1"
SUPERVISOR = "recorded_switches"
READS = (
    "/status",
    "/status/health",
    *(f"{V1}/{name}" for name in ("leader", "isLeader", "workers")),
    *(f"{V1}/{state}Tasks" for state in ("running", "pending", "waiting", "complete")),
    f"{V1}/completeTasks?n=1",
    f"{V1}/runningTasks?type=none_is_of_this",
    f"{V1}/none",
    "/status/none",
)
PROPERTIES = ("druid.service", "druid.host", "druid.plaintextPort")  # the others say how that installation is set up


def suspended(datasource: str) -> dict[str, Any]:
    """A supervisor's spec that reads nothing."""
    return {
        "type": "kafka",
        "suspended": True,
        "spec": {
            "dataSchema": {
                "dataSource": datasource,
                "timestampSpec": {"column": "t"},
                "dimensionsSpec": {"dimensions": []},
                "granularitySpec": {},
            },
            "ioConfig": {
                "topic": "t",
                "consumerProperties": {"bootstrap.servers": "localhost:1"},
                "inputFormat": {"type": "json"},
            },
        },
    }


def asked(overlord: str, path: str, body: Any = None, method: str = "") -> dict[str, Any]:
    """Status, media type and body, as text where it is no JSON."""
    return sent(overlord, path, None if body is None else json.dumps(body).encode(), method)


def sent(overlord: str, path: str, data: bytes | None, method: str = "") -> dict[str, Any]:
    """What it answers to a body that is sent as it stands."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{overlord}{path}", data, headers, method=method or None)
    try:
        with urllib.request.urlopen(request) as answer:
            return _told(answer.status, answer.headers.get("Content-Type"), answer.read())
    except urllib.error.HTTPError as error:
        return _told(error.code, error.headers.get("Content-Type"), error.read())


def _told(status: int, media_type: str | None, body: bytes) -> dict[str, Any]:
    text = body.decode()
    try:
        value = json.loads(text, object_pairs_hook=_first_of_each)
    except ValueError:
        value = text
    return {"status": status, "type": (media_type or "").partition(";")[0], "body": value}


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Druid writes a tombstone's ``type`` twice; the first is the one that its own reader goes by."""
    return dict(reversed(pairs)) if len(dict(pairs)) < len(pairs) else dict(pairs)


def _noop(overlord: str, name: str, runs_ms: int) -> str:
    task: str = asked(overlord, f"{V1}/task", {"type": "noop", "id": name, "runTime": runs_ms})["body"]["task"]
    return task


def _until(ready: Any, within_s: float = 300) -> None:
    deadline = time.monotonic() + within_s
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError("Druid has not come to the state that is to be recorded")
        time.sleep(0.5)


def record(overlord: str, version: str) -> None:
    """Write the answers, with tasks that run, wait for a worker and have ended, to ``GOLDEN``."""
    mark = int(time.time())
    done = _noop(overlord, f"recorded_{mark}_done", 1)
    _until(lambda: asked(overlord, f"{V1}/task/{done}/status")["body"]["status"]["status"] == "SUCCESS")
    running = [_noop(overlord, f"recorded_{mark}_{n}", 30_000) for n in range(8)]
    _until(lambda: asked(overlord, f"{V1}/workers")["body"][0]["runningTasks"])
    _until(lambda: asked(overlord, f"{V1}/pendingTasks")["body"])
    found: dict[str, Any] = {path: asked(overlord, path) for path in READS}
    properties = asked(overlord, "/status/properties")
    properties["body"] = {name: properties["body"][name] for name in PROPERTIES}
    found["/status/properties"] = properties
    found[f"POST {V1}/taskStatus"] = asked(overlord, f"{V1}/taskStatus", [*running, done, "none"])
    found[f"POST {V1}/taskStatus []"] = asked(overlord, f"{V1}/taskStatus", [])
    found[f"POST {V1}/lockedIntervals/v2"] = asked(overlord, f"{V1}/lockedIntervals/v2", [{"datasource": "none"}])
    answer = {"druid": version, "answers": found, "log": _log(overlord, done), "history": _history(overlord)}
    GOLDEN.write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")


def _log(overlord: str, task: str) -> dict[str, int]:
    """By ``offset``: where in the log its answer begins and ends, as far from the beginning (or the end, below 0)."""
    path = f"{V1}/task/{task}/log"
    whole = asked(overlord, path)["body"]
    found = {}
    for offset in (0, 10, -10, -len(whole) - 5, len(whole)):
        part = asked(overlord, f"{path}?offset={offset}")["body"]
        assert whole.endswith(part), offset
        name = {-len(whole) - 5: "longer", len(whole): "all"}.get(offset, str(offset))
        found[name] = len(whole) - len(part)
    return {**found, "length": len(whole)}


def _history(overlord: str) -> list[Any]:
    """Oldest first: the type of each entry's spec, and whether it is suspended."""
    path = f"{V1}/supervisor/{SUPERVISOR}"
    asked(overlord, f"{V1}/supervisor", suspended(SUPERVISOR))
    for action in ("resume", "suspend", "resume"):
        assert asked(overlord, f"{path}/{action}", method="POST")["status"] == 200, action
    assert asked(overlord, f"{path}/terminate", method="POST")["status"] == 200
    entries = [[e["spec"]["type"], e["spec"]["suspended"]] for e in asked(overlord, f"{path}/history")["body"]]
    return entries[:5][::-1]


def shape_of(value: Any) -> Any:
    """Names and kinds of values; of a list that of its elements, which are alike. Null may be anything."""
    if isinstance(value, dict):
        return {name: shape_of(v) for name, v in value.items()}
    if isinstance(value, list):
        shapes = [shape_of(v) for v in value]
        return [merged(shapes)] if shapes else []
    if value is None:
        return None
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def merged(shapes: list[Any]) -> Any:
    """One shape for all: the first that says most."""
    return max(shapes, key=lambda s: len(json.dumps(s)))


def fits(ours: Any, theirs: Any, where: str = "") -> list[str]:
    """In what one shape differs from the other: a null, an empty list or an empty object fits anything of its kind."""
    if ours is None or theirs is None:
        return []
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if where.endswith(_BY_NAME):
            one, other = ([*shape.values()] for shape in (ours, theirs))
            return fits(merged(one), merged(other), f"{where}/*") if one and other else []
        if set(ours) != set(theirs):
            return [f"{where}: {sorted(set(ours) ^ set(theirs))}"]
        return [fault for name in ours for fault in fits(ours[name], theirs[name], f"{where}/{name}")]
    if isinstance(ours, list) and isinstance(theirs, list):
        return fits(ours[0], theirs[0], f"{where}/0") if ours and theirs else []
    return [] if ours == theirs else [f"{where}: {ours} is no {theirs}"]


# Objects whose fields are names that differ from one installation to the next.
_BY_NAME = (
    *("taskStatus", "lockedIntervals/v2", "currCapacityUsedByTaskType", "/status/properties", "/loadstatus"),
    *("/loadstatus?simple", "/loadstatus?full", "/loadstatus?full/*", "/v1/rules", "/minimumLag"),
)
