"""How many compaction jobs run at once beside ingestion: Druid's ``ClusterCompactionConfig``, read strictly."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.db import transaction
from django.utils import timezone
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controlplane.compaction.configs import invalid_config
from controlplane.tasks.models import CompactionShare
from controlplane.tasks.residents import compaction_share, slots
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import require_site_admin

CLUSTER = "_cluster"  # in the audit trail, in a datasource's place
_MAX_SLOTS = 2**31 - 1


class ClusterConfig(BaseModel):
    """What is given of it; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    compactionTaskSlotRatio: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    maxCompactionTaskSlots: Annotated[int, Field(ge=0, le=_MAX_SLOTS)] | None = None
    # Supervisors and configs are one thing here, and there is one engine.
    useSupervisors: bool | None = None
    engine: Literal["native"] | None = None


def read_cluster_config(document: Any) -> ClusterConfig:
    """Raises ``InvalidInput`` that names each field at fault."""
    try:
        return ClusterConfig.model_validate(document)
    except ValidationError as error:
        raise invalid_config(error) from None


@transaction.atomic
def set_share(*, user: User, config: ClusterConfig) -> None:
    """How much compaction may take from now on. Needs an administrator of the site.

    The application ends its jobs; the next one has as many slots as this makes.
    """
    require_site_admin(user)
    before = compaction_share()
    ratio = before.ratio if config.compactionTaskSlotRatio is None else config.compactionTaskSlotRatio
    most = before.most if config.maxCompactionTaskSlots is None else config.maxCompactionTaskSlots
    if (before.ratio, before.most) == (ratio, most):
        return
    CompactionShare.objects.update_or_create(
        pk=1, defaults={"ratio": ratio, "most": most, "updated_at": timezone.now()}
    )
    audit.record(
        user=user,
        team=None,
        target="datasource",
        target_id=CLUSTER,
        action="set_compaction_slots",
        compactionTaskSlotRatio=ratio,
        maxCompactionTaskSlots=most,
        before={"compactionTaskSlotRatio": before.ratio, "maxCompactionTaskSlots": before.most},
    )


def shown_share() -> dict[str, Any]:
    """The two numbers in force, as Druid shows them. Without a bound, how many slots there are."""
    current = compaction_share()
    return {
        "compactionTaskSlotRatio": current.ratio,
        "maxCompactionTaskSlots": slots() if current.most is None else current.most,
    }
