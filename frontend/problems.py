"""What needs a person, as a row: a sentence with its cause, since when, and the next step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True)
class ProblemRow:
    """``subject`` begins the sentence and leads to what it is about; ``text`` goes on with it."""

    code: str  # names the kind, for tests and scripts
    level: Literal["bad", "need", "wait"]
    subject: str
    url: str
    text: str
    cause: str = ""
    since: datetime | None = None
    step: str = ""  # the next step, a label of a link
    step_url: str = ""
    acknowledge_url: str = ""  # where the alarm is acknowledged, by who may
