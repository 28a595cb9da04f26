"""A share group's configuration as the broker has it, held against the spec. Nothing here asks Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.connections.share_group_config import ShareGroupConfig
from ingestion.specs.inputs.group_config import BY_DURATION


@dataclass(frozen=True)
class GroupSetting:
    """One dynamic setting of the group."""

    name: str
    wanted: str  # by the spec
    actual: str | None  # on the broker, its default if none is set
    is_default: bool
    effective: str | None  # the same within the broker's bounds
    # least and most: those bounds, None where there is none.
    least: int | None
    most: int | None

    @property
    def drifted(self) -> bool:
        if self.wanted.startswith(BY_DURATION) and self.effective is not None:
            return not self.effective.startswith(BY_DURATION)  # counted back from when it was set
        return self.effective != self.wanted

    @property
    def difference(self) -> str:
        """How it differs, as a part of a sentence."""
        return f"{self.name} is {self.effective or 'not set'}, and {self.wanted} in the spec"


def compare_settings(spec_settings: Mapping[str, str], broker_config: ShareGroupConfig) -> list[GroupSetting]:
    """Each setting that the spec asks for, under Kafka's names, beside what the broker says.

    A broker that does not know a setting's name lists others alone: there is nothing to compare then.
    """
    known = broker_config.values or spec_settings
    return [_setting(name, value, broker_config) for name, value in spec_settings.items() if name in known]


def _setting(name: str, spec_value: str, broker_config: ShareGroupConfig) -> GroupSetting:
    actual, is_default = broker_config.values.get(name, (None, True))
    least, most = broker_config.bounds.get(name, (None, None))
    effective = actual
    if actual is not None and actual.isdecimal():
        effective = str(max(least or 0, min(int(actual), most if most is not None else int(actual))))
    return GroupSetting(name, spec_value, actual, is_default, effective, least, most)
