"""A sample of records and what a spec would make of them, before anything is submitted.

Reading and decoding are the data plane's: a process of its own takes the order on its standard input, secrets included,
and answers on its standard output. It is killed when it does not answer in time. Nothing is stored, and no secret that
is kept of another spec is ever used.
"""

from __future__ import annotations

import logging
import signal
import subprocess
from typing import Any

from django.conf import settings
from pydantic import ValidationError

from controlplane.common.errors import FieldError, HeadgateError, InvalidInput, Unavailable
from controlplane.common.fair_places import FairPlaces, NoPlace
from controlplane.common.problems import invalid_spec
from controlplane.common.processes import bare, spoken_to
from controlplane.connections.admission import check_complete, check_connections
from controlplane.connections.resolving import client_properties, with_registry_secrets
from controlplane.datasources.models import Datasource
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require, require_somewhere, role_in
from ingestion.specs import SpecError
from ingestion.specs.sampler_spec import SamplerSpec, parse_sampler_spec
from ingestion.specs.sampling import SampleAnswer, SampleFailure, SampleOrder
from ingestion.specs.stored import read_io_config

MODULE = "ingestion.task.sampler"
AT_ONCE = 4  # of one web process; each takes a core for about a second, and some 200 MB
OWN_AT_ONCE = 2
WAIT_S = 5.0
START_AND_DECODE_S = 15.0  # beside what the request gives for reading
# Quicker to start, and no more memory set aside than is used.
_SMALL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

log = logging.getLogger(__name__)
_slots = FairPlaces(places=AT_ONCE, own=OWN_AT_ONCE, waiting=4)


def take_sample(*, user: User, document: Any) -> tuple[SamplerSpec, SampleAnswer]:
    """Read a sampler's request and carry it out: how it was read, and a sample, never a failure.

    Needs the role operator: in the team of the datasource that the spec names, else in any. Raises ``InvalidInput``
    with every fault, ``NotAllowed``, ``Unavailable``.
    """
    try:
        spec = parse_sampler_spec(document, settings.SCHEMA_FOLDER)
    except SpecError as error:
        raise invalid_spec(error) from None
    check_rights(user, spec.datasource)
    order = _admitted(document, spec.order)
    try:
        with _slots.place(user.pk, WAIT_S):
            answer = _asked(order)
    except NoPlace:
        raise Unavailable(
            f"{AT_ONCE} samples are being taken already, or {OWN_AT_ONCE} for you; try again in a few seconds."
        ) from None
    if answer.failure is not None:
        raise _as_error(spec, answer.failure)
    return spec, answer


def check_rights(user: User, name: str | None) -> None:
    """Who may see what a topic holds: operators of the datasource's team, of any if it is new or not named.

    Raises ``NotAllowed``, ``Conflict``.
    """
    datasource = None if name is None else Datasource.objects.select_related("team").filter(name=name).first()
    if datasource is None or role_in(user, datasource.team) is None:  # another team's is as one that there is not
        require_somewhere(user, Action.OPERATE)
    else:
        require(user, Action.OPERATE, datasource.team)


def _admitted(document: Any, order: SampleOrder) -> SampleOrder:
    """With all that its clients need, once it is known that they may connect. Raises ``InvalidInput``."""
    io_config = order.io_config
    properties = io_config.consumerProperties if order.records is None else {}
    check_connections(document, properties, io_config.inputFormat)
    if properties:
        check_complete(document, properties)
    written = {"spec": {"ioConfig": io_config.model_dump(mode="json", exclude_none=True)}}
    resolved = with_registry_secrets(written, {})
    return order.model_copy(
        update={
            "io_config": read_io_config(resolved),
            "consumer_properties": client_properties(properties),
            "address_policy": settings.ADDRESS_POLICY,
        }
    )


def _asked(order: SampleOrder) -> SampleAnswer:
    """What the process says. Raises ``Unavailable`` when it dies, or says nothing in time."""
    seconds = order.timeout_ms / 1000 + START_AND_DECODE_S
    with spoken_to(MODULE, {**bare(), **_SMALL}) as process:
        try:
            told, _ = process.communicate(order.model_dump_json(), timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"There is no sample: the decoder did not finish within {seconds:.0f} s. Ask for fewer records."
            ) from None
        finally:
            process.kill()
    try:
        return SampleAnswer.model_validate_json(told)
    except ValidationError:
        log.warning("the sampler's process ended with %s", process.returncode)
        raise Unavailable(
            f"There is no sample: the decoder's process died ({_epitaph(process.returncode)}). One of the records may "
            "be what kills it, or they take too much memory. Nothing else was harmed; ask for fewer or other records."
        ) from None


def _epitaph(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def _as_error(spec: SamplerSpec, failure: SampleFailure) -> HeadgateError:
    issue = spec.issue(failure.place, failure.message)
    fault = FieldError(issue.pointer, issue.message, issue.path)
    if failure.permanent:
        return InvalidInput("The spec has 1 fault; there is no sample.", [fault])
    return Unavailable("There is no sample.", [fault])
