"""The review's form beside the JSON: each step of a draft in a line, and its fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from controlplane.loading.documents import Document, value_at
from frontend.load.forms import IO, SCHEMA, StepForm
from frontend.load.parse_form import ParseForm
from frontend.load.row_forms import ReadingForm, SchemaForm, TimeForm
from frontend.load.steps import STEPS, Step
from ingestion.specs.source_traits import SHARE_GROUP

# What these offer comes from records: without any, applying them would take away what the draft has.
_NEED_RECORDS = ("parse", "schema")


@dataclass(frozen=True)
class Part:
    """One step of the draft."""

    step: Step
    gist: str  # what the document says of it, in a few words
    form: StepForm | None  # None where it can be changed on its own step alone

    @property
    def is_open(self) -> bool:
        """Somebody has typed into it, and it was not taken."""
        return self.form is not None and self.form.is_bound and self.form.has_changed()


def parts_of(document: Document, make_form: Callable[[Step], StepForm], has_records: bool) -> list[Part]:
    """Of every step but the last. ``made``: its form, with what it offers."""
    return [
        Part(step, _GISTS[step.name](document), make_form(step) if _is_shown(step, has_records) else None)
        for step in STEPS[:-1]
    ]


def _is_shown(step: Step, has_records: bool) -> bool:
    return has_records or step.name not in _NEED_RECORDS


def _connection(document: Document) -> str:
    servers = value_at(document, (*IO, "consumerProperties", "bootstrap.servers"))
    return str(value_at(document, (*IO, "connection")) or servers or "none yet")


def _topic(document: Document) -> str:
    return str(value_at(document, (*IO, "topic")) or "none yet")


def _parse(document: Document) -> str:
    shown = ParseForm(None, document).initial
    flat = len(shown["flatten"])
    more = [f"{flat} nested fields" if flat > 1 else "1 nested field"] if flat else []
    return ", ".join([str(shown["form"]), *(["with Kafka's own fields"] if shown["wrapped"] else []), *more])


def _time(document: Document) -> str:
    shown = TimeForm(None, document).initial
    segments = shown["segments"].replace("_", " ").lower()
    return f"{shown['column'] or 'no field yet'}, {shown['form']}; segment granularity: {segments}"


def _transform(document: Document) -> str:
    spec = value_at(document, (*SCHEMA, "transformSpec")) or {}
    records = "filtered records" if spec.get("filter") else "all records"
    names = [str(transform.get("name")) for transform in spec.get("transforms") or [] if isinstance(transform, dict)]
    return f"{records}; transforms: {', '.join(names)}" if names else records


def _columns(document: Document) -> str:
    form = SchemaForm(None, document)
    columns = f"{len(form.named)} named" if form.named else ""
    parts = ", ".join(part for part in ("every field" if form.discovers else "", columns) if part)
    return f"{parts or 'none yet'}; {'rollup' if form.initial['rollup'] else 'no rollup'}"


def _reading(document: Document) -> str:
    shown = ReadingForm(None, document).initial
    who = f"share group {shown['group']}" if shown["source"] == SHARE_GROUP.kind else "stored offsets"
    count = shown["indexers"]
    return f"{who}, {count} indexer{'' if count == 1 else 's'}"


_GISTS: dict[str, Callable[[Document], str]] = {
    "connection": _connection,
    "topic": _topic,
    "parse": _parse,
    "time": _time,
    "transform": _transform,
    "schema": _columns,
    "reading": _reading,
}
