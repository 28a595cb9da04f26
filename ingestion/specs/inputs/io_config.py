"""The ioConfig of each kind of source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from math import ceil
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from ingestion.specs.base import Span, SpecModel, not_supported, to_utc
from ingestion.specs.errors import SpecError
from ingestion.specs.formats.input_format import InputFormat
from ingestion.specs.inputs.auto_scaler import AutoScalerConfig
from ingestion.specs.inputs.bounded import BoundedStreamConfig, check_beside_bounds, with_bounds_of_task
from ingestion.specs.inputs.group_config import (
    BY_DURATION,
    DEAD_LETTER_TOPIC,
    DELIVERY_LIMIT,
    START_MARGIN_S,
    START_SETTING,
    GroupConfig,
    Isolation,
)
from ingestion.specs.inputs.header_filter import HeaderBasedFilterConfig
from ingestion.specs.inputs.idle_config import IdleConfig
from ingestion.specs.inputs.small_topics import check_one_indexer
from ingestion.specs.kafka.connection_name import ConnectionName
from ingestion.specs.kafka.group_times import faults_of
from ingestion.specs.kafka.positions import Position, PositionText
from ingestion.specs.kafka.property_reading import Absent, KafkaProperties, refuse
from ingestion.specs.limits import one_line
from ingestion.specs.source_traits import CONSUMER_GROUP, OFFSET_RANGE, SHARE_GROUP, SourceTraits

Tombstones = Literal["throw_away", "quarantine"]  # what becomes of records without a value
DEFAULT_PERIOD = timedelta(seconds=30)
_COPIES = {"stream": "topic", "useEarliestSequenceNumber": "useEarliestOffset"}
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def _any_name_of(*names: str) -> BeforeValidator:
    """The first of a source's names, whichever of them a spec uses."""
    return BeforeValidator(lambda written: names[0] if written in names else written)


GroupId = Annotated[str, Field(min_length=1, max_length=249), AfterValidator(one_line)]


class IOConfig(SpecModel):
    """The fields of all sources. Each source has a subclass, which ``sources`` registers."""

    NAMES: ClassVar[tuple[str, ...]]  # the types that it has in a spec, its own first
    TRAITS: ClassVar[tuple[SourceTraits, ...]]  # all that it may have; ``traits_in`` says which a spec asks for

    type: str
    # A supervisor's, instead of a topic: a regular expression of Java's that the whole of a topic's name matches.
    topicPattern: str | None = Field(default=None, min_length=1, max_length=1_000)
    topic: str  # empty beside a pattern, and nowhere else
    connection: ConnectionName | None = None  # Headgate's own: a cluster that the team has named
    consumerProperties: KafkaProperties = Field(default_factory=Absent, validate_default=True)
    inputFormat: InputFormat
    pollTimeout: int
    useEarliestOffset: bool
    startPosition: PositionText | None = None  # Headgate's own: in place of ``useEarliestOffset``
    replicas: int
    taskCount: int = Field(default=1, ge=1, le=1000)
    # Headgate's own: up to so many records/s a topic shares an application.
    smallTopicRate: float | None = Field(default=None, gt=0, le=1000)
    autoScalerConfig: AutoScalerConfig | None = None
    lateMessageRejectionStartDateTime: datetime | None = None
    lateMessageRejectionPeriod: timedelta | None = None
    earlyMessageRejectionPeriod: timedelta | None = None
    # A supervisor's; without ``taskDuration`` its task reads on.
    startDelay: Span = Field(default=timedelta(), ge=timedelta())
    period: Span = Field(default=DEFAULT_PERIOD, gt=timedelta())
    taskDuration: timedelta | None = Field(default=None, gt=timedelta())
    completionTimeout: timedelta = Field(default=timedelta(seconds=90), gt=timedelta())
    idleConfig: IdleConfig = Field(default_factory=IdleConfig)
    tombstones: Tombstones = "throw_away"
    boundedStreamConfig: BoundedStreamConfig | None = None  # which offsets are read; None: all that come
    _problem: SpecError | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _check_topic_or_pattern(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("topicPattern") is not None and value.get("topic") is None:
            return {**value, "topic": ""}
        return value

    @model_validator(mode="before")
    @classmethod
    def _check_one_start(cls, value: Any) -> Any:
        """``useEarliestOffset`` then says whether records may be read that are there already."""
        if not isinstance(value, dict) or value.get("startPosition") is None:
            return value
        if value.get("useEarliestOffset") is not None:
            raise ValueError("give startPosition or useEarliestOffset, not both")
        return {**value, "useEarliestOffset": value["startPosition"] != "latest"}

    @field_validator("topic")
    @classmethod
    def _check_topic_name(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("topicPattern") is not None:
            if value:
                raise ValueError("cannot be used with topicPattern: give one of the two")
            return value
        if not value and "topicPattern" not in info.data:
            return value  # there is one, with a fault that is told already
        if not _TOPIC.fullmatch(value) or value in (".", ".."):
            raise ValueError("must be 1 to 249 letters, digits, '.', '_' or '-'")
        return value

    @field_validator("lateMessageRejectionStartDateTime")
    @classmethod
    def _convert_to_utc(cls, value: datetime | None) -> datetime | None:
        return to_utc(value)

    @model_validator(mode="after")
    def _check_late_rejection(self) -> Self:
        if self.lateMessageRejectionPeriod is not None and self.lateMessageRejectionStartDateTime is not None:
            raise ValueError("give lateMessageRejectionPeriod or lateMessageRejectionStartDateTime, not both")
        return self

    @model_validator(mode="after")
    def _check_bounded(self) -> Self:
        if self.boundedStreamConfig is not None:
            check_beside_bounds(self.topicPattern, self.replicas, scales=self.auto_scaler is not None)
        elif self.smallTopicRate is not None:
            check_one_indexer(self.taskCount, self.replicas, scales=self.auto_scaler is not None)
        return self

    @model_serializer(mode="wrap")
    def _as_it_is_read(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without an empty topic, and without the word for a start that another field gives."""
        written: dict[str, Any] = serialize(self)
        left_out = {"topic"} if not self.topic else set()
        left_out |= {"useEarliestOffset"} if self.startPosition is not None else set()
        return {name: value for name, value in written.items() if name not in left_out}

    @property
    def reads(self) -> str:
        """What people call it that is read: the topic, or the pattern of topics."""
        return self.topicPattern or self.topic

    @property
    def start(self) -> Position:
        """Where a topic is begun that was never read."""
        if self.startPosition is not None:
            return Position.parse(self.startPosition)
        return Position("earliest" if self.useEarliestOffset else "latest")

    def counted_from(self, accepted_at: datetime) -> Self:
        """With a time instead of a duration as start: the spec was accepted then, and all readers count from there."""
        if self.start.ago is None:
            return self
        return self.model_copy(update={"startPosition": str(self.start.at(accepted_at))})

    @property
    def auto_scaler(self) -> AutoScalerConfig | None:
        """The autoscaler, if there is one and it is enabled."""
        scaler = self.autoScalerConfig
        return scaler if scaler is not None and scaler.enableTaskAutoScaler else None

    @classmethod
    def traits_in(cls, written: Mapping[str, Any]) -> SourceTraits:
        """Of an ioConfig with these fields."""
        return cls.TRAITS[0]

    @classmethod
    def sample_defaults(cls) -> dict[str, Any]:
        """What a sample can do without: fields that a spec must have, and that say nothing of how records are read."""
        return {}

    @property
    def traits(self) -> SourceTraits:
        return self.traits_in(self.__dict__)

    @property
    def problem(self) -> SpecError | None:
        """Why one that is stored can't be read under today's rules."""
        return self._problem

    def note_problem(self, problem: SpecError) -> None:
        self._problem = problem

    @property
    def group(self) -> str | None:
        """The group in Kafka that is joined; empty: one that is called as its supervisor is; None: none."""
        return None

    def progress_name(self, owner: str) -> str:
        """Under which name it is kept what has been read. ``owner``: the supervisor's id, or, of a manual
        task, the datasource's name.

        Stored offsets belong to the owner, whatever Kafka's consumer group is called: one group may be used by many.
        """
        return owner

    @property
    def consumers(self) -> int:
        """Clients side by side in each indexer."""
        return 1

    @property
    def header_filter(self) -> HeaderBasedFilterConfig | None:
        """Which records are left out before they are decoded."""
        return None

    @property
    def keeps_position(self) -> bool:
        """Whether what comes while nobody reads is read afterwards, on partitions too of which nothing was read yet."""
        return True

    @property
    def idle_after(self) -> timedelta | None:
        """How long nothing must have come for its supervisor to be idle; None: it never is."""
        idle = self.idleConfig
        may_idle = idle.enabled and self.keeps_position and self.boundedStreamConfig is None
        return idle.inactive_after if may_idle else None

    @property
    def isolation(self) -> Isolation:
        """Whether what is read ends where a transaction is open, and leaves aborted records out."""
        level = str(self.consumerProperties.get("isolation.level", "")).lower()
        return "read_uncommitted" if level == "read_uncommitted" else "read_committed"


class ShareGroupIOConfig(IOConfig):
    """A share group (KIP-932). ``taskCount`` and fields that Druid's share-group task lacks are Headgate's own."""

    NAMES = ("index_kafka_share_group", "kafka_share_group")
    TRAITS = (SHARE_GROUP,)

    type: Annotated[Literal["index_kafka_share_group"], _any_name_of(*NAMES)] = "index_kafka_share_group"
    groupId: GroupId
    pollTimeout: int = Field(default=2000, ge=1, le=60_000)
    useEarliestOffset: bool = True
    replicas: int = 1
    consumersPerIndexer: int = Field(default=4, ge=1, le=32)
    groupConfig: GroupConfig = Field(default_factory=GroupConfig)

    @field_validator("replicas")
    @classmethod
    def _check_replicas(cls, value: int) -> int:
        if value != 1:
            raise ValueError(
                "must be 1: readers of a share group receive different records, so a second one is no replica. If a "
                "reader dies, Kafka delivers its records to another. For more readers, raise taskCount"
            )
        return value

    def group_settings(self, now: datetime) -> dict[str, str]:
        """The share group's dynamic configuration that this asks for, under Kafka's names.

        ``now``: what a start by time is counted back from.
        """
        group = self.groupConfig
        locks = group.partitionMaxRecordLocks
        topic, copies = group.deadLetterTopic, group.deadLetterCopiesRecord
        return {
            START_SETTING: self._start_setting(now),
            "share.isolation.level": group.isolationLevel,
            DELIVERY_LIMIT: str(group.deliveryCountLimit),
            "share.record.lock.duration.ms": str(group.recordLockDurationMs),
            **({} if locks is None else {"share.partition.max.record.locks": str(locks)}),
            **({} if topic is None else {DEAD_LETTER_TOPIC: topic}),
            **({} if copies is None else {"errors.deadletterqueue.copy.record.enable": str(copies).lower()}),
        }

    def _start_setting(self, now: datetime) -> str:
        """A time counts back from the broker's now, which is later: with a margin, so that no record is left out."""
        instant = self.start.at(now).instant
        if instant is None:
            return self.start.kind
        return f"{BY_DURATION}PT{max(0, ceil((now - instant).total_seconds())) + START_MARGIN_S}S"

    def group_settings_to_try(self, now: datetime) -> tuple[dict[str, str], ...]:
        """``group_settings``; then those without a limit of deliveries that nobody asked for, for Kafka 4.2."""
        settings = self.group_settings(now)
        if self.groupConfig.deliveryCountLimit != GroupConfig().deliveryCountLimit:
            return (settings,)
        return settings, {name: value for name, value in settings.items() if name != DELIVERY_LIMIT}

    @model_validator(mode="after")
    def _check_isolation(self) -> Self:
        if str(self.consumerProperties.get("isolation.level", "read_committed")).lower() != "read_committed":
            refuse({"isolation.level": "for a share group use ioConfig.groupConfig.isolationLevel"})
        return self

    @classmethod
    def sample_defaults(cls) -> dict[str, Any]:
        return {"groupId": "sample"}

    @property
    def group(self) -> str | None:
        return self.groupId

    def progress_name(self, owner: str) -> str:
        return self.groupId

    @property
    def consumers(self) -> int:
        return self.consumersPerIndexer

    @property
    def keeps_position(self) -> bool:
        """At latest Kafka forgets where a partition begins that nothing was read of, once the last member has left."""
        return self.useEarliestOffset

    @property
    def isolation(self) -> Isolation:
        return self.groupConfig.isolationLevel


class KafkaIOConfig(IOConfig):
    """Stored offsets in the metadata store: Druid's Kafka supervisor, exactly-once."""

    NAMES = ("kafka", "index_kafka")
    TRAITS = (OFFSET_RANGE, CONSUMER_GROUP)

    type: Annotated[Literal["kafka"], _any_name_of(*NAMES)] = "kafka"
    # Headgate's own, as is the group: with ``consumer_group`` Kafka deals out the partitions among the group's members,
    # else they are dealt out by number.
    assignment: Literal["offset_range", "consumer_group"] = "offset_range"
    groupId: GroupId | None = None  # the consumer group; it is called as the supervisor is unless given
    pollTimeout: int = Field(default=100, ge=1, le=60_000)
    useEarliestOffset: bool = False
    replicas: int = Field(default=1, ge=1, le=10)
    startDelay: Span = Field(default=timedelta(seconds=5), ge=timedelta())
    taskDuration: timedelta = Field(default=timedelta(hours=1), gt=timedelta())
    completionTimeout: timedelta = Field(default=timedelta(minutes=30), gt=timedelta())
    stopTaskCount: int | None = Field(default=None, ge=1)  # of a pattern's topics: how many change tasks at a time
    # The next two are Druid's, without effect: see ``options_without_effect``.
    serverPriorityToReplicas: dict[str, int] | None = None
    emitTimeLagMetrics: bool | None = None
    headerBasedFilterConfig: HeaderBasedFilterConfig | None = None
    # Druid's, which would change what is read.
    configOverrides: Annotated[
        None, not_supported("is not supported: write the properties into consumerProperties")
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _drop_copied_fields(cls, value: Any) -> Any:
        """Druid shows two fields once more under the names that all streams share; its tasks have bounds apart."""
        if not isinstance(value, dict):
            return value
        value = with_bounds_of_task(value)
        for copy, field in _COPIES.items():
            original = cls.model_fields[field].default if value.get(field) is None else value[field]
            if field == "topic" and not value.get(field):
                original = value.get("topicPattern")
            if value.get(copy) not in (None, original):
                raise ValueError(f"{copy} must equal {field} or be left out")
        return {name: v for name, v in value.items() if name not in _COPIES}

    @model_validator(mode="after")
    def _check_group(self) -> Self:
        if self.groupId is not None and not self.traits.in_consumer_group:
            raise ValueError('groupId is for "assignment": "consumer_group" only')
        return self

    @model_validator(mode="after")
    def _check_replicas_allowed(self) -> Self:
        if self.replicas > 1 and self.traits.in_consumer_group:
            raise ValueError(
                'replicas: more than 1 needs "assignment": "offset_range". In a consumer group each partition is read '
                "by one member alone; when a member dies, Kafka gives its partitions to the others"
            )
        return self

    @model_validator(mode="after")
    def _check_group_times(self) -> Self:
        if self.traits.in_consumer_group:
            refuse(faults_of(self.consumerProperties))
        return self

    @classmethod
    def traits_in(cls, written: Mapping[str, Any]) -> SourceTraits:
        return CONSUMER_GROUP if written.get("assignment") == CONSUMER_GROUP.kind else OFFSET_RANGE

    @property
    def header_filter(self) -> HeaderBasedFilterConfig | None:
        return self.headerBasedFilterConfig

    @property
    def group(self) -> str | None:
        return (self.groupId or "") if self.traits.in_consumer_group else None
