"""The endpoints of the compaction application: see ``ingestion.specs.messages.compaction`` for the messages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from controlplane.api.internal.base import for_resident, message, outcome_of, parse_body
from controlplane.common.measures import PUBLISHES, timed
from controlplane.compaction import jobs
from controlplane.segments import columns
from controlplane.tasks import publish_checks, residents
from ingestion.specs.messages.column_ids import ColumnsRequest
from ingestion.specs.messages.compaction import (
    DepartureRequest,
    Done,
    FailedRequest,
    ReplaceAnswer,
    ReplaceRequest,
    WorkRequest,
)


@for_resident
def work(request: HttpRequest, application: str) -> HttpResponse:
    """Once a second, the application reports its jobs and gets new ones."""
    return message(jobs.assign_jobs(application, parse_body(request, WorkRequest)))


@for_resident
def column_ids(request: HttpRequest, application: str, job_id: str) -> HttpResponse:
    """The ids of the columns that a job will write; new columns get ids. 409 if another application has the job."""
    body = parse_body(request, ColumnsRequest)
    return message(columns.assign_column_ids(jobs.datasource_of(application, job_id), body))


@for_resident
def replace(request: HttpRequest, application: str, job_id: str) -> HttpResponse:
    """Publish the outcome of a job: 200, or 409 with a refusal."""
    body = parse_body(request, ReplaceRequest)
    with timed(PUBLISHES, "merge", outcome_of):
        publish_checks.check_files(body.segments)
        segment_ids = jobs.replace(application, job_id, body)
    return message(ReplaceAnswer(segment_ids=segment_ids))


@for_resident
def failed(request: HttpRequest, application: str, job_id: str) -> HttpResponse:
    """An attempt failed."""
    jobs.fail(application, job_id, parse_body(request, FailedRequest))
    return message(Done())


@for_resident
def end(request: HttpRequest, application: str) -> HttpResponse:
    """The application ends, and its token expires."""
    residents.end(application, parse_body(request, DepartureRequest).error)
    jobs.requeue_jobs(application)
    return message(Done())
