"""What every view shares: who may come in, how errors become pages, how an action ends."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import update_wrapper
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import get_conditional_response, patch_cache_control
from django.utils.http import quote_etag
from django_htmx.middleware import HtmxDetails

from controlplane.common.errors import HeadgateError, NotAllowed, NotFound
from controlplane.teams.models import User

P = ParamSpec("P")


class PageRequest(HttpRequest):
    """A request whose user is logged in."""

    user: User
    htmx: HtmxDetails
    csp_nonce: str


PageView = Callable[Concatenate[PageRequest, P], HttpResponseBase]


def page(view: PageView[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Only for those logged in. What can't be seen is a 404 page, what a role may not do a 403 page."""

    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _to_login(request)
        try:
            response = view(cast(PageRequest, request), *args, **kwargs)
            # What a team sees is nobody else's, and the back button after a logout asks again.
            patch_cache_control(response, private=True, no_cache=True)
            return _not_modified(cast(PageRequest, request), response)
        except NotFound as error:
            raise Http404(error.detail) from error
        except NotAllowed as error:
            raise PermissionDenied(error.detail) from error
        except HeadgateError as error:
            return render(request, "error.html", {"error": error}, status=error.status)

    return update_wrapper(guarded, view)


# What differs each time although nothing has changed.
_TOKEN = re.compile(rb'(name="csrfmiddlewaretoken" value=")[^"]*')


def _not_modified(request: PageRequest, response: HttpResponseBase) -> HttpResponseBase:
    """304 for a part of a page that the browser has as it is, with the forms of the same session."""
    if not request.htmx or response.status_code != HTTPStatus.OK or not isinstance(response, HttpResponse):
        return response
    digest = hashlib.sha256(_TOKEN.sub(rb"\1", response.content))
    digest.update(request.META.get("CSRF_COOKIE", "").encode())
    etag = quote_etag(digest.hexdigest()[:32])
    response["ETag"] = etag
    return cast(HttpResponseBase, get_conditional_response(request, etag=etag, response=response))


def _to_login(request: HttpRequest) -> HttpResponseBase:
    # A part of a page is not replaced by the login page: the page says that nobody is logged in, and stays.
    if cast(PageRequest, request).htmx:
        return HttpResponse(status=HTTPStatus.UNAUTHORIZED)
    return redirect_to_login(request.get_full_path())


def act(request: HttpRequest, do: Callable[[], Any], done: str, back: str) -> HttpResponse:
    """Call a service, tell the user how it went, and go back to a page."""
    try:
        do()
    except (NotFound, NotAllowed):
        raise
    except HeadgateError as error:
        messages.error(request, error_text(error))
    else:
        messages.success(request, done)
    return redirect(back)


def is_sure(request: HttpRequest) -> bool:
    """Whether a question was answered with yes: without that it is asked first."""
    return bool(request.POST.get("sure"))


def error_text(error: HeadgateError) -> str:
    """An error as one text, with every fault."""
    faults = [f"{f.path or f.pointer}: {f.message}" if f.path or f.pointer else f.message for f in error.errors]
    return " ".join([error.detail, *faults])


def render_problem(request: HttpRequest, template: str, context: dict[str, Any], error: HeadgateError) -> HttpResponse:
    """The form's page again, with what the service said."""
    return render(request, template, {**context, "problem": error}, status=error.status)


def rest_address(name: str, *args: str, **query: str) -> str:
    """The REST address of what a page shows. ``query``: what is asked for; what is empty is left out."""
    parameters = urlencode({key: value for key, value in query.items() if value})
    return reverse(name, args=args) + (f"?{parameters}" if parameters else "")


def read_time(request: HttpRequest, name: str) -> datetime | None:
    """A time of the address in UTC, None for none. Raises ``ValueError`` with a text for the user."""
    text = request.GET.get(name, "").strip()
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{name} is not an ISO 8601 time, such as 2026-01-31T12:00:00Z") from None
