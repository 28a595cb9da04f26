"""What of the world outside the readers of formats may use."""

from __future__ import annotations

from dataclasses import dataclass

from ingestion.decode.formats.registry import OpenRegistry


@dataclass(frozen=True)
class Access:
    """Nothing, unless said. ``schema_folder``: the folder whose files a spec may name."""

    open_registry: OpenRegistry | None = None
    schema_folder: str = ""
