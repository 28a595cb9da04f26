"""Supervisors of a Druid cluster, as its Overlord shows them: what each would become here, and made if that is wanted.

Nothing is decided here that a submitted spec would not be: a verdict without any change comes from the submission
itself, which is taken back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from controlplane.common.errors import FieldError, HeadgateError, InvalidInput, invalid_spec
from controlplane.common.spec_text import DiffLine
from controlplane.common.text import storable
from controlplane.connections.models import Connection
from controlplane.datasources.selectors import team_of_spec
from controlplane.loading.ignored_fields import without_leftovers
from controlplane.supervisors import services
from controlplane.supervisors.history import diff_to_current
from controlplane.supervisors.models import Supervisor
from controlplane.tasks.diagnosis import options_without_effect
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, require_in_any_team
from ingestion.specs.errors import SpecError
from ingestion.specs.inputs.connection import Kind
from ingestion.specs.kafka import secrets as spec_secrets
from ingestion.specs.kafka.addresses import parse_servers
from ingestion.specs.kafka.properties import CONNECTION_PREFIXES
from ingestion.specs.kafka.providers import PROVIDER
from ingestion.specs.tasks.ingestion_spec import SupervisorSpec, parse_supervisor_spec

MAX_SUPERVISORS = 100
TIME_LIMIT_S = 45.0  # then the rest is left: whoever asks waits
CREATE, CHANGE, SAME, REFUSED, LEFT = "create", "change", "same", "refused", "left"
VERDICTS = (CREATE, CHANGE, SAME, REFUSED, LEFT)


@dataclass(frozen=True)
class ImportOptions:
    """How supervisors are to be taken over."""

    dry_run: bool = True
    suspended: bool = True  # new ones, whatever they are in Druid
    connection: str = ""  # of the team, in place of what a spec says of its cluster
    team_name: str | None = None  # of new datasources


@dataclass(frozen=True)
class ImportResult:
    """What one becomes, or became."""

    id: str
    verdict: str
    applied: bool = False
    suspended: bool | None = None  # afterwards
    detail: str = ""  # why it was refused or left
    errors: list[FieldError] = field(default_factory=list)  # with pointers into the list
    diff: list[DiffLine] = field(default_factory=list)
    without_effect: list[str] = field(default_factory=list)
    topic: str = ""
    starts_at: str = ""
    bootstrap_servers: str = ""
    security_protocol: str = ""
    connection: str = ""
    connections: list[str] = field(default_factory=list)  # of the team, that lead to the same servers


def import_supervisors(*, user: User, listed: Any, options: ImportOptions) -> Iterator[ImportResult]:
    """One verdict for each of ``listed``, in its order; with ``wanted.dry_run`` nothing is changed.

    One that is refused holds up no other. Raises ``NotAllowed``, ``InvalidInput`` for what is no such list.
    """
    require_in_any_team(user, Action.ADMINISTER)
    entries = _entries(listed)
    return _verdicts(user, entries, options)


def _verdicts(user: User, entries: list[dict[str, Any]], options: ImportOptions) -> Iterator[ImportResult]:
    until, seen = time.monotonic() + TIME_LIMIT_S, set[str]()
    for number, entry in enumerate(entries):
        identifier = entry["id"]
        if identifier in seen:
            fault = FieldError(f"/{number}/id", "occurs twice in the list", f"[{number}].id")
            yield ImportResult(
                identifier, REFUSED, detail="Another supervisor of the list has this id.", errors=[fault]
            )
        elif time.monotonic() > until:
            yield ImportResult(
                identifier, LEFT, detail=f"The time limit of {TIME_LIMIT_S:g} s was reached. Send it again."
            )
        else:
            document, leftovers = without_leftovers(_document(entry, options))
            yield _verdict(user, number, identifier, document, leftovers, options)
        seen.add(identifier)


def _entries(listed: Any) -> list[dict[str, Any]]:
    if not isinstance(listed, list) or not listed:
        raise InvalidInput("The body must be the list that Druid answers to GET /druid/indexer/v1/supervisor?full.")
    if len(listed) > MAX_SUPERVISORS:
        raise InvalidInput(f"The list has {len(listed)} supervisors. The limit is {MAX_SUPERVISORS}. Send it in parts.")
    faults = [f for number, entry in enumerate(listed) for f in _form_faults(number, entry)]
    if faults:
        raise InvalidInput("Some entries of the list are not supervisors. Nothing was changed.", faults)
    return listed


def _form_faults(number: int, entry: Any) -> Iterator[FieldError]:
    if not isinstance(entry, dict):
        yield FieldError(f"/{number}", "must be an object with id and spec", f"[{number}]")
        return
    if not isinstance(entry.get("id"), str) or not entry["id"] or not storable(entry["id"]):
        yield FieldError(f"/{number}/id", "must be the supervisor's id", f"[{number}].id")
    if not isinstance(entry.get("spec"), dict):
        yield FieldError(f"/{number}/spec", "must be its spec: ask Druid with ?full", f"[{number}].spec")


def _document(entry: dict[str, Any], options: ImportOptions) -> dict[str, Any]:
    """The spec as it would be submitted: under its id, and to the connection that is wanted for it."""
    document = {**entry["spec"], "id": entry["id"]}
    if not options.connection:
        return document
    inner = document.get("spec")
    parts = inner if isinstance(inner, dict) else document
    io_config = parts.get("ioConfig")
    if isinstance(io_config, dict):
        connected = {**parts, "ioConfig": _with_connection(io_config, options.connection)}
        document = connected if parts is document else {**document, "spec": connected}
    return document


def _with_connection(io_config: dict[str, Any], connection: str) -> dict[str, Any]:
    written = io_config.get("consumerProperties")
    properties = written if isinstance(written, dict) else {}
    others = {n: v for n, v in properties.items() if not n.startswith(CONNECTION_PREFIXES) and n != PROVIDER}
    return {**io_config, "connection": connection, "consumerProperties": others}


def _verdict(
    user: User, number: int, identifier: str, document: dict[str, Any], leftovers: list[str], options: ImportOptions
) -> ImportResult:
    existing = Supervisor.objects.visible_to(user).filter(pk=identifier, terminated_at=None).first()
    # One that is there stays as it is: nobody resumes or suspends it by importing it again.
    suspended = {} if existing else {"suspended": True if options.suspended else document.get("suspended") is True}
    document = {name: value for name, value in document.items() if name != "suspended"} | suspended
    try:
        spec = _parse_spec(document)
    except InvalidInput as fault:
        return _refusal(number, ImportResult(identifier, REFUSED, without_effect=leftovers), fault)
    common = _common_fields(user, identifier, spec, options, existing)
    common["without_effect"] = [*leftovers, *common["without_effect"]]
    if existing is not None and not services.modifies(existing, spec):
        return ImportResult(verdict=SAME, suspended=existing.suspended, **common)
    diff = [] if existing is None else diff_to_current(existing, spec)
    try:
        supervisor = services.submit_supervisor(
            user=user, document=document, team_name=options.team_name, dry_run=options.dry_run
        )
    except HeadgateError as fault:
        return _refusal(number, ImportResult(verdict=REFUSED, diff=diff, **common), fault)
    return ImportResult(
        verdict=CREATE if existing is None else CHANGE,
        applied=not options.dry_run,
        suspended=supervisor.suspended,
        diff=diff,
        **common,
    )


def _parse_spec(document: dict[str, Any]) -> SupervisorSpec:
    try:
        return parse_supervisor_spec(document)
    except SpecError as error:
        raise invalid_spec(error) from None


def _refusal(number: int, verdict: ImportResult, fault: HeadgateError) -> ImportResult:
    errors = [FieldError(f"/{number}/spec{e.pointer}", e.message, e.path) for e in fault.errors]
    return ImportResult(**{**vars(verdict), "detail": fault.detail, "errors": errors})


def _common_fields(
    user: User, identifier: str, spec: SupervisorSpec, options: ImportOptions, existing: Supervisor | None
) -> dict[str, Any]:
    """What a verdict says of any spec that can be read."""
    canonical, _ = spec_secrets.split_secrets(spec.canonical())
    io_config = spec.spec.ioConfig
    servers = str(io_config.consumerProperties.get("bootstrap.servers", ""))
    team = team_of_spec(user, spec.datasource, options.team_name)
    return {
        "id": identifier,
        "without_effect": options_without_effect(canonical, supervised=True),
        "topic": io_config.reads,
        "starts_at": "" if existing else ("earliest" if io_config.useEarliestOffset else "latest"),
        "bootstrap_servers": servers,
        "security_protocol": str(io_config.consumerProperties.get("security.protocol", "")) or "PLAINTEXT",
        "connection": io_config.connection or "",
        "connections": [] if team is None or not servers else _connections_to(servers, team),
    }


def _connections_to(servers: str, team: Team) -> list[str]:
    addresses = set(parse_servers(servers))
    clusters = Connection.objects.filter(team=team, kind=Kind.KAFKA).order_by("name")
    return [c.name for c in clusters if addresses & set(parse_servers(str(c.properties["bootstrap.servers"])))]
