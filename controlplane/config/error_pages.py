"""The pages of what is refused, not allowed, or not there.

Django makes them in threads in which nobody gives a connection back: each would keep one of the pool's, and after a
restart of PostgreSQL every such page would fail on it.
"""

from __future__ import annotations

from django.views import defaults

from controlplane.api import fallback
from controlplane.common.database import borrowed_connection

bad_request = borrowed_connection()(fallback.bad_request)
not_allowed = borrowed_connection()(defaults.permission_denied)
not_found = borrowed_connection()(defaults.page_not_found)
