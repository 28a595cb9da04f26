"""What is set of automatic compaction, by datasource: Druid's ``DataSourceCompactionConfig``, read strictly.

What a config says that nothing here does is refused by name, never taken and left undone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from controlplane.common.client_address import current_address
from controlplane.common.durations import duration_of
from controlplane.common.errors import InvalidInput, NotFound
from controlplane.compaction.models import ConfigChange, Configured
from controlplane.compaction.partitioning import Partitioning
from controlplane.compaction.policy import TARGET_ROWS, Limits
from controlplane.datasources.models import Datasource
from controlplane.teams import audit
from controlplane.teams.models import User
from controlplane.teams.permissions import Action, require
from ingestion.specs.errors import error_text
from ingestion.specs.schema.partitions import DividingSpec

_MAX_ROWS = 2**31 - 1
_LONGEST_COMMENT = 500
_LONGEST_SKIP = timedelta(days=36_500)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DynamicPartitions(_Strict):
    """How large segments become."""

    type: Literal["dynamic"]
    maxRowsPerSegment: int | None = Field(default=None, ge=1, le=_MAX_ROWS)
    maxTotalRows: int | None = Field(default=None, ge=1)  # Druid's: of all segments of a task, which here has one


class CompactionTuning(_Strict):
    """Druid's ``tuningConfig`` of a compaction, as far as it is kept."""

    type: Literal["index_parallel"] = "index_parallel"
    partitionsSpec: Annotated[DynamicPartitions | DividingSpec, Field(discriminator="type")] | None = None
    maxNumConcurrentSubTasks: int | None = Field(default=None, ge=1, le=_MAX_ROWS)

    @model_validator(mode="after")
    def _check_subtasks(self) -> Self:
        if self.dividing is None and self.maxNumConcurrentSubTasks is not None:
            raise ValueError(
                "maxNumConcurrentSubTasks is for a partitionsSpec of type hashed, range or single_dim: merges share "
                "the task slots of all datasources"
            )
        return self

    @property
    def dividing(self) -> DividingSpec | None:
        """By what rows are dealt out, other than by their number."""
        return None if isinstance(self.partitionsSpec, DynamicPartitions) else self.partitionsSpec


class CompactionConfig(_Strict):
    """One datasource's config."""

    dataSource: str
    taskPriority: int = Field(default=25, ge=-1000, le=1000)
    inputSegmentSizeInBytes: int = Field(default=100_000_000_000_000, ge=1)
    maxRowsPerSegment: int | None = Field(default=None, ge=1, le=_MAX_ROWS)
    skipOffsetFromLatest: str = "PT0S"
    tuningConfig: CompactionTuning | None = None
    engine: Literal["native"] | None = None

    @field_validator("skipOffsetFromLatest")
    @classmethod
    def _check_period(cls, value: str) -> str:
        duration = duration_of(value)
        if duration is None or duration > _LONGEST_SKIP:
            raise ValueError("must be an ISO 8601 duration such as PT1H or P1D, of 36,500 days at most")
        return value

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.dividing is not None and self.maxRowsPerSegment is not None:
            raise ValueError(f"partitionsSpec {self.dividing.type} sets the rows per segment: omit maxRowsPerSegment")
        return self

    @property
    def dividing(self) -> DividingSpec | None:
        """By what rows are dealt out, other than by their number."""
        return self.tuningConfig.dividing if self.tuningConfig else None

    @property
    def partitioning(self) -> Partitioning | None:
        """How intervals are written anew; None where segments are merged and no more."""
        if self.tuningConfig is None or self.dividing is None:
            return None
        subtasks = self.tuningConfig.maxNumConcurrentSubTasks or 1
        return Partitioning.of(self.dividing, subtasks, self.inputSegmentSizeInBytes)

    @property
    def target_rows(self) -> int:
        """Of a segment that is merged."""
        spec = self.tuningConfig.partitionsSpec if self.tuningConfig else None
        max_rows = spec.maxRowsPerSegment if isinstance(spec, DynamicPartitions) else None
        return max_rows or self.maxRowsPerSegment or TARGET_ROWS


@dataclass(frozen=True)
class Policy:
    """What follows from a config."""

    limits: Limits = field(default_factory=Limits)
    skip_offset: timedelta = timedelta(0)
    priority: int = 25
    partitioning: Partitioning | None = None

    @classmethod
    def of(cls, config: CompactionConfig) -> Policy:
        partitioning = config.partitioning
        limits = Limits(
            target_rows=config.target_rows,
            max_input_bytes=config.inputSegmentSizeInBytes,
            rewrites_whole=partitioning is not None,
        )
        skip_offset = duration_of(config.skipOffsetFromLatest) or timedelta(0)
        return cls(limits, skip_offset, config.taskPriority, partitioning)


def policies() -> dict[int, Policy]:
    """By datasource, of all whose compaction is on."""
    by_datasource = (
        dict.fromkeys(Datasource.objects.values_list("pk", flat=True), Policy()) if settings.AUTO_COMPACTION else {}
    )
    for datasource, enabled, document in Configured.objects.values_list("datasource_id", "enabled", "document"):
        if enabled:
            by_datasource[datasource] = Policy.of(CompactionConfig.model_validate(document))
        else:
            by_datasource.pop(datasource, None)
    return by_datasource


def config_of(datasource: Datasource) -> dict[str, Any] | None:
    """The config in force with all its defaults, as Druid shows it; None where compaction is off."""
    row = Configured.objects.filter(datasource=datasource).first()
    if row is None:
        if not settings.AUTO_COMPACTION:
            return None
        return CompactionConfig(dataSource=datasource.name).model_dump(mode="json", exclude_none=True)
    if not row.enabled:
        return None
    return CompactionConfig.model_validate(row.document).model_dump(mode="json", exclude_none=True)


def policy_of(datasource: Datasource) -> Policy | None:
    """None where compaction is off."""
    config = config_of(datasource)
    return None if config is None else Policy.of(CompactionConfig.model_validate(config))


def changed_config(datasource: Datasource, *, max_rows: int | None, skip_offset: str | None) -> CompactionConfig:
    """What is set of it, with other sizes; None leaves one as it is. Raises ``InvalidInput``."""
    row = Configured.objects.filter(datasource=datasource, enabled=True).first()
    document = dict(row.document) if row is not None else {"dataSource": datasource.name}
    if max_rows is not None and read_config(document).dividing is not None:
        raise InvalidInput("The config's partitionsSpec sets the rows per segment. Change it there.")
    if max_rows is not None:
        document = {k: v for k, v in document.items() if k != "tuningConfig"} | {"maxRowsPerSegment": max_rows}
    if skip_offset is not None:
        document["skipOffsetFromLatest"] = skip_offset
    return read_config(document)


def read_config(document: Any) -> CompactionConfig:
    """Raises ``InvalidInput`` that names each field at fault."""
    try:
        return CompactionConfig.model_validate(document)
    except ValidationError as error:
        raise invalid_config(error) from None


def invalid_config(error: ValidationError) -> InvalidInput:
    """Each field at fault, in our own words."""
    return InvalidInput("; ".join(_fault(e) for e in error.errors()[:10]))


def _fault(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{where} is not supported by automatic compaction here: omit it."
    return f"{where or 'the config'}: {error_text(error)}."


@transaction.atomic
def set_config(
    *, user: User, datasource: Datasource, config: CompactionConfig, comment: str = "", suspended: bool = False
) -> None:
    """Turn it on, with these settings; or keep them for later, ``suspended``."""
    require(user, Action.OPERATE, datasource.team)
    document = config.model_dump(mode="json", exclude_unset=True)
    before = _document_of(datasource)
    values = {"enabled": not suspended, "suspended": suspended, "document": document}
    Configured.objects.update_or_create(datasource=datasource, defaults={**values, "updated_at": timezone.now()})
    _record_change(user, datasource, document, comment, before, suspended)


@transaction.atomic
def turn_off(*, user: User, datasource: Datasource, comment: str = "") -> None:
    """No job of it is made any more; those that run end. Raises ``NotFound`` where it is off already."""
    require(user, Action.OPERATE, datasource.team)
    is_suspended = Configured.objects.filter(datasource=datasource, suspended=True).exists()
    if config_of(datasource) is None and not is_suspended:
        raise NotFound(f"Automatic compaction of {datasource.name!r} is off.")
    before = _document_of(datasource)
    values = {"enabled": False, "suspended": False, "document": {"dataSource": datasource.name}}
    Configured.objects.update_or_create(datasource=datasource, defaults={**values, "updated_at": timezone.now()})
    _record_change(user, datasource, None, comment, before)


def _document_of(datasource: Datasource) -> dict[str, Any] | None:
    """What is set of it; None: nothing ever was."""
    row = Configured.objects.filter(datasource=datasource).first()
    return None if row is None else row.document


def _record_change(
    user: User,
    datasource: Datasource,
    document: dict[str, Any] | None,
    comment: str,
    before: dict[str, Any] | None,
    suspended: bool = False,
) -> None:
    ConfigChange.objects.create(
        datasource=datasource,
        document=document,
        suspended=suspended,
        author=user.get_username(),
        comment=comment[:_LONGEST_COMMENT],
        address=current_address() or "",
        created_at=timezone.now(),
    )
    action = "turn_off_compaction" if document is None else "set_compaction"
    audit.record(
        user=user,
        team=datasource.team,
        target="datasource",
        target_id=datasource.name,
        action=action,
        **({} if document is None else {"config": document}),
        **({} if before is None else {"before": before}),
        **({"suspended": True} if suspended else {}),
    )
