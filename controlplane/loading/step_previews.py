"""What each step of the wizard shows: a draft tried on the records that were read for it."""

from __future__ import annotations

from typing import Any

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.connections.browsing import Cluster
from controlplane.connections.named_connections import check_own_allowed, draft_properties
from controlplane.connections.selectors import get_cluster
from controlplane.connections.topic_size import TopicSize, size_of
from controlplane.datasources.sampling import check_masks, take_sample
from controlplane.loading import samples
from controlplane.loading.documents import Document, to_nested, value_at, with_value
from controlplane.loading.dry_run import DryRun, compare_samples
from controlplane.loading.ingestion_preview import IngestionPreview, preview_ingestion
from controlplane.loading.models import Draft
from controlplane.loading.samples import MAX_BYTES, MAX_RECORDS, Sample
from controlplane.loading.services import submission_document
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.messages.sampler_spec import SamplerSpec
from ingestion.specs.messages.sampling import FormatGuess, SampleAnswer, TimeGuess, Wanted

READ_MS = 8_000


def cluster_of(user: User, draft: Draft) -> Cluster | None:
    """That of the connection that it names, or of its own properties; None if it has neither.

    Raises ``NotFound`` (the connection was deleted), ``InvalidInput``.
    """
    name = value_at(draft.document, ("spec", "ioConfig", "connection"))
    if name:
        return Cluster.of(get_cluster(user, draft.team.name, name))
    document = submission_document(draft)
    properties = document["spec"]["ioConfig"].get("consumerProperties")
    if not properties:
        return None
    require(user, Action.OPERATE, draft.team)
    return Cluster(
        str(properties.get("bootstrap.servers", "")), draft_properties(draft.team, document), f"draft:{draft.pk}"
    )


def check_connection_allowed(draft: Draft) -> None:
    """Raise ``InvalidInput`` if it says itself what it connects to, and its team takes connections by name only."""
    io_config = draft.document["spec"]["ioConfig"]
    if io_config.get("consumerProperties") and not io_config.get("connection"):
        check_own_allowed(draft.team, draft.document)


def read_records(user: User, draft: Draft) -> Sample:
    """Ask Kafka for the newest records of its topic, and keep them. Raises what ``take_sample`` raises."""
    document = submission_document(draft)
    _check_has_source(document)
    io_config = {
        name: value
        for name, value in document["spec"]["ioConfig"].items()
        if name in ("type", "topic", "consumerProperties", "connection", "groupId", "isolationLevel")
    }
    request = _sampler_request(
        draft, {"dataSchema": _datasource_only(document), "ioConfig": {**io_config, "useEarliestOffset": False}}
    )
    _, answer = take_sample(
        user=user, document=request, team_name=draft.team.name, wanted="records", most_bytes=MAX_BYTES
    )
    return samples.store_sample(draft, answer)


def get_or_read_records(user: User, draft: Draft) -> Sample:
    """Those that are kept; read, if there are none. Raises what ``take_sample`` raises."""
    document = draft.document["spec"]
    check_masks(user, value_at(draft.document, ("spec", "dataSchema", "dataSource")), document["ioConfig"].get("topic"))
    return samples.load_sample(draft) or read_records(user, draft)


def estimate_topic_size(user: User, draft: Draft) -> TopicSize | None:
    """By the sizes of its sample's records; None where its cluster can't be asked any more."""
    sizes = [record.size for record in get_or_read_records(user, draft).records]
    try:
        cluster = cluster_of(user, draft)
    except InvalidInput:
        return None
    return None if cluster is None else size_of(cluster, value_at(draft.document, ("spec", "ioConfig", "topic")), sizes)


def format_guesses(user: User, draft: Draft) -> list[FormatGuess]:
    """How its records may be written, the likeliest first."""
    return _sample_draft(user, draft, "formats", {"dataSchema": _datasource_only(draft.document)})[1].formats


def time_guesses(user: User, draft: Draft) -> list[TimeGuess]:
    """Which fields may hold the records' time, the best first. Needs the format."""
    return _sample_draft(user, draft, "times", {"dataSchema": _datasource_only(draft.document)})[1].times


def sample_rows(user: User, draft: Draft, document: Document | None = None) -> tuple[SamplerSpec, SampleAnswer]:
    """What its spec, as far as it is written, makes of the records; or another document's."""
    schema = (document or draft.document)["spec"]["dataSchema"]
    return _sample_draft(user, draft, "rows", {"dataSchema": schema}, document)


def draft_preview(user: User, draft: Draft) -> IngestionPreview:
    """What a first minute would write, and what that takes."""
    return preview_from_sample(user, draft, *sample_rows(user, draft))


def preview_from_sample(user: User, draft: Draft, spec: SamplerSpec, answer: SampleAnswer) -> IngestionPreview:
    """Of what ``sample_rows`` has answered."""
    io_config = spec.order.io_config
    granularity = spec.order.data_schema.granularitySpec.segmentGranularity
    return preview_ingestion(
        get_or_read_records(user, draft).arrived, answer, io_config.taskCount * io_config.replicas, granularity
    )


def dry_run_change(user: User, draft: Draft) -> DryRun:
    """What its change would do to the newest records, tried on both specs. Raises ``Conflict``."""
    if draft.supervisor is None:
        raise Conflict("This draft changes no supervisor, so there is nothing to compare it with.")
    _, before = sample_rows(user, draft, to_nested(draft.supervisor.current.spec))
    _, after = sample_rows(user, draft)
    return compare_samples(before, after)


def _sample_draft(
    user: User, draft: Draft, wanted: Wanted, parts: dict[str, Any], document: Document | None = None
) -> tuple[SamplerSpec, SampleAnswer]:
    sample = get_or_read_records(user, draft)
    io_config = submission_document(draft, document)["spec"]["ioConfig"]
    request = _sampler_request(draft, {**parts, "ioConfig": io_config})
    return take_sample(
        user=user, document=request, team_name=draft.team.name, wanted=wanted, kept_records=sample.records
    )


def _sampler_request(draft: Draft, parts: dict[str, Any]) -> Document:
    config = {"numRows": MAX_RECORDS, "timeoutMs": READ_MS}
    return {"type": draft.document.get("type", "kafka"), "spec": parts, "samplerConfig": config}


def _datasource_only(document: Document) -> dict[str, Any]:
    """The datasource alone: whose records they are to be."""
    name = value_at(document, ("spec", "dataSchema", "dataSource"))
    return with_value({}, ("dataSource",), name) if name else {}


def _check_has_source(document: Document) -> None:
    io_config = document["spec"]["ioConfig"]
    if not io_config.get("topic"):
        raise InvalidInput("Choose a topic first.")
    if not io_config.get("consumerProperties") and not io_config.get("connection"):
        raise InvalidInput("Choose a connection or enter servers first.")
