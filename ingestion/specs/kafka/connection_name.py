"""How a team's connection may be called; a spec that names one has it under this type."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
RULE = "use 1 to 63 lower-case letters, digits, '.', '-' and '_', the first a letter or digit"


def _check_name(value: str) -> str:
    if NAME.fullmatch(value) is None:
        raise ValueError(f"is not a connection's name: {RULE}")
    return value


ConnectionName = Annotated[str, AfterValidator(_check_name)]
