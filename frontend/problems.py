"""What needs a person, as a row: health of a subject, and the next step."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.common.health import Health


@dataclass(frozen=True)
class ProblemRow:
    """``subject`` leads to what the health is of."""

    health: Health
    subject: str
    url: str
    step: str = ""  # the next step, a label of a link
    step_url: str = ""
    acknowledge_url: str = ""  # where the alarm is acknowledged, by who may
