"""Django's form of the metadata store's address."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from controlplane.common.environment import EnvironmentProblem, text
from controlplane.config import env

_CONNECTION = (("NAME", "dbname"), ("USER", "user"), ("PASSWORD", "password"), ("HOST", "host"), ("PORT", "port"))


def metadata_store(name: str) -> dict[str, Any]:
    """The database that a variable names as libpq reads it: one host or several, and parameters of libpq.

    What libpq says about an address that it can't read may contain the password, so the error does not repeat it.
    """
    try:
        given = conninfo_to_dict(text(name))
    except psycopg.ProgrammingError:
        given = {}
    if not given.get("dbname"):
        raise EnvironmentProblem(
            f"{name} must be an address such as postgresql://user:password@host:port/database. It may have several "
            "hosts with commas between them, and libpq's parameters after a question mark. Write special characters "
            "of the password as %XX."
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        **{key: given.pop(of, None) or "" for key, of in _CONNECTION},
        "CONN_HEALTH_CHECKS": True,  # the pool lends no connection that was cut, as by a failover
        "OPTIONS": _options(given),
    }


def _options(given: dict[str, Any]) -> dict[str, Any]:
    return {
        # After a failed connect it waits up to a second, then two, then four, then the next request connects at once.
        "pool": {
            "min_size": 1,
            "max_size": env.number("HEADGATE_DATABASE_POOL", 16),
            "timeout": 10,
            "reconnect_timeout": 5,
        },
        "prepare_threshold": 5,  # for controlplane.common.database; the ORM's statements are never prepared
        # A server that is gone without a word is given up after 11 s, and a standby is no metadata store.
        "connect_timeout": 3,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 11_000,
        "target_session_attrs": "read-write",
        **given,
        # A host that lost its power holds no lock for longer than this: the server gives up on it after 25 s.
        "options": "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 "
        + given.get("options", ""),
    }
