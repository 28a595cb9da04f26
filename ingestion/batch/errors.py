"""Why a batch task can't go on; see ``ingestion.errors``."""

from __future__ import annotations

from ingestion.errors import IngestionError


class InputRefused(IngestionError):
    """What is to be read is not there, may not be read, or is not what the spec says."""

    permanent = True


class InputUnreachable(IngestionError):
    """What is to be read can't be had just now."""


class InputChanged(IngestionError):
    """A file is not what it was when the task began."""

    permanent = True
