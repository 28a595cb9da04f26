"""Reads stored specs: documents in canonical form, without secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ingestion.specs.errors import SpecError, issues_of
from ingestion.specs.inputs.io_config import IOConfig
from ingestion.specs.inputs.sources import AnyIOConfig, model_of
from ingestion.specs.source_traits import UNREADABLE

Document = Mapping[str, Any]
_ANY: TypeAdapter[IOConfig] = TypeAdapter(AnyIOConfig)
# What of an ioConfig is good to know though the rest can't be read, and is as it stands in JSON.
_PLAIN = (
    "topic",
    "topicPattern",
    "groupId",
    "assignment",
    "taskCount",
    "replicas",
    "useEarliestOffset",
    "startPosition",
    "connection",
    "consumerProperties",
)
_EMPTY: dict[str, Any] = {"topic": "", "groupId": "", "consumerProperties": {}}
# What may change while a task goes on.
_SCALING = ("taskCount", "autoScalerConfig")


def read_io_config(spec: Document) -> IOConfig:
    """Of a stored spec. Raises ``SpecError``."""
    written = _raw_io_config(spec)
    try:
        return _ANY.validate_python(written)
    except ValidationError as error:
        raise SpecError(issues_of(error, written)) from None


def io_config_of(spec: Document) -> IOConfig:
    """Of a spec that may have been stored by an earlier version, with any of its source's names.

    What can't be read under today's rules has its defaults, and says so in ``problem``.
    """
    try:
        return _cached_io_config(json.dumps(_raw_io_config(spec)))
    except SpecError as problem:
        return _partial_io_config(_raw_io_config(spec), problem)


@lru_cache(maxsize=2048)
def _cached_io_config(io_config: str) -> IOConfig:
    """Lists ask for those of all supervisors again and again. What is stored has no secrets in it."""
    return read_io_config({"ioConfig": json.loads(io_config)})


def with_task_count(spec: Document, task_count: int) -> dict[str, Any]:
    """The spec with another number of indexers."""
    parts = spec["spec"]
    return {**spec, "spec": {**parts, "ioConfig": {**parts["ioConfig"], "taskCount": task_count}}}


def for_topic(spec: Document, topic: str) -> dict[str, Any]:
    """A spec of one of the topics that its pattern matches, without an id."""
    parts = spec["spec"]
    io_config = {name: value for name, value in parts["ioConfig"].items() if name != "topicPattern"}
    outer = {name: value for name, value in spec.items() if name != "id"}
    return {**outer, "spec": {**parts, "ioConfig": {**io_config, "topic": topic}}}


def for_ranges(spec: Document, bounds: Mapping[str, Any], task_count: int) -> dict[str, Any]:
    """A spec of a bounded read of the same topic, without an id: by itself, and with as many indexers as is said."""
    parts = spec["spec"]
    left_out = ("topicPattern", "autoScalerConfig", "idleConfig", "replicas")
    io_config = {name: value for name, value in parts["ioConfig"].items() if name not in left_out}
    outer = {name: value for name, value in spec.items() if name not in ("id", "suspended")}
    bounded = {**io_config, "taskCount": task_count, "boundedStreamConfig": dict(bounds)}
    return {**outer, "spec": {**parts, "ioConfig": bounded}}


def without_scaling(spec: Document) -> dict[str, Any]:
    """What two specs have in common that differ only in how many indexers there are to be."""
    parts = spec["spec"]
    return {**parts, "ioConfig": {name: value for name, value in parts["ioConfig"].items() if name not in _SCALING}}


def _raw_io_config(spec: Document) -> Any:
    return spec.get("spec", spec).get("ioConfig")


def _partial_io_config(written: Any, problem: SpecError) -> IOConfig:
    model = model_of(written) or _UnknownIOConfig
    io_config = written if isinstance(written, Mapping) else {}
    readable = {name: io_config[name] for name in _PLAIN if name in io_config and name in model.model_fields}
    empty = {name: value for name, value in _EMPTY.items() if name in model.model_fields}
    needed = {name: value for name, value in empty.items() if model.model_fields[name].is_required()}
    partial = model.model_construct(**{**needed, **readable})
    partial.note_problem(problem)
    return partial


class _UnknownIOConfig(IOConfig):
    """The ioConfig of a source that this version does not have."""

    NAMES = ()
    TRAITS = (UNREADABLE,)

    type: str = "unreadable"
    topic: str = ""
    taskCount: int = 0
    replicas: int = 1
    pollTimeout: int = 0
    useEarliestOffset: bool = True
