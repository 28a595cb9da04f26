"""Which offsets a bounded read reads: Druid's ``boundedStreamConfig``, and the fields of its ``index_kafka`` tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ingestion.specs.base import SpecModel, to_utc
from ingestion.specs.kafka.positions import PositionText

MAX_OFFSET = (1 << 44) - 1  # as many as the metadata store tells apart
_MAPS = ("partitionSequenceNumberMap", "partitionOffsetMap")
_FIELDS = {"start": ("startSequenceNumbers", "startPartitions"), "end": ("endSequenceNumbers", "endPartitions")}
_TIMES = ("minimumMessageTime", "maximumMessageTime")
_NAMES_OF_SEQUENCE = ("baseSequenceName", "taskGroupId", "useTransaction")  # Druid's, of the metadata it keeps


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a whole number")
    return value


Offset = Annotated[int, BeforeValidator(_no_boolean), Field(ge=0, le=MAX_OFFSET)]
Offsets = dict[Annotated[int, Field(ge=0, lt=2**31)], Offset]
Time = Annotated[datetime, AfterValidator(to_utc)]


class BoundedStreamConfig(SpecModel):
    """From where to where each partition is read; the end itself is not.

    Positions and the topic's id are Headgate's own. At the submission a position becomes offsets, and the topic's id is
    kept. Where both are given, the offsets apply.
    """

    startSequenceNumbers: Offsets | None = Field(default=None, min_length=1)
    endSequenceNumbers: Offsets | None = Field(default=None, min_length=1)
    startPosition: PositionText | None = None
    endPosition: PositionText | None = None
    topicId: str | None = Field(default=None, max_length=50)
    # Of Druid's task: records of another time than from the first to the second, both included, are thrown away.
    minimumMessageTime: Time | None = None
    maximumMessageTime: Time | None = None

    @model_validator(mode="after")
    def _check_both_sides(self) -> Self:
        starts, ends = self.startSequenceNumbers, self.endSequenceNumbers
        if self.minimumMessageTime and self.maximumMessageTime and self.minimumMessageTime > self.maximumMessageTime:
            raise ValueError("minimumMessageTime is later than maximumMessageTime: no record would be taken")
        if starts is None and self.startPosition is None:
            raise ValueError("give startSequenceNumbers or startPosition")
        if ends is None and self.endPosition is None:
            raise ValueError("give endSequenceNumbers or endPosition")
        if starts is None or ends is None:
            return self
        if starts.keys() != ends.keys():
            only = sorted(starts.keys() ^ ends.keys())
            raise ValueError(f"startSequenceNumbers and endSequenceNumbers must name the same partitions, also {only}")
        wrong = [p for p in sorted(starts) if starts[p] > ends[p]]
        if wrong:
            p = wrong[0]
            raise ValueError(f"partition {p}: the start {starts[p]} lies behind the end {ends[p]}")
        return self

    @property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """By partition, ``[start, end)``; empty while a side is a position only."""
        starts, ends = self.startSequenceNumbers or {}, self.endSequenceNumbers or {}
        return {p: (starts[p], ends[p]) for p in sorted(starts.keys() & ends.keys())}


def check_beside_bounds(topic_pattern: str | None, replicas: int, *, scales: bool) -> None:
    """Raises ``ValueError`` for what else an ``ioConfig`` with bounds may not ask for."""
    if topic_pattern is not None:
        raise ValueError("boundedStreamConfig needs a topic, not a topicPattern: offsets are those of one topic")
    if replicas > 1:
        raise ValueError("replicas must be 1 with boundedStreamConfig: after a failure the next task goes on")
    if scales:
        raise ValueError("autoScalerConfig cannot be used with boundedStreamConfig: give taskCount")


def with_bounds_of_task(io_config: dict[str, Any]) -> dict[str, Any]:
    """The ``ioConfig`` of Druid's ``index_kafka`` task as one with a ``boundedStreamConfig``. Raises ``ValueError``."""
    written = {side: next((io_config[n] for n in names if io_config.get(n)), None) for side, names in _FIELDS.items()}
    if not any(written.values()):
        return io_config
    if io_config.get("useTransaction") is False:
        raise ValueError("useTransaction cannot be false: a publish is always one transaction")
    own = {*_FIELDS["start"], *_FIELDS["end"], *_TIMES, *_NAMES_OF_SEQUENCE}
    topic = io_config.get("topic") or next((_topic_of(w) for w in written.values() if w), None)
    bounds = {_FIELDS[side][0]: _offsets(side, value, topic) for side, value in written.items() if value}
    bounds |= {name: io_config[name] for name in _TIMES if name in io_config}
    rest = {name: value for name, value in io_config.items() if name not in own}
    return {**rest, "topic": topic, "boundedStreamConfig": bounds}


def _topic_of(written: Any) -> Any:
    return (written.get("stream") or written.get("topic")) if isinstance(written, dict) else None


def _offsets(side: str, written: Any, topic: Any) -> Any:
    name = _FIELDS[side][0]
    offsets = next((written[m] for m in _MAPS if m in written), None) if isinstance(written, dict) else None
    if offsets is None:
        raise ValueError(f'{name} must be like {{"stream": "topic", "partitionSequenceNumberMap": {{"0": 100}}}}')
    if _topic_of(written) not in (None, topic):
        raise ValueError(f"{name}.stream must equal topic or be left out")
    if written.get("exclusivePartitions"):
        raise ValueError(f"{name}.exclusivePartitions must be empty: reading begins at the start itself")
    return offsets
