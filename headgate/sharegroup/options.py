"""The options of ``kafka-sharegroup``: read once, checked before anything is asked of Kafka."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.errors import OptionError

_POSITION = (
    "a share group has one position for all its members, kept by the broker: set groupAutoOffsetReset, or the group's "
    "share.auto.offset.reset, for where a new group begins"
)
_SHARED = "the broker shares records, not partitions, among the readers of a group"
REFUSED = {
    "startingoffsets": _POSITION,
    "startingtimestamp": _POSITION,
    "startingoffsetsbytimestamp": _POSITION,
    "startingoffsetsbytimestampstrategy": _POSITION,
    "endingoffsets": "a share group has no end: a batch read ends when nothing more comes",
    "endingtimestamp": "a share group has no end: a batch read ends when nothing more comes",
    "endingoffsetsbytimestamp": "a share group has no end: a batch read ends when nothing more comes",
    "assign": _SHARED + ": write subscribe",
    "subscribepattern": "a share consumer is given names: write them in subscribe, with commas",
    "groupidprefix": "readers join the group that shareGroupId names",
    "kafka.group.id": "write shareGroupId",
    "maxoffsetspertrigger": "offsets of a share group come with holes and out of order: write maxRecordsPerTrigger",
    "minoffsetspertrigger": "offsets of a share group come with holes and out of order: write minRecordsPerTrigger",
    "minpartitions": _SHARED + ": tasks are as many as numReaders; write numTasks for another number",
    "kafka.auto.offset.reset": _POSITION,
    "kafka.enable.auto.commit": "a record is acknowledged once it is durable",
}
_OPTIONS = (
    *("subscribe", "shareGroupId", "groupAutoOffsetReset", "checkpointLocation", "bufferLocation", "numReaders"),
    *("readerProcesses", "numTasks", "maxRecordsPerTrigger", "minRecordsPerTrigger", "maxTriggerDelay"),
    *("maxUncommittedBytes", "includeHeaders", "onPoison", "failOnDataLoss", "idleTimeoutMs"),
)
NAMES = {name.lower(): name for name in _OPTIONS}
_SPARK_OPTIONS = frozenset({"path", "serialization.format"})  # what Spark adds by itself
_TABLE_PREFIX = "option."  # before an option that a table in SQL was made with
_SIZE = re.compile(r"(\d+)\s*([kmg]?)b?", re.IGNORECASE)
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h)", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_FOLDER = "kafka-sharegroup"  # in a checkpoint


@dataclass(frozen=True)
class Options:
    """What a query asked for."""

    kafka: dict[str, str] = field(repr=False)  # holds passwords
    topics: tuple[str, ...]
    group: str
    location: str
    readers: int
    tasks: int
    processes: int  # that readers are spread over; 0: threads of the source process
    max_records: int | None  # of a micro-batch
    min_records: int  # that a micro-batch waits for, unless it has waited for
    max_delay_s: float
    max_bytes: int  # that wait for a micro-batch; past it nobody polls
    with_headers: bool
    fail_on_data_loss: bool
    fail_on_poison: bool
    reset: str | None
    idle_s: float  # without a record, after which a batch read has all there is


def read_options(raw_options: Mapping[str, str]) -> Options:
    """Raises ``OptionError``."""
    options = _lower_case_names(raw_options)
    for name, reason in REFUSED.items():
        if name in options:
            raise OptionError(f"option {name} does not go with a share group: {reason}")
    names = {name for name in options if not name.startswith("kafka.")} - _SPARK_OPTIONS
    if unknown := sorted(names - NAMES.keys()):
        raise OptionError(f"unknown option {', '.join(unknown)}; there are {', '.join(NAMES.values())} and kafka.*")
    readers = _number(options, "numReaders", 4, at_least=1)
    most = _number(options, "maxRecordsPerTrigger", 0, at_least=1) or None
    least = _number(options, "minRecordsPerTrigger", 0, at_least=1)
    if most is not None and least > most:
        raise OptionError("option minRecordsPerTrigger is more than maxRecordsPerTrigger")
    return Options(
        kafka={n.removeprefix("kafka."): v for n, v in options.items() if n.startswith("kafka.")},
        topics=_topics(options),
        group=_required(options, "shareGroupId"),
        location=_location(options),
        readers=readers,
        tasks=_number(options, "numTasks", readers, at_least=1),
        processes=_number(options, "readerProcesses", min(readers, os.cpu_count() or 1), at_least=0),
        max_records=most,
        min_records=least,
        max_delay_s=_duration(options, "maxTriggerDelay", "15m"),
        max_bytes=_size(options, "maxUncommittedBytes", "1g"),
        with_headers=_flag(options, "includeHeaders", False),
        fail_on_data_loss=_flag(options, "failOnDataLoss", True),
        fail_on_poison=_choice(options, "onPoison", ("reject", "fail"), "reject") == "fail",
        reset=_choice(options, "groupAutoOffsetReset", ("earliest", "latest"), "") or None,
        idle_s=_number(options, "idleTimeoutMs", 10_000, at_least=1_000) / 1000,
    )


def _lower_case_names(raw_options: Mapping[str, str]) -> dict[str, str]:
    options = {key.lower(): value for key, value in raw_options.items()}
    if any(key.startswith(_TABLE_PREFIX) for key in options):
        raise OptionError(
            "Spark hands the options of a table to no source in Python: write CREATE TEMPORARY VIEW instead, or name "
            "the table's columns, and give the options in each query, FROM name WITH (...)"
        )
    return options


def _required(options: Mapping[str, str], name: str) -> str:
    value = options.get(name.lower(), "").strip()
    if not value:
        raise OptionError(f"option {name} is missing")
    return value


def _topics(options: Mapping[str, str]) -> tuple[str, ...]:
    names = [name.strip() for name in _required(options, "subscribe").split(",")]
    if not all(names):
        raise OptionError("option subscribe has an empty name: write topics with commas between them")
    return tuple(dict.fromkeys(names))


def _location(options: Mapping[str, str]) -> str:
    if options.get("bufferlocation"):
        return _required(options, "bufferLocation").rstrip("/")
    if options.get("checkpointlocation"):
        return f"{_required(options, 'checkpointLocation').rstrip('/')}/{_FOLDER}"
    raise OptionError(
        "option checkpointLocation is missing: give the reader the query's checkpoint, too, which Spark does not hand "
        "on to Python sources; or bufferLocation, a folder of this query alone that all executors reach"
    )


def _number(options: Mapping[str, str], name: str, default: int, at_least: int) -> int:
    text = options.get(name.lower())
    if text is None:
        return default
    if not text.strip().isdecimal() or int(text) < at_least:
        raise OptionError(f"option {name} is {text!r}: write a whole number from {at_least}")
    return int(text)


def _size(options: Mapping[str, str], name: str, default: str) -> int:
    text = options.get(name.lower(), default)
    parts = _SIZE.fullmatch(text.strip())
    if not parts or not int(parts[1]):
        raise OptionError(f"option {name} is {text!r}: write bytes, or as 512m or 2g")
    return int(parts[1]) * _UNITS[parts[2].lower()]


def _duration(options: Mapping[str, str], name: str, default: str) -> float:
    text = options.get(name.lower(), default)
    parts = _DURATION.fullmatch(text.strip())
    if not parts:
        raise OptionError(f"option {name} is {text!r}: write a time as 500ms, 10s, 15m or 1h")
    return int(parts[1]) * _SECONDS[parts[2].lower()]


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    return _choice(options, name, ("true", "false"), str(default).lower()) == "true"


def _choice(options: Mapping[str, str], name: str, values: tuple[str, ...], default: str) -> str:
    text = options.get(name.lower(), default).strip().lower()
    if text not in values and text != default:
        raise OptionError(f"option {name} is {text!r}: write {' or '.join(values)}")
    return text
