"""JSON schemas of the answers at Druid's addresses, for OpenAPI. ``shapes`` makes these answers."""

from __future__ import annotations

from typing import Any

from controlplane.supervisors.states import State
from controlplane.tasks.models import Status, task_types

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANYTHING: Schema = {"type": "object", "additionalProperties": True}


def array(of: Schema) -> Schema:
    """A list of such values."""
    return {"type": "array", "items": of}


def nullable(of: Schema) -> Schema:
    """A schema of this, or of null."""
    return {"oneOf": [of, {"type": "null"}]}


def shape(**fields: Schema) -> Schema:
    """An object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def named(values: Schema) -> Schema:
    """An object whose fields are names."""
    return {"type": "object", "additionalProperties": values}


BACKFILL = shape(id=TEXT, backfillSupervisorId=TEXT)
ID = shape(id=TEXT)
_LOCATION = shape(host=nullable(TEXT), port=NUMBER, tlsPort=NUMBER)
STATUS = shape(
    id=TEXT,
    groupId=TEXT,
    type={"type": "string", "enum": sorted(task_types())},
    createdTime=TIME,
    queueInsertionTime=TIME,
    statusCode={"type": "string", "enum": [Status.RUNNING, Status.SUCCESS, Status.FAILED]},
    status={"type": "string", "enum": [Status.RUNNING, Status.SUCCESS, Status.FAILED]},
    runnerStatusCode={"type": "string", "enum": ["NONE", "WAITING", "PENDING", "RUNNING"]},
    duration={**NUMBER, "description": "Milliseconds. -1 while the task runs."},
    location=_LOCATION,
    dataSource=TEXT,
    errorMsg=nullable(TEXT),
)
TASK_STATUSES = array(STATUS)
WORKER_CONFIG = shape(
    type={"const": "default"},
    selectStrategy=shape(type=TEXT, affinityConfig={"type": "null"}),
    autoScaler={"type": "null"},
)
PARSE_ERRORS = array(
    shape(
        timeOfExceptionMillis=NUMBER, input=TEXT, errorType=TEXT, details=array(TEXT), partition=NUMBER, offset=NUMBER
    )
)
STATUSES_BY_ID = named(
    shape(id=TEXT, status=STATUS["properties"]["status"], duration=NUMBER, errorMsg=nullable(TEXT), location=_LOCATION)
)
TASK_STATUS = shape(task=TEXT, status=STATUS)
TASK_PAYLOAD = shape(task=TEXT, payload=ANYTHING)
TASK_ID = shape(task=TEXT)

SPEC: Schema = {
    "type": "object",
    "properties": {"id": TEXT, "type": TEXT, "suspended": FLAG, "spec": ANYTHING},
    "required": ["id", "type", "suspended", "spec", "dataSchema", "ioConfig", "tuningConfig"],
    "additionalProperties": True,
}
_STATE: dict[str, Schema] = {
    "id": TEXT,
    "state": {"type": "string", "enum": list(State.values)},
    "detailedState": TEXT,
    "healthy": FLAG,
    "suspended": FLAG,
}
SUPERVISORS: Schema = {
    "description": "Ids. With `full` or `state=true`, objects.",
    "oneOf": [array(TEXT), array(shape(**_STATE)), array(shape(**_STATE, spec=SPEC))],
}
_STORED: Schema = {
    "type": "object",
    "properties": {"type": TEXT, "spec": ANYTHING},
    "required": ["type", "spec", "dataSchema", "ioConfig", "tuningConfig"],
    "additionalProperties": True,
}
_TOMBSTONE = shape(type={"const": "NoopSupervisorSpec"}, id=TEXT, dataSources=array(TEXT), suspended=FLAG)
HISTORY = array(shape(spec={"oneOf": [_STORED, _TOMBSTONE]}, version=TIME))
HISTORIES = named(HISTORY)
HEALTH = shape(healthy=FLAG)
_OFFSETS = named(NUMBER)
_RATE: Schema = {"type": "number"}
_ROWS = shape(processed=_RATE, processedBytes=_RATE, processedWithError=_RATE, thrownAway=_RATE, unparseable=_RATE)
STATS = named(named(shape(movingAverages=shape(buildSegments=named(_ROWS)), totals=shape(buildSegments=_ROWS))))
_TASK: dict[str, Schema] = {
    "id": TEXT,
    "startingOffsets": _OFFSETS,
    "startTime": nullable(TIME),
    "remainingSeconds": nullable(NUMBER),
    "type": {"type": "string", "enum": ["ACTIVE", "PUBLISHING"]},
    "currentOffsets": _OFFSETS,
}
_ERROR: Schema = {
    "type": "object",
    "properties": {
        "timestamp": nullable(TIME),
        "exceptionClass": TEXT,
        "message": TEXT,
        "streamException": FLAG,
        "task": TEXT,
        "stackTrace": TEXT,
    },
    "required": ["timestamp", "exceptionClass", "message", "streamException"],
    "additionalProperties": False,
}
REPORT = shape(
    id=TEXT,
    generationTime=TIME,
    payload=shape(
        dataSource=TEXT,
        stream=TEXT,
        partitions=nullable(NUMBER),
        replicas=NUMBER,
        durationSeconds=nullable(NUMBER),
        activeTasks=array(shape(**_TASK, lag=_OFFSETS)),
        publishingTasks=array(shape(**_TASK)),
        latestOffsets=_OFFSETS,
        minimumLag=_OFFSETS,
        aggregateLag=nullable(NUMBER),
        offsetsLastUpdated=nullable(TIME),
        suspended=FLAG,
        healthy=FLAG,
        state=_STATE["state"],
        detailedState=TEXT,
        recentErrors=array(_ERROR),
    ),
)
DONE = shape(status={"const": "success"})
CAPACITY = shape(currentClusterCapacity=NUMBER, maximumCapacityWithAutoScale=NUMBER, usedClusterCapacity=NUMBER)
LEADER = shape(leader=FLAG)
WORKERS = array(
    shape(
        worker=shape(scheme=TEXT, host=TEXT, ip=TEXT, capacity=NUMBER, version=TEXT, category=TEXT),
        currCapacityUsed=NUMBER,
        currParallelIndexCapacityUsed=NUMBER,
        currCapacityUsedByTaskType=named(NUMBER),
        availabilityGroups=array(TEXT),
        runningTasks=array(TEXT),
        lastCompletedTaskTime=TIME,
    )
)
LOCKED = named(array(TEXT))
MEMORY = ("maxMemory", "totalMemory", "freeMemory", "usedMemory", "directMemory")
NODE = shape(
    version=TEXT,
    modules=array(shape(name=TEXT, artifact=TEXT, version=TEXT)),
    memory=shape(**dict.fromkeys(MEMORY, NUMBER)),
)
PROPERTIES = named(TEXT)
