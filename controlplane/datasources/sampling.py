"""A sample of records and what a spec would make of them, before anything is submitted.

Reading and decoding are the data plane's: a process of its own takes each order, secrets included, answers and ends. It
is forked by one that has loaded all it needs, and waits. It is killed when it does not answer in time. Nothing is
stored, and no secret that is kept of another spec is ever used.
"""

from __future__ import annotations

import logging
import signal
import subprocess
from typing import Any

from django.conf import settings

from controlplane.common.errors import FieldError, HeadgateError, InvalidInput, NotAllowed, Unavailable, invalid_spec
from controlplane.common.fair_queue import FairPlaces, NoPlace
from controlplane.common.processes import bare_environment, start_module
from controlplane.common.ready_process import ProcessDied, ReadyProcess
from controlplane.connections import named_connections
from controlplane.connections.admission import check_complete
from controlplane.connections.client_properties import client_properties
from controlplane.datasources.masking import require_record_access, require_topic_access
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import team_of_spec
from controlplane.teams.models import Team, User
from controlplane.teams.permissions import Action, require, require_in_any_team, role_in
from ingestion.specs.errors import SpecError
from ingestion.specs.messages.sampler_spec import SamplerSpec, parse_sampler_spec
from ingestion.specs.messages.sampling import (
    MAX_INPUT_BYTES,
    KeptRecord,
    SampleAnswer,
    SampleFailure,
    SampleOrder,
    Wanted,
)
from ingestion.specs.tasks.stored_specs import read_io_config

MODULE = "ingestion.task.sampler"
READY_MODULE = "ingestion.task.sampler.fork_server"
MAX_CONCURRENT = 4  # of one web process; each takes a core for up to a second, and some 200 MB
MAX_CONCURRENT_PER_USER = 2
WAIT_S = 5.0
START_AND_DECODE_S = 15.0  # beside what the request gives for reading
# Quicker to start, and no more memory set aside than is used.
_LOW_MEMORY = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

log = logging.getLogger(__name__)
_slots = FairPlaces(places=MAX_CONCURRENT, per_user=MAX_CONCURRENT_PER_USER, waiting=4)
ready_sampler = ReadyProcess(READY_MODULE, {**bare_environment(), **_LOW_MEMORY})


def start_ready_sampler() -> None:
    """Have the process that waits load what it needs before it is asked for anything, if the settings want one."""
    if settings.SAMPLER_READY:
        ready_sampler.start()


def take_sample(
    *,
    user: User,
    document: Any,
    team_name: str | None = None,
    wanted: Wanted = "rows",
    kept_records: list[KeptRecord] | None = None,
    most_bytes: int = MAX_INPUT_BYTES,
    bounded: bool = False,
) -> tuple[SamplerSpec, SampleAnswer]:
    """Read a sampler's request and carry it out: how it was read, and a sample, never a failure.

    ``team_name``: whose connections it may name, where no datasource that is there says so. ``kept_records``: records
    that an earlier one has read (``wanted="records"``); Kafka is not asked then. ``bounded``: what lies outside
    of the spec's ``intervals`` is thrown away, as by a batch task. Needs the role operator: in the team of the
    datasource that the spec names, else in any. Raises ``InvalidInput`` with every fault,
    ``NotAllowed``, ``Unavailable``.
    """
    try:
        spec = parse_sampler_spec(document, settings.SCHEMA_FOLDER)
    except SpecError as error:
        raise invalid_spec(error) from None
    check_rights(user, spec.datasource)
    if spec.order.records is None:  # those that were sent with the request are the user's own
        check_masks(user, spec.datasource, spec.order.io_config.topic)
    team = team_of_spec(user, spec.datasource, team_name)
    if team is not None and any(named_connections.names_in(spec.order.io_config)):
        require(user, Action.OPERATE, team)  # the records come from where that team's secrets lead
    order = spec.order.model_copy(
        update={"wanted": wanted, "kept": kept_records, "most_bytes": most_bytes, "bounded": bounded}
    )
    order = _admit_order(document, team, order)
    try:
        with _slots.place(user.pk, WAIT_S):
            answer = _run_sampler(order)
    except NoPlace:
        raise Unavailable(
            f"{MAX_CONCURRENT} samples are being taken already, or {MAX_CONCURRENT_PER_USER} for you. Try again in a "
            "few seconds."
        ) from None
    if answer.failure is not None:
        raise _as_error(spec, answer.failure)
    return spec, answer


def check_rights(user: User, name: str | None) -> None:
    """Who may see what a topic holds: operators of the datasource's team, of any if it is new or not named.

    Raises ``NotAllowed``, ``Conflict``.
    """
    datasource = None if name is None else Datasource.objects.select_related("team").filter(name=name).first()
    if datasource is None or role_in(user, datasource.team, name) is None:  # another team's is as one that there is not
        require_in_any_team(user, Action.OPERATE)
        return
    try:
        require(user, Action.OPERATE, datasource.team)
    except NotAllowed as error:
        raise NotAllowed(
            f"{error.detail} The datasource {name!r} belongs to that team; another name makes a new one."
        ) from None


def check_masks(user: User, name: str | None, topic: str | None) -> None:
    """A sample shows whole records: none of a topic, or for a datasource, with values that the user may not see.

    Raises ``NotAllowed``.
    """
    datasource = (
        None if not name else Datasource.objects.visible_to(user).select_related("team").filter(name=name).first()
    )
    if datasource is not None:
        require_record_access(user, datasource, "a sample")
    require_topic_access(user, topic, "a sample of its topic")


def _admit_order(document: Any, team: Team | None, order: SampleOrder) -> SampleOrder:
    """With all that its clients need, once it is known that they may connect. Raises ``InvalidInput``."""
    io_config = order.io_config
    asks_kafka = order.records is None and order.kept is None
    properties = named_connections.admit(document, team, io_config, asks_kafka=asks_kafka).properties
    if properties:
        check_complete(document, properties)
    spec_document = {"spec": {"ioConfig": io_config.model_dump(mode="json", exclude_none=True)}}
    resolved = named_connections.with_registries(team.pk if team else None, spec_document, {})
    return order.model_copy(
        update={
            "io_config": read_io_config(resolved),
            "consumer_properties": client_properties(properties),
            "address_policy": settings.ADDRESS_POLICY,
        }
    )


def _run_sampler(order: SampleOrder) -> SampleAnswer:
    """What the process says. Raises ``Unavailable`` when it dies, or says nothing in time."""
    seconds = order.timeout_ms / 1000 + START_AND_DECODE_S
    try:
        answer_json = (_ask_ready_process if settings.SAMPLER_READY else _ask_new_process)(
            order.model_dump_json(), seconds
        )
        return SampleAnswer.model_validate_json(answer_json)
    except TimeoutError:
        raise Unavailable(
            f"There is no sample: the decoder did not finish within {seconds:.0f} s. Ask for fewer records."
        ) from None
    except ProcessDied as death:
        log.warning("the sampler's process ended with %s", death.code)
        raise Unavailable(
            f"There is no sample: the decoder's process died ({_exit_reason(death.code)}). One record may have killed "
            "it, or the records take too much memory. Nothing else is affected. Ask for fewer or other records."
        ) from None
    except OSError as error:
        raise Unavailable(f"There is no sample: the sampler's process does not start: {error.strerror}.") from error


def _ask_ready_process(order: str, seconds: float) -> str:
    return ready_sampler.request(order, seconds)


def _ask_new_process(order: str, seconds: float) -> str:
    with start_module(MODULE, {**bare_environment(), **_LOW_MEMORY}) as process:
        try:
            answer_json, _ = process.communicate(order, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            process.kill()
    if process.returncode or not answer_json:
        raise ProcessDied(process.returncode)
    return answer_json


def _exit_reason(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def _as_error(spec: SamplerSpec, failure: SampleFailure) -> HeadgateError:
    issue = spec.issue(failure.place, failure.message, failure.within)
    fault = FieldError(issue.pointer, issue.message, issue.path)
    if failure.permanent:
        return InvalidInput("The spec has 1 error; there is no preview.", [fault])
    return Unavailable("There is no sample.", [fault])
