"""Druid's compaction supervisors: what is set of a datasource's compaction, under the id of a supervisor.

There is one where somebody has set a config; where it is on by default, there is none. A suspended one keeps its
config.
"""

from __future__ import annotations

from typing import Any, Literal

from django.db import transaction
from django.db.models import Q, QuerySet
from pydantic import BaseModel, ConfigDict, ValidationError

from controlplane.common.errors import InvalidInput, NotFound
from controlplane.compaction import configs
from controlplane.compaction.configs import CompactionConfig, invalid_config
from controlplane.compaction.models import Configured
from controlplane.datasources.models import Datasource
from controlplane.datasources.selectors import find_datasource
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, may, require

TYPE, PREFIX = "autocompact", "autocompact__"


class SupervisorDocument(BaseModel):
    """Druid's ``CompactionSupervisorSpec``, as it is posted, and as it is shown."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["autocompact"]
    spec: CompactionConfig
    suspended: bool = False
    id: str | None = None


def is_supervisor(document: Any) -> bool:
    """Whether a document, as it is written, is a compaction supervisor's."""
    return isinstance(document, dict) and document.get("type") == TYPE


def id_of(datasource: Datasource) -> str:
    """The supervisor's id."""
    return f"{PREFIX}{datasource.name}"


def list_supervisors(user: User) -> QuerySet[Configured]:
    """Those that the user may see, by name; not those that were turned off."""
    configured = Configured.objects.filter(Q(enabled=True) | Q(suspended=True))
    visible = Datasource.objects.visible_to(user).present()
    return configured.filter(datasource__in=visible).select_related("datasource__team").order_by("datasource__name")


def get_supervisor(user: User, name: str) -> Configured:
    """One of these, by the datasource's name. Raises ``NotFound``."""
    datasource = find_datasource(user, name)
    row = list_supervisors(user).filter(datasource=datasource).first()
    if row is None:
        raise NotFound(f"There is no supervisor {id_of(datasource)!r}.")
    return row


def submit(*, user: User, document: Any, comment: str = "", skip_unmodified: bool = False) -> str:
    """Set the config that it says; the supervisor's id. Raises ``InvalidInput``, ``NotFound``, ``NotAllowed``."""
    try:
        submitted = SupervisorDocument.model_validate(document)
    except ValidationError as error:
        raise invalid_config(error) from None
    datasource = find_datasource(user, submitted.spec.dataSource)
    if submitted.id is not None and submitted.id != id_of(datasource):
        raise InvalidInput(f"id is {id_of(datasource)!r} of this datasource: omit it.")
    require(user, Action.OPERATE, datasource.team)
    row = list_supervisors(user).filter(datasource=datasource).first()
    as_stored = submitted.spec.model_dump(mode="json", exclude_unset=True)
    if not (skip_unmodified and row and (row.document, row.suspended) == (as_stored, submitted.suspended)):
        configs.set_config(
            user=user, datasource=datasource, config=submitted.spec, comment=comment, suspended=submitted.suspended
        )
    return id_of(datasource)


@transaction.atomic
def switch(*, user: User, row: Configured, suspended: bool, comment: str = "") -> None:
    """Suspend or resume it. Raises ``InvalidInput`` when it is so already."""
    require(user, Action.OPERATE, row.datasource.team)
    locked = Configured.objects.select_for_update().get(pk=row.pk)
    if locked.suspended == suspended:
        state = "suspended" if suspended else "running"
        raise InvalidInput(f"Supervisor {id_of(row.datasource)!r} is {state} already.")
    config = configs.read_config(locked.document)
    configs.set_config(user=user, datasource=row.datasource, config=config, comment=comment, suspended=suspended)


def terminate(*, user: User, row: Configured, comment: str = "") -> None:
    """Turn it off, and forget its config."""
    require(user, Action.OPERATE, row.datasource.team)
    configs.turn_off(user=user, datasource=row.datasource, comment=comment)


def switch_all(*, user: User, suspended: bool) -> None:
    """Suspend or resume each that the user may."""
    for row in list_supervisors(user).filter(suspended=not suspended):
        if may(user, Action.OPERATE, row.datasource.team):
            switch(user=user, row=row, suspended=suspended)


def terminate_all(*, user: User) -> None:
    """Turn off each that the user may."""
    for row in list_supervisors(user):
        if may(user, Action.OPERATE, row.datasource.team):
            terminate(user=user, row=row)
