"""The environment of tests that use Django: one folder, PostgreSQL and Valkey for a session.

Importing this sets the variables that the settings read, so it must come before Django. It starts nothing: addresses
and passwords are known beforehand, and the servers start with the first test that asks for the database.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from controlplane.embedded.home import temporary_home
from controlplane.embedded.postgres import Postgres
from controlplane.embedded.valkey import Valkey
from tests.support.migrated import migrate
from tests.support.quick_java import QUICK_JAVA

# Tests look at what was committed, not at what survives a power cut.
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

_stack = ExitStack()
atexit.register(_stack.close)
HOME = _stack.enter_context(temporary_home())
POSTGRES = Postgres(HOME, settings=_FAST)
VALKEY = Valkey(HOME)

os.environ.update(
    {
        "DJANGO_SETTINGS_MODULE": "controlplane.config.settings",
        "DATABASE_URL": POSTGRES.dsn,
        "HEADGATE_REDIS_URL": VALKEY.url,
        "HEADGATE_SECRET_KEY": "a key for tests only, and long enough to be taken for one",
        "HEADGATE_INSECURE_COOKIES": "1",
        "HEADGATE_ALLOWED_HOSTS": "127.0.0.1,localhost,testserver",
        "HEADGATE_TASK_DIR": str(HOME.tasks),
        "HEADGATE_DEEP_STORAGE": str(HOME.segments),
        # Tests' own servers, and names with any port that lead nowhere.
        "HEADGATE_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
        "HEADGATE_ALLOWED_PORTS": "1-65535",
        "HEADGATE_AUTO_COMPACTION": "0",  # those that want it say so: the others count segments
        "JDK_JAVA_OPTIONS": QUICK_JAVA,
    }
)


@contextmanager
def servers() -> Iterator[None]:
    """PostgreSQL with all tables, and Valkey, running."""
    with POSTGRES, VALKEY:
        migrate(POSTGRES.dsn)
        yield
