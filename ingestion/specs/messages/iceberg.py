"""The messages between who knows the segments and the process that writes an Iceberg snapshot's files: JSON lines.

The control plane sends a ``SnapshotOrder``, then ``ManifestPage``s, then one ``ManifestList``. Each is answered with a
``WrittenFiles``; after an error nothing more is answered.
"""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ingestion.specs.base import Message

# The segments of a manifest: path, rows, bytes, lowest and highest time in microseconds since 1970.
ListedFile = tuple[str, int, int, int, int]


class SnapshotOrder(Message):
    """What the files of one snapshot have in common."""

    deep_storage: str
    root: str  # deep storage's address for readers, without a slash at the end
    datasource: str
    number: int = Field(gt=0)  # the snapshot's, which is also its sequence number
    table_schema: str  # Iceberg's JSON


class ManifestContent(Message):
    """The segments in use of one interval."""

    start: datetime
    end: datetime
    files: str  # a JSON list of ListedFile, as PostgreSQL writes it: the control plane does not look into it


class ManifestPage(Message):
    """Manifests to write."""

    manifests: list[ManifestContent]


class ListedManifest(Message):
    """A manifest of the snapshot, which this or an earlier one has written."""

    path: str
    length: int
    spec: int
    value: int | None = None  # of the partition
    number: int  # of the snapshot that has written it
    segments: int
    rows: int


class ManifestList(Message):
    """The last file of a snapshot. It is stored in the folder of the interval ``[start, end)``."""

    start: datetime
    end: datetime
    manifests: list[ListedManifest]


class WrittenFile(Message):
    path: str  # below deep storage
    length: int


class WrittenFiles(Message):
    """In the order of what was asked for; none for the ``SnapshotOrder``."""

    files: list[WrittenFile] = []
    error: str = ""  # why they could not be written; empty if all were
