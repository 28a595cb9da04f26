"""The pages of what is refused, not allowed, or not there.

Django makes them in threads in which nobody gives a connection back: each would keep one of the pool's, and after a
restart of PostgreSQL every such page would fail on it. Nor does it log why one could not be made, although the page
that stands there then says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import update_wrapper

from django.http import HttpRequest, HttpResponse
from django.views import csrf, defaults

from controlplane.api import fallback
from controlplane.common.database import borrowed_connection
from controlplane.common.unverified_requests import mark_unproven

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


def form_expired(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without the CSRF token of this session, as of a page from before a login."""
    mark_unproven(request)
    return csrf.csrf_failure(request, reason)
