"""One segment: where its rows came from, where they are, and what its file holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.common.errors import HeadgateError, NotAllowed, NotFound
from controlplane.datasources.masked_querysets import conceal
from controlplane.publishing.selectors.segment_detail import segment_detail
from controlplane.retention.storage_summary import segment_or_killed
from controlplane.segments.killing import deletion_time
from controlplane.segments.models import Segment
from controlplane.segments.newest_rows import segment_file
from controlplane.tasks.datasources import get_datasource
from frontend.views.common import PageRequest, page, rest_address
from frontend.views.datasources import frame
from frontend.views.rows import table_of
from ingestion.specs.messages.newest_rows import Footer

ROWS_SHOWN = 20


@dataclass(frozen=True)
class ColumnLine:
    """A column of the file's footer, with its share of the file."""

    column: Any
    percent: float


@page
def detail(request: PageRequest, name: str, segment_id: str) -> HttpResponse:
    """The page; what its file holds comes a moment later."""
    return _page(request, name, segment_id, read=False)


@page
def file(request: PageRequest, name: str, segment_id: str) -> HttpResponse:
    """What its file holds: the page's part that it asks for, or for who runs no scripts the whole page."""
    return _page(request, name, segment_id, read=True)


def _page(request: PageRequest, name: str, segment_id: str, *, read: bool) -> HttpResponse:
    datasource = get_datasource(request.user, name)
    subject = segment_or_killed(datasource, segment_id)
    segment = subject if isinstance(subject, Segment) else None
    context: dict[str, Any] = {
        **frame(request, datasource, "segments"),
        "crumbs": [
            ("Datasources", reverse("frontend:datasources")),
            (name, reverse("frontend:datasource", args=[name])),
            ("Segments", reverse("frontend:datasource-segments", args=[name])),
        ],
        "subtitle": str(subject.pk) if segment is None else segment.identifier,
        "rest": rest_address("api:segment", name, str(subject.pk)),
        "segment": segment,
        "killed": subject if segment is None else None,
        "known": subject,
        "goes": None if segment is None else deletion_time(segment),
        "story": segment_detail(subject),
        "read": read,
        "file_url": reverse("frontend:datasource-segment-file", args=[name, str(subject.pk)]),
    }
    if read and segment is not None:
        context |= _read(request, segment)
    conceal(request.user, [] if segment is None else [segment])  # its place is needed up to here
    part = read and request.htmx and segment is not None
    return render(request, "datasources/_segment_file.html" if part else "datasources/segment.html", context)


def _read(request: PageRequest, segment: Segment) -> dict[str, Any]:
    try:
        contents = segment_file(user=request.user, segment=segment, limit=ROWS_SHOWN)
    except (NotFound, NotAllowed):
        raise
    except HeadgateError as error:
        return {"problem": error}
    return {"footer": contents.footer, "lines": _lines(contents.footer), **table_of(contents.rows)}


def _lines(footer: Footer | None) -> list[ColumnLine]:
    if footer is None:
        return []
    total = sum(column.compressed_bytes for column in footer.columns) or 1
    return [ColumnLine(column, 100 * column.compressed_bytes / total) for column in footer.columns]
