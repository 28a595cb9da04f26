"""Applications of a house that wait for a task."""

from __future__ import annotations

from pathlib import Path

from controlplane.common.applications import SPARES
from ingestion.specs.messages.spare import ORDERS
from tests.support.house import House


def waiting_spares(house: House) -> list[Path]:
    """The folders of those that can take a task."""
    return [path.parent for path in house.home.tasks.glob(f"{SPARES}/*/{ORDERS}") if not path.parent.is_symlink()]
