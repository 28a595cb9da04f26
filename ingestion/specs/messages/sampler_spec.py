"""A sampler's request in Druid's form: a spec as far as it is written, and how much to sample.

What is written is read by the models of a whole spec, so that the same is allowed, and refused at the same place. What
is missing gets a stand-in that no answer shows. Of a type that is no stream's, only what says how records are read is
looked at.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from ingestion.specs.base import SpecModel
from ingestion.specs.errors import SpecError, SpecIssue, issue_at, issues_of
from ingestion.specs.formats.input_format import CsvInputFormat, DelimitedInputFormat, JsonInputFormat, as_single_row
from ingestion.specs.inputs.io_config import KafkaIOConfig
from ingestion.specs.inputs.sources import all_traits, model_named
from ingestion.specs.messages.sampling import MAX_ROWS, Place, SampleOrder
from ingestion.specs.tasks.batch import BatchTaskSpec
from ingestion.specs.tasks.ingestion_spec import IngestionSpec, SupervisorSpec, parse_submitted

INLINE_TYPES = ("inline", "index", "index_parallel")
# Not the name of a field: nothing is taken for a time, and no field is kept from being discovered.
NO_TIME: dict[str, Any] = {"column": "\x00 no time \x00", "missingValue": "1970-01-01T00:00:00Z"}
_USED_FIELDS = (
    "topic",
    "inputFormat",
    "lateMessageRejectionStartDateTime",
    "lateMessageRejectionPeriod",
    "earlyMessageRejectionPeriod",
    "tombstones",
)
_STAND_IN = "sample"
Part = TypeVar("Part", bound=SpecModel)
_NO_KAFKA = {"bootstrap.servers": "none:1"}
_PLACES: dict[Place, list[str]] = {
    "topic": ["ioConfig", "topic"],
    "consumerProperties": ["ioConfig", "consumerProperties"],
    "inputFormat": ["ioConfig", "inputFormat"],
    "dataSchema": ["dataSchema"],
    "decoder": [],
}


class SamplerConfig(SpecModel):
    """How much: ``numRows`` records at most, read from Kafka for ``timeoutMs`` at most."""

    numRows: int = Field(default=200, ge=1, le=MAX_ROWS)
    timeoutMs: int = Field(default=5_000, ge=100, le=15_000)


class InlineSource(SpecModel):
    """Records that were pasted: the lines of a text, or a list of records."""

    type: Literal["inline"]
    data: str | list[str]
    encoding: Literal["text", "base64"] = "text"  # Headgate's own

    @model_validator(mode="after")
    def _check_readable(self) -> InlineSource:
        self.records(1)
        return self

    def records(self, most: int, header_lines: int = 0) -> list[bytes]:
        """The first ``most`` records; blank lines are none. The first lines of a text stand before each other one."""
        texts = self.data
        if isinstance(texts, str):
            lines = [line.removesuffix("\r") for line in texts.split("\n") if line.strip()]
            header = "".join(f"{line}\n" for line in lines[:header_lines])
            texts = [header + line for line in lines[header_lines:]]
        return [self._bytes(number, text) for number, text in enumerate(texts)][:most]

    def _bytes(self, number: int, text: str) -> bytes:
        if self.encoding == "text":
            return text.encode()
        try:
            return b64decode(text, validate=True)
        except binascii.Error:
            raise ValueError(f"record {number + 1} of data is not base64") from None


@dataclass(frozen=True)
class SamplerSpec:
    """A request that can be carried out."""

    order: SampleOrder
    datasource: str | None  # the one it names
    flat: bool  # whether it was written so

    def issue(self, place: Place, message: str, within: Sequence[str | int] = ()) -> SpecIssue:
        """An error of a part of the spec, or of something ``within`` it, with its place in the user's document."""
        where = [*_PLACES[place], *within]
        return issue_at([*where] if self.flat or not where else ["spec", *where], message)


def sampler_types() -> list[str]:
    """What a request's type may be: Druid's types of each source, and those of pasted records."""
    source_types = (name for traits in all_traits() for name in (traits.supervisor_type, traits.task_type))
    return list(dict.fromkeys([*source_types, *INLINE_TYPES]))


def parse_sampler_spec(document: Any, schema_folder: str = "") -> SamplerSpec:
    """Read a request, flat or nested under ``spec``. Raises ``SpecError`` with every fault."""
    if not isinstance(document, dict):
        raise SpecError([issue_at([], "must be a JSON object")])
    kind, types = document.get("type"), sampler_types()
    if kind not in types:
        fault = "required field is missing" if kind is None else f"must be one of {', '.join(types)}, not {kind!r}"
        raise SpecError([issue_at(["type"], fault)])
    request = {name: value for name, value in document.items() if name != "samplerConfig"}
    completion = _Completion(kind, flat="spec" not in document)
    config, issues = _config(document.get("samplerConfig"))
    try:
        spec = parse_submitted(SupervisorSpec, {**request, "type": completion.source}, completion).spec
    except SpecError as error:
        issues += error.issues
    else:
        if spec.ioConfig.topicPattern is not None:
            issues.append(
                completion.issue(["ioConfig", "topicPattern"], "is for supervisors: use topic for the topic to sample")
            )
    issues += completion.issues
    if issues:
        raise SpecError(issues)
    return completion.result(spec, config, schema_folder)


def sampler_of_batch(spec: BatchTaskSpec) -> dict[str, Any]:
    """The request for records of files that are at hand: each with its file's header before it, if that has one."""
    written = spec.spec.ioConfig.line_format
    plain = written if isinstance(written, JsonInputFormat) else written.model_copy(update={"skipHeaderRows": 0})
    io_config = {
        "type": spec.type,
        "inputSource": {"type": "inline", "data": ""},
        "inputFormat": plain.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    schema = spec.canonical()["spec"]["dataSchema"]
    parts = {"dataSchema": schema, "ioConfig": io_config}
    return {"type": spec.type, "spec": parts, "samplerConfig": {"numRows": MAX_ROWS}}


def _config(written: Any) -> tuple[SamplerConfig, list[SpecIssue]]:
    issues: list[SpecIssue] = []
    config = _read(SamplerConfig, {} if written is None else written, ["samplerConfig"], issues)
    return config or SamplerConfig(), issues


class _Completion:
    """Puts stand-ins where a nested spec has nothing, and remembers where."""

    def __init__(self, kind: str, flat: bool) -> None:
        self._kind = kind
        self._flat = flat
        model = model_named(kind) or KafkaIOConfig  # of what is no stream's only that is looked at which all have
        self.source = model.TRAITS[0].supervisor_type
        self._names = model.NAMES
        self._sample_defaults = model.sample_defaults()
        self._inline: InlineSource | None = None
        self._named = self._timed = self._formatted = False
        self.issues: list[SpecIssue] = []

    def issue(self, place: list[str | int], message: str) -> SpecIssue:
        """An error at a place of the spec's three parts, with its place in the user's document."""
        return issue_at([*place] if self._flat else ["spec", *place], message)

    def __call__(self, nested: dict[str, Any]) -> dict[str, Any]:
        spec = nested.get("spec")
        if not isinstance(spec, dict):
            return nested
        if self._kind in INLINE_TYPES:
            spec = {name: spec[name] for name in ("dataSchema", "ioConfig") if name in spec}
        elif spec.get("type") in self._names:  # Druid's console writes the type here too
            spec = {name: value for name, value in spec.items() if name != "type"}
        schema, io_config = spec.get("dataSchema"), spec.get("ioConfig")
        return {
            **nested,
            "spec": {
                **spec,
                "dataSchema": self._schema({} if schema is None else schema),
                "ioConfig": self._io_config({} if io_config is None else io_config),
            },
        }

    def _schema(self, written: Any) -> Any:
        if not isinstance(written, dict):
            return written
        schema = {name: value for name, value in written.items() if value is not None}
        self._named = "dataSource" in schema
        self._timed = "timestampSpec" in schema
        return {"dataSource": _STAND_IN, "timestampSpec": NO_TIME, **schema}

    def _io_config(self, written: Any) -> Any:
        if not isinstance(written, dict):
            return written
        io_config = {name: value for name, value in written.items() if value is not None}
        pasted = self._look_for_records(io_config.pop("inputSource", None))
        if self._kind in INLINE_TYPES:
            io_config = {name: io_config[name] for name in _USED_FIELDS if name in io_config}
        self._formatted = "inputFormat" in io_config
        stand_ins: dict[str, Any] = {"inputFormat": {"type": "json"}, **self._sample_defaults}
        if pasted:
            io_config.pop("topicPattern", None)
            stand_ins |= {"topic": _STAND_IN, "consumerProperties": _NO_KAFKA}
        return {**stand_ins, **io_config}

    def _look_for_records(self, written: Any) -> bool:
        """Whether they are, or should be, in the request."""
        place = ["ioConfig", "inputSource"] if self._flat else ["spec", "ioConfig", "inputSource"]
        if written is not None:
            self._inline = _read(InlineSource, written, place, self.issues)
        elif self._kind in INLINE_TYPES:
            self.issues.append(issue_at([*place], "required field is missing"))
        return written is not None or self._kind in INLINE_TYPES

    def result(self, spec: IngestionSpec, config: SamplerConfig, schema_folder: str) -> SamplerSpec:
        """What is to be done, once all was read."""
        schema, read = spec.dataSchema, spec.ioConfig.inputFormat
        header = read.header_lines if isinstance(read, CsvInputFormat | DelimitedInputFormat) else 0
        in_files = self._kind in ("index", "index_parallel")
        io_config = spec.ioConfig.model_copy(update={"inputFormat": as_single_row(read)}) if in_files else spec.ioConfig
        order = SampleOrder.model_construct(
            data_schema=schema,
            io_config=io_config,
            formatted=self._formatted,
            timed=self._timed or any(t.name == "__time" for t in schema.transformSpec.transforms),
            records=None if self._inline is None else self._inline.records(config.numRows, header),
            rows=config.numRows,
            timeout_ms=config.timeoutMs,
            schema_folder=schema_folder,
        )
        return SamplerSpec(order, schema.dataSource if self._named else None, self._flat)


def _read(model: type[Part], written: Any, place: Sequence[str | int], issues: list[SpecIssue]) -> Part | None:
    """A part that is no part of a spec; None, and issues, if it can't be read."""
    try:
        return model.model_validate(written)
    except ValidationError as error:
        head = issue_at([*place], "")
        for issue in issues_of(error, written):
            path = f"{head.path}.{issue.path}" if issue.path else head.path
            issues.append(SpecIssue(path, head.pointer + issue.pointer, issue.message))
        return None
