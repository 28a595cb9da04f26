"""The wizard's steps, in their order, and what each shows of the records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from controlplane.common.errors import HeadgateError, InvalidInput
from controlplane.connections.browsing import Cluster
from controlplane.loading import step_previews
from controlplane.loading.documents import value_at, with_value
from controlplane.loading.field_profiles import NestedField, field_profiles, nested_fields
from controlplane.loading.implausible_times import OddTimes, odd_times
from controlplane.loading.models import Draft
from controlplane.teams.models import User
from frontend import topic_list
from frontend.load.forms import IO, SCHEMA, ConnectionForm, StepForm, TopicForm, with_topic
from frontend.load.parse_form import ParseForm, flatten_choice, flatten_field, with_format
from frontend.load.row_forms import SOURCE_FIELDS, ReadingForm, ReviewForm, SchemaForm, TimeForm, TransformForm
from frontend.preview import Preview, preview_of, with_headers
from frontend.tables import Column
from ingestion.specs.messages.sampling import STORED, SampleAnswer

TOPICS = replace(
    topic_list.TOPICS,
    name="topics-to-load",
    columns=(*topic_list.TOPICS.columns, Column("use", "Use", fixed=True, has_hidden_head=True)),
)
MAX_LINES = 30  # of records that are shown, and as many of those that have faults
Query = Mapping[str, str]  # of the address
MakeContext = Callable[[User, Draft, Query], dict[str, Any]]


@dataclass(frozen=True)
class Step:
    """One page of the wizard."""

    name: str
    label: str
    form: type[StepForm]
    make_context: MakeContext  # what its page shows beside the form; it may raise what the sampler raises
    places: tuple[str, ...]  # what its form has of the spec, as JSON pointers


def _connection(user: User, draft: Draft, query: Query) -> dict[str, Any]:
    """Nothing; or what is wrong with servers of its own."""
    step_previews.check_connection_allowed(draft)
    return {}


def _nothing(user: User, draft: Draft, query: Query) -> dict[str, Any]:
    return {}


def _records(user: User, draft: Draft, query: Query) -> dict[str, Any]:
    """Kafka's own, without any spec."""
    if not value_at(draft.document, (*IO, "topic")):
        return _topics(step_previews.cluster_of(user, draft), query)
    raw = with_value(with_value(draft.document, (*IO, "inputFormat"), None), SCHEMA, {})
    try:
        spec, answer = step_previews.sample_rows(user, draft, raw)
    except HeadgateError as error:
        if not any(fault.pointer == "/spec/ioConfig/topic" for fault in error.errors):
            raise
        missing_topic = str(value_at(draft.document, (*IO, "topic")))
        return {"look_problem": error, **_topics(step_previews.cluster_of(user, draft), query, missing_topic)}
    sample = step_previews.get_or_read_records(user, draft)
    preview = with_headers(_cut_lines(preview_of(spec, answer), answer), sample.records)
    return {"sample": sample, "size": step_previews.estimate_topic_size(user, draft), "preview": preview}


def _topics(cluster: Cluster | None, query: Query, missing_topic: str = "") -> dict[str, Any]:
    """To choose from. ``missing_topic``: a name that there is not, which may be mistyped."""
    return (
        {}
        if cluster is None
        else {"cluster": cluster, "topics": topic_list.topics_page(cluster, query, TOPICS, missing_topic)}
    )


def _formats(user: User, draft: Draft, query: Query) -> dict[str, Any]:
    context: dict[str, Any] = {"formats": step_previews.format_guesses(user, draft)}
    make_context = _rows if value_at(draft.document, (*IO, "inputFormat")) else _records
    return context | make_context(user, draft, query)


def _times(user: User, draft: Draft, query: Query) -> dict[str, Any]:
    return {"times": step_previews.time_guesses(user, draft)} | _rows(user, draft, query)


def _rows(user: User, draft: Draft, query: Query) -> dict[str, Any]:
    """Left as they came, right as they would be stored."""
    spec, answer = step_previews.sample_rows(user, draft)
    return {
        "sample": step_previews.get_or_read_records(user, draft),
        "preview": _cut_lines(preview_of(spec, answer), answer),
        "ratio": _ratio(answer),
        "odd": _odd(draft, answer),
        **_form_choices(answer),
    }


def _form_choices(answer: SampleAnswer) -> dict[str, Any]:
    """What forms offer of the records: their fields, and what is nested in them."""
    return {
        "profiles": field_profiles(answer.fields, answer.read),
        "nested": [_choice(nested) for nested in nested_fields(answer.read)],
    }


def _choice(nested: NestedField) -> tuple[str, str]:
    return flatten_choice(nested.nodes, f"{'.'.join(nested.nodes)} ({nested.share:.0%}): {nested.example}")


def _review(user: User, draft: Draft, query: Query) -> dict[str, Any]:
    spec, answer = step_previews.sample_rows(user, draft)
    context = _form_choices(answer) | {"outlook": step_previews.preview_from_sample(user, draft, spec, answer)}
    context["odd"] = _odd(draft, answer)
    return context | ({"dry_run": step_previews.dry_run_change(user, draft)} if draft.supervisor is not None else {})


def _ratio(answer: SampleAnswer) -> float | None:
    stored = sum(record.outcome in STORED for record in answer.records)
    return stored / len(answer.rollup) if answer.rollup else None


def _odd(draft: Draft, answer: SampleAnswer) -> OddTimes | None:
    form = str(value_at(draft.document, (*SCHEMA, "timestampSpec", "format")) or "auto")
    return odd_times(answer, form, timezone.now())


def _cut_lines(preview: Preview, answer: SampleAnswer) -> Preview:
    """Records with faults first: they are what is looked for."""
    fine = [line for line in preview.lines if not line.record.error and line.record.outcome != "unparseable"]
    bad = [line for line in preview.lines if line.record.error or line.record.outcome == "unparseable"]
    rollup = None if preview.rollup is None else preview.rollup[:MAX_LINES]
    return replace(preview, lines=[*bad[:MAX_LINES], *fine[:MAX_LINES]], rollup=rollup)


def _io(*names: str) -> tuple[str, ...]:
    return tuple(f"/spec/ioConfig/{name}" for name in names)


def _schema(*names: str) -> tuple[str, ...]:
    return tuple(f"/spec/dataSchema/{name}" for name in names)


_READING = ("/type", *_io(*SOURCE_FIELDS, "useEarliestOffset", "startPosition", "taskCount"))
STEPS = (
    Step("connection", "Connection", ConnectionForm, _connection, _io("connection", "consumerProperties")),
    Step("topic", "Topic", TopicForm, _records, _io("topic")),
    Step("parse", "Parse", ParseForm, _formats, _io("inputFormat")),
    Step("time", "Time", TimeForm, _times, _schema("timestampSpec", "granularitySpec/segmentGranularity")),
    Step("transform", "Filter, transform", TransformForm, _rows, _schema("transformSpec")),
    Step("schema", "Columns", SchemaForm, _rows, _schema("dimensionsSpec", "metricsSpec", "granularitySpec")),
    Step("reading", "Reading", ReadingForm, _nothing, _READING),
    Step("review", "Review", ReviewForm, _review, _schema("dataSource")),
)
BY_NAME = {step.name: step for step in STEPS}


def step_of(draft: Draft) -> Step:
    """Where its last reader was."""
    return BY_NAME.get(draft.step, STEPS[0])


def next_of(step: Step) -> Step:
    """The last one has none after it."""
    return STEPS[min(STEPS.index(step) + 1, len(STEPS) - 1)]


def before(step: Step) -> Step | None:
    index = STEPS.index(step)
    return STEPS[index - 1] if index else None


def page_context(step: Step, user: User, draft: Draft, query: Query) -> dict[str, Any]:
    """What its page shows of the records, or why it can show nothing."""
    try:
        return step.make_context(user, draft, query)
    except HeadgateError as error:
        return {"look_problem": error, "profiles": None}


def with_guess(draft: Draft, guess: Any) -> dict[str, Any]:
    """The document with what a button offered: a topic, a format, or a field with its time. Raises ``InvalidInput``."""
    document = draft.document
    if isinstance(guess, dict) and isinstance(guess.get("input_format"), dict):
        wrapped = value_at(document, (*IO, "inputFormat", "type")) == "kafka"
        return with_format(document, guess["input_format"], wrapped)
    if isinstance(guess, dict) and isinstance(guess.get("topic"), str) and guess["topic"]:
        return with_topic(document, guess["topic"])
    if isinstance(guess, dict) and isinstance(guess.get("column"), str):
        spec = {**(value_at(document, (*SCHEMA, "timestampSpec")) or {}), "column": guess["column"]}
        document = with_value(
            document, (*SCHEMA, "timestampSpec"), {**spec, "format": str(guess.get("format", "auto"))}
        )
        if guess.get("kafka"):
            return _with_kafka_format(document)
        nodes = guess.get("nodes")
        return _with_flatten_field(document, nodes) if isinstance(nodes, list) and nodes else document
    raise InvalidInput("This page made no such suggestion.")


def _with_kafka_format(document: dict[str, Any]) -> dict[str, Any]:
    """Kafka's own time is a field of the wrapping format."""
    written = value_at(document, (*IO, "inputFormat")) or {"type": "json"}
    if written.get("type") == "kafka":
        return document
    return with_format(document, written, wrapped=True)


def _with_flatten_field(document: dict[str, Any], nodes: list[Any]) -> dict[str, Any]:
    """The nested value as a field of its own."""
    written = value_at(document, (*IO, "inputFormat")) or {"type": "json"}
    place = (*IO, "inputFormat", "valueFormat") if written.get("type") == "kafka" else (*IO, "inputFormat")
    field = flatten_field([str(node) for node in nodes])
    spec = value_at(document, (*place, "flattenSpec")) or {}
    fields = [f for f in spec.get("fields") or [] if not (isinstance(f, dict) and f.get("name") == field["name"])]
    return with_value(document, (*place, "flattenSpec"), {**spec, "fields": [*fields, field]})
