"""Why a task has published nothing: a pure function of what was observed. And which of its options change nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_jsonable_python

from controlplane.common.health import Code, Health
from controlplane.lag.samples import FINEST
from controlplane.publishing.selectors.totals import Totals
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.kafka.properties import without_effect
from ingestion.specs.schema.data_schema import schema_options_without_effect
from ingestion.specs.schema.index_spec import IndexSpec
from ingestion.specs.tasks.ingestion_spec import TuningConfig
from ingestion.specs.tasks.stored_specs import io_config_of

CHECK_KAFKA = "Check bootstrap.servers, the login and the network."
ALLOW_LOGIN = "Correct what Kafka refuses: the rights of the login, or the settings of the group."
CHECK_STORE = "Correct what the message names, if it does not resume soon."
FIX_TASK = "Fix the cause of the error. The log of the task says more."
CHECK_TOPIC = "Check its name in the spec, and the rights of the login."


_NO_HEARTBEAT = "The application starts. It has not sent its first heartbeat yet."


@dataclass(frozen=True)
class Facts:
    """What is known of a task."""

    status: str
    spec: Mapping[str, Any]
    totals: Totals
    observation: Mapping[str, Any] = field(default_factory=dict)  # as the observer wrote it
    indexer_states: Sequence[str] = ()  # by the last heartbeat
    held: int = 0  # records that its indexers hold, by the same
    refusal: str = ""  # why Kafka does not let an indexer read
    pause: str = ""  # why an indexer pauses
    slots: int = 0
    error: str = ""
    slot_wait: Health | None = None  # why it can't be launched yet, or has no slot of Spark


def why_nothing(facts: Facts) -> list[Health]:
    """Every reason found, the most telling first; none once rows are published."""
    if facts.status == "RUNNING" and facts.slot_wait:
        return [facts.slot_wait]
    if facts.status == "RUNNING" and facts.refusal:
        return [Health.of(Code.KAFKA_REFUSES, facts.refusal, ALLOW_LOGIN)]
    strangers = facts.observation.get("strangers")
    if facts.status == "RUNNING" and strangers:
        return [health_of_strangers(strangers)]
    if facts.totals.published:
        return []
    if facts.status == "PENDING":
        starting = Health.of(Code.STARTING, _NO_HEARTBEAT)
        return [facts.slot_wait or starting]
    failed = [Health.of(Code.FAILED, facts.error, FIX_TASK)] if facts.status == "FAILED" and facts.error else []
    if facts.totals.polled:
        return failed + _outcome_reasons(facts.totals)
    kafka_reasons = _kafka_reasons(facts)
    if kafka_reasons or facts.status != "RUNNING":
        return failed + kafka_reasons
    return [_waiting_reason(facts)]


def why_waiting(facts: Facts) -> list[Health]:
    """Why a bounded read does not go on; none while it does, nor when it has ended well."""
    if facts.status == "FAILED" and facts.error:
        return [Health.of(Code.FAILED, facts.error, FIX_TASK)]
    if facts.status == "PENDING":
        return [facts.slot_wait or Health.of(Code.STARTING, _NO_HEARTBEAT)]
    if facts.status != "RUNNING":
        return []
    if facts.slot_wait:
        return [facts.slot_wait]
    if facts.refusal:
        return [Health.of(Code.KAFKA_REFUSES, facts.refusal, ALLOW_LOGIN)]
    return _kafka_reasons_of_bounded(facts) or held_back(facts.observation)


def _kafka_reasons_of_bounded(facts: Facts) -> list[Health]:
    has_topic = facts.observation.get("topic_exists", True) and not facts.observation.get("error")
    return [] if has_topic else _kafka_reasons(facts)


def held_back(observation: Mapping[str, Any]) -> list[Health]:
    """What keeps Kafka from handing out the last offsets of a bounded read."""
    if not observation.get("lag"):
        return []
    for partition, (end, log_end) in observation.get("held_back", {}).items():
        if log_end > end:
            cause = f"A transaction is open at offset {end} of partition {partition}. The read continues when it ends."
            return [Health.of(Code.AWAITING_RECORDS, cause, "If this lasts, check the transaction's producer.")]
        cause = f"Kafka has lost records: partition {partition} ends at {end}, and the read is to go further."
        return [Health.of(Code.AWAITING_RECORDS, cause, "Stop the task. Submit it again with an end that exists.")]
    return []


def health_of_strangers(strangers: Sequence[str]) -> Health:
    """Of what reads in a consumer group in which these clients of others are, too."""
    many = len(strangers)
    who = f"{', '.join(strangers[:3])}{f' and {many - 3:,} more' if many > 3 else ''}"
    cause = f"Another application is in the consumer group: {who}. Headgate does not store what it reads."
    return Health.of(Code.STRANGERS_IN_GROUP, cause, "Stop it, or use another groupId.")


def _kafka_reasons(facts: Facts) -> list[Health]:
    """What the observer saw that lets no record come."""
    observation = facts.observation
    topic = io_config_of(facts.spec).topic
    if observation.get("error") and observation.get("refused"):
        return [Health.of(Code.KAFKA_REFUSES, str(observation["error"]), ALLOW_LOGIN)]
    if observation.get("error"):
        return [Health.of(Code.KAFKA_UNREACHABLE, f"Kafka can't be reached: {observation['error']}.", CHECK_KAFKA)]
    if observation.get("share_groups_supported") is False:
        cause = "The broker does not offer share groups."
        return [Health.of(Code.SHARE_GROUPS_OFF, cause, "Use Kafka 4.2 or newer, and turn its share groups on.")]
    if observation.get("topic_exists") is False:
        cause = f"There is no topic {topic!r}, or this user has no permission to see it."
        return [Health.of(Code.TOPIC_MISSING, cause, CHECK_TOPIC)]
    if not observation.get("topic_exists"):
        return []
    return _topic_reasons(facts, topic)


def _topic_reasons(facts: Facts, topic: str) -> list[Health]:
    observation = facts.observation
    ends: Mapping[str, int] = observation.get("end_offsets") or {}
    starts: Mapping[str, int] = observation.get("log_start_offsets") or {}
    if not any(ends.values()):
        return [Health.of(Code.TOPIC_EMPTY, f"Topic {topic!r} is empty: it never held a record.")]
    if all(starts.get(partition, 0) >= end for partition, end in ends.items()):
        return [Health.of(Code.TOPIC_EXPIRED, f"Topic {topic!r} is empty: retention removed all its records.")]
    if observation.get("settled"):
        return [] if observation.get("lag") else [_caught_up(observation)]
    io_config = io_config_of(facts.spec)
    if io_config.start.kind == "instant" and not observation.get("lag"):
        cause = f"Reading starts at {io_config.start}, and no record has that time or a later one."
        action = "To read older records, use an earlier startPosition and a new supervisor id."
        return [Health.of(Code.STARTS_AT_LATEST, cause, action)]
    if not io_config.useEarliestOffset and not observation.get("lag"):
        cause = "Reading starts at the latest offset, and no record was written since."
        action = (
            "To read the existing records, set useEarliestOffset to true and choose a new groupId (with stored "
            "offsets: a new supervisor id)."
        )
        return [Health.of(Code.STARTS_AT_LATEST, cause, action)]
    return []


def _caught_up(seen: Mapping[str, Any]) -> Health:
    cause = (
        f"All {seen['settled']:,} offsets of the topic are settled, and no records are new. The offsets were read, "
        "or hold no record (transaction markers, aborted and compacted records)."
    )
    return Health.of(Code.CAUGHT_UP, cause)


# By counter: the code where some records, and where all records ended so; what became of them; and what to do.
UNSTORED = {
    "filtered": (Code.FILTER_DROPS, Code.ALL_FILTER_DROPS, "dropped by the filter.", "Check transformSpec.filter."),
    "outside_window": (
        Code.OUTSIDE_WINDOW,
        Code.ALL_OUTSIDE_WINDOW,
        "outside the time window.",
        "Check lateMessageRejection… and earlyMessageRejectionPeriod.",
    ),
    "tombstones": (
        Code.TOMBSTONES,
        Code.ALL_TOMBSTONES,
        "tombstones: records without a value, which delete a key and make no row.",
        "Check whether the producer should write values.",
    ),
    "unparseable": (
        Code.UNPARSEABLE,
        Code.ALL_UNPARSEABLE,
        "unparseable.",
        "Check the quarantined records, then timestampSpec and inputFormat.",
    ),
    "duplicates": (Code.DUPLICATES, Code.ALL_DUPLICATES, "stored before, and were not stored again.", ""),
    "released": (Code.RELEASED, Code.ALL_RELEASED, "released without a publish; they are read again.", ""),
    "redundant": (Code.REDUNDANT, Code.ALL_REDUNDANT, "published by another replica first.", ""),
}


def _outcome_reasons(totals: Totals) -> list[Health]:
    """Records came, but none was published: how they ended."""
    ends = sorted(((getattr(totals, name), *said) for name, said in UNSTORED.items()), key=lambda end: -end[0])
    return [
        Health.of(some if n < totals.polled else every, f"{_share_text(n, totals.polled)} were {text}", action)
        for n, some, every, text, action in ends
        if n
    ]


def _share_text(part: int, total: int) -> str:
    return f"All {total:,} records" if part == total else f"{part:,} of {total:,} records"


def _waiting_reason(facts: Facts) -> Health:
    states = list(facts.indexer_states)
    if states and all(s == "waiting" for s in states):
        return Health.of(Code.PREDECESSOR, "It waits until the previous task has published what it read.")
    if states and all(s == "waiting_for_slot" for s in states):
        return Health.of(Code.WAITING_FOR_SLOT, f"Every indexer waits for a free Spark slot ({facts.slots} in all).")
    if states and all(s == "paused" for s in states):
        cause = f"Reading is paused: {facts.pause.rstrip('.') or 'a store refuses'}. It continues automatically."
        return Health.of(Code.STORAGE_REFUSES, cause, CHECK_STORE)
    if not any(s in ("reading", "finishing") for s in states):
        cause = "The application runs. Its executors and indexers start, which may take two minutes."
        return Health.of(Code.STARTING, cause)
    if not facts.observation:
        return Health.of(Code.NOT_OBSERVED, "Headgate has not checked the topic yet; this takes a few seconds.")
    passed = facts.observation.get("passed", 0)
    ahead = facts.observation.get("lag", 0) - passed
    if passed and not ahead:
        cause = f"It reads at the end of its topic, and no record is new. It has passed {passed:,} offsets."
        return Health.of(Code.CAUGHT_UP, f"{cause} Only backfills read these.")
    waiting = f"{ahead:,} offsets wait"
    traits = io_config_of(facts.spec).traits
    if traits.keeps_offsets and not facts.held:  # nothing shows that it reads
        cause = f"{waiting}, and no indexer holds a record yet. The first ones arrive some seconds after a start."
        return Health.of(Code.AWAITING_RECORDS, cause, "If this lasts, check the task's log.")
    if traits.keeps_offsets:
        period = _spec_part(facts.spec, "tuningConfig").get("intermediateHandoffPeriod")
        when = f"every {period}" if period else "when it has read all records, and sometimes earlier"
        cause = (
            f"{waiting}. The indexers hold {facts.held:,} records, and nothing is published yet. The task hands off "
            f"the rows {when} (tuningConfig.intermediateHandoffPeriod)."
        )
        return Health.of(Code.AWAITING_HANDOFF, cause)
    cause = (
        f"{waiting} and nothing is published yet. A new member of a {traits.label} waits up to 10 seconds for its "
        "first records; another member may hold them."
    )
    return Health.of(Code.AWAITING_DELIVERY, cause)


def options_without_effect(spec: Mapping[str, Any], *, supervised: bool, of_pattern: bool = False) -> list[str]:
    """What the spec sets that cannot apply here, by path and with the reason.

    ``of_pattern``: its supervisor reads one of the topics of a pattern.
    """
    io_config = _io_config(spec)
    properties, source = io_config.get("consumerProperties", {}), io_config_of(spec)
    unread = without_effect(source.traits)
    options = [f"ioConfig.consumerProperties[{n!r}]: {why}" for n, why in unread.items() if n in properties]
    options += [] if supervised else _supervisors_options(io_config, type(source))
    if supervised and source.idleConfig.enabled and not source.keeps_position:
        options.append(f"ioConfig.idleConfig: {_AT_LATEST}")
    options += [
        f"{p}: a column without any value is not stored" for p in _null_columns(io_config.get("inputFormat", {}))
    ]
    scaler = io_config.get("autoScalerConfig") or {}
    if scaler and not supervised:
        options.append("ioConfig.autoScalerConfig: a manual task has no supervisor that scales it")
    elif 0 < scaler.get("lagCollectionIntervalMillis", 0) < FINEST.seconds * 1000:
        path = "ioConfig.autoScalerConfig.lagCollectionIntervalMillis"
        options.append(f"{path}: the lag is kept every {FINEST.seconds} seconds")
    tuning = _spec_part(spec, "tuningConfig")
    for name in () if source.traits.keeps_offsets else _STORED_OFFSETS_OPTIONS:
        if tuning.get(name, _DEFAULT_TUNING.get(name)) != _DEFAULT_TUNING.get(name):
            options.append(f"tuningConfig.{name}: {source.traits.label}s do not read it")
    options += [f"tuningConfig.{name}: {why}" for name, why in _DRUID_TUNING.items() if tuning.get(name) is not None]
    options += _index_options(tuning, source.traits.keeps_offsets)
    options += [f"ioConfig.{name}: {why}" for name, why in _DRUID_IO_CONFIG.items() if io_config.get(name)]
    if io_config.get("stopTaskCount") and not (of_pattern or io_config.get("topicPattern")):
        options.append(f"ioConfig.stopTaskCount: {_ONE_GROUP}")
    if (io_config.get("headerBasedFilterConfig") or {}).get("stringDecodingCacheSize"):
        options.append("ioConfig.headerBasedFilterConfig.stringDecodingCacheSize: headers are decoded as they come")
    schema = _spec_part(spec, "dataSchema")
    if schema.get("granularitySpec", {}).get("intervals"):
        options.append("dataSchema.granularitySpec.intervals: a stream has none")
    options += schema_options_without_effect(schema)
    if scaler.get("stopTaskCountRatio") is not None:
        options.append(f"ioConfig.autoScalerConfig.stopTaskCountRatio: {_ONE_GROUP}")
    if spec.get("context"):
        options.append("context: Headgate does not read it")
    return options


def _index_options(tuning: Mapping[str, Any], persists: bool) -> list[str]:
    options = _index_spec_options(tuning, "indexSpec")
    if persists:
        options += _index_spec_options(tuning, "indexSpecForIntermediatePersists")
    elif tuning.get("indexSpecForIntermediatePersists"):
        options.append("tuningConfig.indexSpecForIntermediatePersists: nothing is persisted between batches")
    return options


def _index_spec_options(tuning: Mapping[str, Any], name: str) -> list[str]:
    unread = IndexSpec.model_validate(tuning.get(name) or {}).without_effect()
    return [f"tuningConfig.{name}.{option}: {why}" for option, why in unread.items()]


def _supervisors_options(io_config: Mapping[str, Any], model: type[IOConfig]) -> list[str]:
    """Options for supervisors in the spec of a manual task."""
    fields = model.model_fields
    return [
        f"ioConfig.{name}: a manual task {why}"
        for name, why in _SUPERVISOR_OPTIONS.items()
        if name in fields and io_config.get(name) not in (None, to_jsonable_python(fields[name].default))
    ]


def _null_columns(input_format: Mapping[str, Any], path: str = "ioConfig.inputFormat") -> list[str]:
    """Where a JSON format, or one inside a Kafka format, asks for columns of nulls."""
    paths = [f"{path}.keepNullColumns"] if input_format.get("keepNullColumns") else []
    for name in ("keyFormat", "valueFormat"):
        paths += _null_columns(input_format[name], f"{path}.{name}") if input_format.get(name) else []
    return paths


_STORED_OFFSETS_OPTIONS = (
    "maxTotalRows",
    "maxRowsInMemory",
    "intermediatePersistPeriod",
    "maxPendingPersists",
    "intermediateHandoffPeriod",
    "resetOffsetAutomatically",
)
_SUPERVISOR_OPTIONS = {
    "taskDuration": "reads until there is nothing more",
    "startDelay": "starts at once",
    "period": "has no supervisor",
}
_NO_REQUESTS = "a supervisor sends its tasks no requests, they report to it"
_DRUID_TUNING = {
    "handoffConditionTimeout": "the publish hands off a segment: no other process has to load it",
    **dict.fromkeys(("workerThreads", "chatThreads", "chatRetries", "httpTimeout"), _NO_REQUESTS),
    "shutdownTimeout": "tasks continue while the control plane is stopped",
    "offsetFetchPeriod": f"the lag is kept every {FINEST.seconds} seconds",
    "segmentWriteOutMediumFactory": "Parquet files need no such medium",
    "appendableIndexSpec": "Headgate has one in-memory format",
    "skipBytesInMemoryOverheadCheck": "Headgate counts the memory of the rows only",
    "skipSequenceNumberAvailabilityCheck": "Headgate always checks that the offsets still exist",
    "repartitionTransitionDuration": "Kafka's partitions are never split",
    "numPersistThreads": "an indexer reads and persists at the same time, one batch at a time",
    "maxColumnsToMerge": "files are merged in one step",
    "basePersistDirectory": "the installation sets this folder",
    "buildV9Directly": "segments are Parquet files",
}
_ONE_GROUP = "a supervisor's indexers are one group and are replaced together"
_DRUID_IO_CONFIG = {
    "serverPriorityToReplicas": "tasks answer no queries",
    "emitTimeLagMetrics": "lag is counted in records",
}
_DEFAULT_TUNING = TuningConfig().model_dump(mode="json", exclude_none=True)
_AT_LATEST = (
    "the task must keep running: without useEarliestOffset, Kafka loses the start position of a share group that has "
    "no members"
)


def _io_config(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return _spec_part(spec, "ioConfig")


def _spec_part(spec: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner: Mapping[str, Any] = spec.get("spec", spec)
    part: Mapping[str, Any] = inner.get(name, {})
    return part
