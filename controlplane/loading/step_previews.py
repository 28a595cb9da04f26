"""What each step of the wizard shows: a draft tried on the records that were read for it."""

from __future__ import annotations

from typing import Any

from controlplane.common.errors import Conflict, InvalidInput
from controlplane.connections.browsing import Cluster
from controlplane.connections.named import check_own_allowed, own_properties
from controlplane.connections.selectors import get_cluster
from controlplane.connections.topic_size import TopicSize, size_of
from controlplane.datasources.sampling import check_masks, take_sample
from controlplane.loading import samples
from controlplane.loading.documents import Document, nested, put, value_at
from controlplane.loading.dry_run import DryRun, compared
from controlplane.loading.models import Draft
from controlplane.loading.outlook import IngestionPreview, outlook
from controlplane.loading.samples import MOST_BYTES, MOST_RECORDS, Sample
from controlplane.loading.services import submitted
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
    document = submitted(draft)
    own = document["spec"]["ioConfig"].get("consumerProperties")
    if not own:
        return None
    require(user, Action.OPERATE, draft.team)
    return Cluster(str(own.get("bootstrap.servers", "")), own_properties(draft.team, document), f"draft:{draft.pk}")


def check_connects(draft: Draft) -> None:
    """Raise ``InvalidInput`` if it says itself what it connects to, and its team takes connections by name only."""
    io_config = draft.document["spec"]["ioConfig"]
    if io_config.get("consumerProperties") and not io_config.get("connection"):
        check_own_allowed(draft.team, draft.document)


def read_records(user: User, draft: Draft) -> Sample:
    """Ask Kafka for the newest records of its topic, and keep them. Raises what ``take_sample`` raises."""
    document = submitted(draft)
    _check_begun(document)
    io_config = {
        name: value
        for name, value in document["spec"]["ioConfig"].items()
        if name in ("type", "topic", "consumerProperties", "connection", "groupId", "isolationLevel")
    }
    request = _request(draft, {"dataSchema": _named(document), "ioConfig": {**io_config, "useEarliestOffset": False}})
    _, answer = take_sample(
        user=user, document=request, team_name=draft.team.name, wanted="records", most_bytes=MOST_BYTES
    )
    return samples.keep(draft, answer)


def records_of(user: User, draft: Draft) -> Sample:
    """Those that are kept; read, if there are none. Raises what ``take_sample`` raises."""
    document = draft.document["spec"]
    check_masks(user, value_at(draft.document, ("spec", "dataSchema", "dataSource")), document["ioConfig"].get("topic"))
    return samples.kept(draft) or read_records(user, draft)


def size_of_topic(user: User, draft: Draft) -> TopicSize | None:
    """By the sizes of its sample's records; None where its cluster can't be asked any more."""
    sizes = [record.size for record in records_of(user, draft).records]
    try:
        cluster = cluster_of(user, draft)
    except InvalidInput:
        return None
    return None if cluster is None else size_of(cluster, value_at(draft.document, ("spec", "ioConfig", "topic")), sizes)


def formats_of(user: User, draft: Draft) -> list[FormatGuess]:
    """How its records may be written, the likeliest first."""
    return _looked(user, draft, "formats", {"dataSchema": _named(draft.document)})[1].formats


def times_of(user: User, draft: Draft) -> list[TimeGuess]:
    """Which fields may hold the records' time, the best first. Needs the format."""
    return _looked(user, draft, "times", {"dataSchema": _named(draft.document)})[1].times


def rows_of(user: User, draft: Draft, document: Document | None = None) -> tuple[SamplerSpec, SampleAnswer]:
    """What its spec, as far as it is written, makes of the records; or another document's."""
    schema = (document or draft.document)["spec"]["dataSchema"]
    return _looked(user, draft, "rows", {"dataSchema": schema}, document)


def outlook_of(user: User, draft: Draft) -> IngestionPreview:
    """What a first minute would write, and what that takes."""
    return outlook_from(user, draft, *rows_of(user, draft))


def outlook_from(user: User, draft: Draft, spec: SamplerSpec, answer: SampleAnswer) -> IngestionPreview:
    """Of what ``rows_of`` has answered."""
    io_config = spec.order.io_config
    granularity = spec.order.data_schema.granularitySpec.segmentGranularity
    return outlook(records_of(user, draft).arrived, answer, io_config.taskCount * io_config.replicas, granularity)


def dry_run_of(user: User, draft: Draft) -> DryRun:
    """What its change would do to the newest records, tried on both specs. Raises ``Conflict``."""
    if draft.supervisor is None:
        raise Conflict("This draft changes no supervisor, so there is nothing to compare it with.")
    _, before = rows_of(user, draft, nested(draft.supervisor.current.spec))
    _, after = rows_of(user, draft)
    return compared(before, after)


def _looked(
    user: User, draft: Draft, wanted: Wanted, parts: dict[str, Any], document: Document | None = None
) -> tuple[SamplerSpec, SampleAnswer]:
    sample = records_of(user, draft)
    io_config = submitted(draft, document)["spec"]["ioConfig"]
    request = _request(draft, {**parts, "ioConfig": io_config})
    return take_sample(user=user, document=request, team_name=draft.team.name, wanted=wanted, kept=sample.records)


def _request(draft: Draft, parts: dict[str, Any]) -> Document:
    config = {"numRows": MOST_RECORDS, "timeoutMs": READ_MS}
    return {"type": draft.document.get("type", "kafka"), "spec": parts, "samplerConfig": config}


def _named(document: Document) -> dict[str, Any]:
    """The datasource alone: whose records they are to be."""
    name = value_at(document, ("spec", "dataSchema", "dataSource"))
    return put({}, ("dataSource",), name) if name else {}


def _check_begun(document: Document) -> None:
    io_config = document["spec"]["ioConfig"]
    if not io_config.get("topic"):
        raise InvalidInput("Choose a topic first.")
    if not io_config.get("consumerProperties") and not io_config.get("connection"):
        raise InvalidInput("Choose a connection or enter servers first.")
