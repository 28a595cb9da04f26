"""The pages of what is refused, not allowed, or not there.

Django makes them in threads in which nobody gives a connection back: each would keep one of the pool's, and after a
restart of PostgreSQL every such page would fail on it. Nor does it log why one could not be made, although the page
that stands there then says so.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import update_wrapper
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views import csrf, defaults

from controlplane.api import fallback
from controlplane.api.problems import RETRY_AFTER_S, problem_of
from controlplane.common.database import borrowed_connection
from controlplane.common.unverified_requests import mark_unproven
from controlplane.config.request_body import REST_PATHS

logger = logging.getLogger(__name__)

ErrorPage = Callable[[HttpRequest, Exception], HttpResponse]


def _logged(view: ErrorPage) -> ErrorPage:
    def page(request: HttpRequest, exception: Exception) -> HttpResponse:
        try:
            with borrowed_connection():
                return view(request, exception)
        except Exception:
            logger.exception("The error page %s could not be made", view.__name__)  # Django tells the address
            raise

    return update_wrapper(page, view)


bad_request = _logged(fallback.bad_request)
not_allowed = _logged(defaults.permission_denied)
not_found = _logged(defaults.page_not_found)


def failed(request: HttpRequest) -> HttpResponse:
    """Without anything of the metadata store: that may be what failed, and then it may be there in a few seconds."""
    error = sys.exc_info()[1]
    problem = problem_of(error if isinstance(error, Exception) else Exception())
    if problem.status != HTTPStatus.SERVICE_UNAVAILABLE:
        return defaults.server_error(request)
    if request.path_info.startswith(REST_PATHS):
        return fallback.problem_response(request, problem)
    page = loader.get_template("503.html").render({"detail": problem.detail})
    return HttpResponse(page, status=problem.status, headers={"Retry-After": str(RETRY_AFTER_S)})


def form_expired(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without the CSRF token of this session, as of a page from before a login."""
    mark_unproven(request)
    return csrf.csrf_failure(request, reason)
