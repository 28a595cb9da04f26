"""The base of the indexers' endpoints: check the token, read the message, map errors."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, DataError, IntegrityError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from pydantic import BaseModel, ValidationError

from controlplane.common.errors import HeadgateError
from controlplane.common.measures import FAILED
from controlplane.publishing.fence import PublishRefused
from controlplane.tasks.lifecycle import token_and_status, token_hash
from controlplane.tasks.models import ENDED
from controlplane.tasks.residents import token_and_end
from ingestion.specs.errors import error_text

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=BaseModel)
_COMPACTION = "/internal/compaction/"
View = Callable[..., HttpResponse]


def problem(status: int, title: str, detail: str, **more: Any) -> JsonResponse:
    """A problem+json answer (RFC 9457)."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return JsonResponse(body, status=status, content_type="application/problem+json")


def message(answer: BaseModel, status: int = 200, exclude_none: bool = False) -> HttpResponse:
    """A model as JSON. ``exclude_none``: without fields that an application of the version before may not know."""
    content = answer.model_dump_json(exclude_none=exclude_none)
    return HttpResponse(content, status=status, content_type="application/json")


def for_task(method: str) -> Callable[[View], View]:
    """Admits only the task's own application. Answers errors as problem+json."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @wraps(view)
        def guarded(request: HttpRequest, task_id: str, **kwargs: Any) -> HttpResponse:
            if request.method != method:
                return problem(405, "Method not allowed", f"Use {method}.")
            status = _status_for_token(request, task_id)
            if status is None:
                return problem(401, "Unauthorized", "The token is not this task's.")
            if status in ENDED:
                return problem(410, "Gone", f"Task {task_id} has ended ({status}).")
            return _respond(view, request, task_id, kwargs)

        return guarded

    return decorate


def for_resident(view: View) -> View:
    """Admits only the application for all datasources that the address names. Else like ``for_task``."""

    @csrf_exempt
    @wraps(view)
    def guarded(request: HttpRequest, application: str, **kwargs: Any) -> HttpResponse:
        if request.method != "POST":
            return problem(405, "Method not allowed", "Use POST.")
        ended = _resident_ended(request, application)
        if ended is None:
            return problem(401, "Unauthorized", "The token is not this application's.")
        if ended:
            return problem(410, "Gone", f"Application {application} has ended.")
        return _respond(view, request, application, kwargs)

    return guarded


def _resident_ended(request: HttpRequest, application: str) -> bool | None:
    """Whether the application has ended. Only for a request with the application's own token."""
    known_hash, ended = token_and_end(application)
    same = hmac.compare_digest(known_hash, token_hash(_token(request)))
    return ended if known_hash and same else None


def _token(request: HttpRequest) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ").strip()


def is_authorized(request: HttpRequest) -> bool:
    """Whether the request has the token of the task or application in its address, and that one has not ended."""
    if request.path_info.startswith(_COMPACTION):
        return _resident_ended(request, request.path_info.removeprefix(_COMPACTION).partition("/")[0]) is False
    task_id = request.path_info.removeprefix("/internal/tasks/").partition("/")[0]
    status = _status_for_token(request, task_id)
    return status is not None and status not in ENDED


def _status_for_token(request: HttpRequest, task_id: str) -> str | None:
    """The task's status. Only for a request with the task's own token."""
    known_hash, status = token_and_status(task_id)
    same = hmac.compare_digest(
        known_hash, token_hash(_token(request))
    )  # also for an unknown task: the time tells nothing
    return status if known_hash and same else None


def _respond(view: View, request: HttpRequest, task_id: str, kwargs: dict[str, Any]) -> HttpResponse:
    try:
        return view(request, task_id, **kwargs)
    except PublishRefused as refused:
        return message(refused.refusal, 409)
    except ValidationError as error:
        faults = [{"pointer": "/" + "/".join(map(str, e["loc"])), "detail": error_text(e)} for e in error.errors()[:50]]
        return problem(400, "The message is not valid", "It is not of the protocol's form.", errors=faults)
    except HeadgateError as error:
        return problem(error.status, error.title, error.detail)
    except RequestDataTooBig:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        return problem(413, "The message is too large", f"The message is too large. It may have at most {most} bytes.")
    except IntegrityError as error:
        return problem(409, "Conflict", f"The message contradicts stored data: {_contradiction(error)}")
    except DataError as error:
        return problem(400, "The message is not valid", f"A value of the message cannot be stored: {error}")
    except DatabaseError:
        logger.exception("task %s: the metadata store failed", task_id)
        return problem(503, "Unavailable", "The metadata store failed; send the same message again.")


def _contradiction(error: IntegrityError) -> str:
    diagnostics = getattr(error.__cause__, "diag", None)
    return (diagnostics and (diagnostics.message_detail or diagnostics.message_primary)) or str(error)


def outcome_of(error: Exception) -> str:
    """The outcome of a refused publish: its refusal's code, ``invalid``, or ``failed``, which is retried."""
    if isinstance(error, PublishRefused):
        return error.refusal.code
    return "invalid" if isinstance(error, (HeadgateError, IntegrityError, DataError)) else FAILED


def parse_body(request: HttpRequest, model: type[M]) -> M:
    """The request's body as a protocol message. Raises ``ValidationError``."""
    return model.model_validate_json(request.body)
