"""What becomes of the records, and who reads them: time, transforms, columns, source, name."""

from __future__ import annotations

import json
from typing import Any, cast

from django import forms
from django.http import QueryDict

from controlplane.loading.documents import Document, value_at, with_value
from frontend.load.fields import area, check, metric_lines, metrics_of, number, select, text, transforms_of
from frontend.load.forms import AS_WRITTEN, IO, SCHEMA, StepForm, keep_choice
from ingestion.specs.kafka.positions import Position
from ingestion.specs.source_traits import OFFSET_RANGE, SHARE_GROUP

_GRANULARITIES = ("MINUTE", "FIFTEEN_MINUTE", "HOUR", "SIX_HOUR", "DAY", "WEEK", "MONTH", "YEAR")
_AT_POSITION = "p"
_CUTS = ("NONE", "SECOND", "MINUTE", "FIFTEEN_MINUTE", "HOUR", "DAY")


def _choices(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, name.replace("_", " ").capitalize()) for name in names]


class TimeForm(StepForm):
    column = forms.CharField(label="Field", max_length=1000, widget=text("timestamp"))
    form = forms.CharField(
        label="Format", max_length=200, widget=text("auto"),
        help_text="auto, iso, millis, micro, nano, posix, or a pattern such as yyyy-MM-dd HH:mm:ss.",
    )  # fmt: skip
    missing = forms.CharField(
        label="Default timestamp", required=False, max_length=40, widget=text("none: quarantined")
    )
    segments = forms.ChoiceField(label="Segment granularity", choices=_choices(_GRANULARITIES), widget=select())

    def __init__(self, data: Any, document: Document, prefix: str | None = None) -> None:
        super().__init__(data, document, prefix)
        keep_choice(self.fields["segments"], self.initial["segments"])

    def read_document(self, document: Document) -> dict[str, Any]:
        written = value_at(document, (*SCHEMA, "timestampSpec")) or {}
        segments = value_at(document, (*SCHEMA, "granularitySpec", "segmentGranularity")) or "DAY"
        return {
            "column": written.get("column", ""),
            "form": written.get("format", "auto"),
            "missing": written.get("missingValue"),
            "segments": segments.upper() if isinstance(segments, str) else AS_WRITTEN,
        }

    def edited(self) -> Document:
        data = self.cleaned_data
        place = (*SCHEMA, "timestampSpec")
        spec = {"column": self.value_to_store("column"), "format": self.value_to_store("form")}
        document = with_value(self.document, place, {**(value_at(self.document, place) or {}), **spec})
        document = with_value(
            document, (*place, "missingValue"), self.value_to_store("missing") if data["missing"] else None
        )
        if data["segments"] == AS_WRITTEN:
            return document
        return with_value(document, (*SCHEMA, "granularitySpec", "segmentGranularity"), data["segments"])


WORDS = "expression-words"  # the element that holds the names of the fields


class TransformForm(StepForm):
    places = {
        "condition": "/spec/dataSchema/transformSpec/filter",
        "transforms": "/spec/dataSchema/transformSpec/transforms",
    }
    language = forms.ChoiceField(
        label="Language", choices=[("druid", "Druid expressions"), ("sql", "SQL (DuckDB)")], widget=select()
    )
    condition = forms.CharField(
        label="Keep records where",
        required=False,
        max_length=10_000,
        widget=text("amount > 0", **{"data-expressions": WORDS}),
    )
    transforms = forms.CharField(
        label="Transforms, one per line: name = expression", required=False, max_length=100_000,
        widget=area(5, "total = price * amount", **{"data-expressions": WORDS}),
    )  # fmt: skip

    def with_nonce(self, nonce: str) -> TransformForm:
        """Its editors bring styles with them, which the page's policy must know."""
        for name in ("condition", "transforms"):
            self.fields[name].widget.attrs["data-nonce"] = nonce
        return self

    def read_document(self, document: Document) -> dict[str, Any]:
        spec = value_at(document, (*SCHEMA, "transformSpec")) or {}
        transforms = spec.get("transforms") or []
        condition = spec.get("filter") or {}
        written = [t for t in [*transforms, condition] if isinstance(t, dict) and t.get("type") == "expression"]
        lines = [f"{t.get('name')} = {t.get('expression')}" for t in transforms if isinstance(t, dict)]
        return {
            "language": written[0].get("language", "druid") if written else "druid",
            "condition": condition.get("expression", "") if condition.get("type") == "expression" else "",
            "transforms": "\n".join(lines),
        }

    @property
    def other_filter(self) -> str:
        """The filter that this form can't show; it stays while the field is left empty."""
        condition = value_at(self.document, (*SCHEMA, "transformSpec", "filter"))
        return json.dumps(condition) if condition and condition.get("type") != "expression" else ""

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            data["transforms"] = transforms_of(data.get("transforms", ""), data.get("language", "druid"))
        except forms.ValidationError as error:
            self.add_error("transforms", error)
        return data

    def edited(self) -> Document:
        data = self.cleaned_data
        document = with_value(self.document, (*SCHEMA, "transformSpec", "transforms"), data["transforms"] or None)
        place = (*SCHEMA, "transformSpec", "filter")
        if data["condition"]:
            condition = {
                "type": "expression",
                "expression": self.value_to_store("condition"),
                "language": data["language"],
            }
            return with_value(document, place, condition)
        return document if self.other_filter else with_value(document, place, None)


class SchemaForm(StepForm):
    discover = forms.BooleanField(label="Every field becomes a column, even new ones", required=False, widget=check())
    cut = forms.ChoiceField(label="Query granularity", choices=_choices(_CUTS), widget=select())
    rollup = forms.BooleanField(label="Rollup", required=False, widget=check())
    metrics = forms.CharField(
        label="Metrics, one per line: type name field", required=False, max_length=100_000,
        widget=area(3, "count rows\nlongSum bytes size"),
    )  # fmt: skip

    def __init__(self, data: Any, document: Document, prefix: str | None = None) -> None:
        super().__init__(data, document, prefix)
        keep_choice(self.fields["cut"], self.initial["cut"])
        if self.initial["metrics"] is None:
            self.fields["metrics"].disabled = True
            self.fields[
                "metrics"
            ].help_text = "This form cannot show all options of these metrics. Edit them in the last step."

    def read_document(self, document: Document) -> dict[str, Any]:
        granularity = value_at(document, (*SCHEMA, "granularitySpec")) or {}
        cut = granularity.get("queryGranularity") or "NONE"
        return {
            "discover": self.discovers,
            "cut": cut.upper() if isinstance(cut, str) else AS_WRITTEN,
            "rollup": granularity.get("rollup", True),
            "metrics": metric_lines(value_at(document, (*SCHEMA, "metricsSpec")) or []),
        }

    column_types = ("string", "long", "float", "double", "json", "auto")

    @property
    def column_name(self) -> str:
        """What the boxes of its columns are called."""
        return self.add_prefix("column")

    @property
    def type_name(self) -> str:
        """What the types of its columns are called, before the column's name."""
        return self.add_prefix("type:")

    def has_changed(self) -> bool:
        columns = {name: self._column(name) for name in self._columns()}
        return bool(super().has_changed()) or columns != self.named

    @property
    def discovers(self) -> bool:
        spec = value_at(self.document, (*SCHEMA, "dimensionsSpec")) or {}
        return bool(spec.get("useSchemaDiscovery") or spec.get("includeAllDimensions") or not spec.get("dimensions"))

    @property
    def named(self) -> dict[str, dict[str, Any]]:
        """The columns that the document names."""
        written = value_at(self.document, (*SCHEMA, "dimensionsSpec", "dimensions")) or []
        schemas = [{"name": d} if isinstance(d, str) else d for d in written]
        named = [d for d in schemas if isinstance(d, dict) and isinstance(d.get("name"), str)]
        return {d["name"]: {"type": "string", **d} for d in named}

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.fields["metrics"].disabled:
            try:
                data["metrics"] = metrics_of(data.get("metrics", ""))
            except forms.ValidationError as error:
                self.add_error("metrics", error)
        if not data.get("discover") and not self._columns():
            self.add_error("discover", "Choose columns below, or make every field a column.")
        return data

    def edited(self) -> Document:
        data, place = self.cleaned_data, (*SCHEMA, "dimensionsSpec")
        columns = [self._column(name) for name in self._columns()]
        if data["discover"]:  # beside fields of records, what transforms make is stored only where it is named
            columns += [
                {"type": "auto", "name": name} for name in self._transformed_columns if name not in self._columns()
            ]
        before = dict(value_at(self.document, place) or {})
        # Fields that were discovered as strings stay so.
        as_strings = self.discovers and not before.get("useSchemaDiscovery")
        mode = "includeAllDimensions" if as_strings else "useSchemaDiscovery"
        others = {k: v for k, v in before.items() if k not in ("includeAllDimensions", "useSchemaDiscovery")}
        dimensions = {**others, mode: data["discover"], "dimensions": columns}
        document = with_value(self.document, place, dimensions)
        document = with_value(document, (*SCHEMA, "granularitySpec", "rollup"), data["rollup"])
        if data["cut"] != AS_WRITTEN:
            document = with_value(document, (*SCHEMA, "granularitySpec", "queryGranularity"), data["cut"])
        if self.fields["metrics"].disabled:
            return document
        return with_value(document, (*SCHEMA, "metricsSpec"), data["metrics"] or None)

    @property
    def _transformed_columns(self) -> list[str]:
        """The columns that transforms make."""
        transforms = value_at(self.document, (*SCHEMA, "transformSpec", "transforms")) or []
        names = [t.get("name") for t in transforms if isinstance(t, dict)]
        return [name for name in names if isinstance(name, str) and name != "__time"]

    def _columns(self) -> list[str]:
        return cast(QueryDict, self.data).getlist(self.column_name)

    def _column(self, name: str) -> dict[str, Any]:
        column = {
            **self.named.get(name, {}),
            "name": name,
            "type": self.data.get(f"{self.type_name}{name}") or "string",
        }
        if column["type"] != "auto":
            column.pop("castToType", None)
        return column


class ReadingForm(StepForm):
    source = forms.ChoiceField(label="Consumer type", widget=forms.RadioSelect({"class": "form-check-input"}))
    group = forms.CharField(label="Share group (groupId)", required=False, max_length=249, widget=text("orders-group"))
    earliest = forms.ChoiceField(
        label="Start from",
        choices=[
            ("1", "earliest: all records in the topic"),
            ("0", "latest: only new records"),
            (_AT_POSITION, "a time, or a duration before now"),
        ],
        widget=select(),
    )
    start = forms.CharField(
        label="Time or duration (startPosition)",
        required=False,
        max_length=100,
        widget=text("PT30M"),
        help_text="Such as 2026-11-27T09:00:00Z, or PT30M for 30 minutes ago.",
    )
    indexers = forms.IntegerField(label="Indexers (taskCount)", min_value=1, max_value=1000, widget=number())

    def __init__(self, data: Any, document: Document, prefix: str | None = None) -> None:
        super().__init__(data, document, prefix)
        self.fields["source"].choices = [  # type: ignore[attr-defined]
            (
                OFFSET_RANGE.kind,
                "Stored offsets: exactly once, in order within a partition, fastest. "
                "Each indexer needs a slot. More indexers than partitions have no effect.",
            ),
            (
                SHARE_GROUP.kind,
                "Share group: exactly once, without order, any number of indexers. A slow record does not block its "
                "partition. Needs Kafka 4.2 or newer. Stores fewer rows/s than stored offsets. "
                "Makes small segments, which compaction merges later.",
            ),
        ]

    def read_document(self, document: Document) -> dict[str, Any]:
        io_config = document["spec"]["ioConfig"]
        shared = document.get("type") in (SHARE_GROUP.task_type, "kafka_share_group")
        name = value_at(document, (*SCHEMA, "dataSource")) or io_config.get("topic") or ""
        start = io_config.get("startPosition") or ""
        return {
            "source": SHARE_GROUP.kind if shared else OFFSET_RANGE.kind,
            "group": io_config.get("groupId") or (f"{name}-group" if name else ""),
            "earliest": _AT_POSITION if start else "1" if io_config.get("useEarliestOffset", shared) else "0",
            "start": start,
            "indexers": io_config.get("taskCount", 1),
        }

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if data.get("source") == SHARE_GROUP.kind and not data.get("group"):
            self.add_error("group", "A share group needs a name.")
        if data.get("earliest") == _AT_POSITION:
            try:
                Position.parse(data.get("start", ""))
            except ValueError as error:
                self.add_error("start", f"{error}.")
        return data

    def edited(self) -> Document:
        data = self.cleaned_data
        shared = data["source"] == SHARE_GROUP.kind
        was_shared = self.initial["source"] == SHARE_GROUP.kind
        document = self.document
        if shared != was_shared:
            document = _without_source_fields(document)
        traits = SHARE_GROUP if shared else OFFSET_RANGE
        document = with_value(document, ("type",), traits.supervisor_type)
        if shared:
            document = with_value(document, (*IO, "groupId"), self.value_to_store("group"))
        start = self.value_to_store("start") if data["earliest"] == _AT_POSITION else None
        document = with_value(document, (*IO, "startPosition"), start)
        document = with_value(document, (*IO, "useEarliestOffset"), None if start else data["earliest"] == "1")
        return with_value(document, (*IO, "taskCount"), data["indexers"])


# Of the ioConfig: what goes when another source reads.
SOURCE_FIELDS = ("type", "groupId", "groupConfig", "consumersPerIndexer", "assignment", "replicas", "pollTimeout")


def _without_source_fields(document: Document) -> Document:
    """Without what only the source has that it was for."""
    for name in SOURCE_FIELDS:
        document = with_value(document, (*IO, name), None)
    return (
        with_value(document, ("spec", "tuningConfig", "type"), None) if "tuningConfig" in document["spec"] else document
    )


class ReviewForm(StepForm):
    """The whole document: see ``frontend.forms.SpecForm`` for how its text is read."""

    datasource = forms.CharField(label="Datasource", max_length=200, widget=text("orders"))

    def read_document(self, document: Document) -> dict[str, Any]:
        return {"datasource": value_at(document, (*SCHEMA, "dataSource")) or ""}

    def edited(self) -> Document:
        return with_value(self.document, (*SCHEMA, "dataSource"), self.cleaned_data["datasource"].strip())
