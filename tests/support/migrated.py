"""What the migrations make of an empty metadata store, kept in the cache folder as PostgreSQL writes it.

To run them takes eight seconds of a processor: at each change Django makes all models that a table refers to anew. A
stack's login takes two: Django starts, and hashes a password.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping

from controlplane.embedded import apps
from controlplane.embedded.home import PROJECT, Home, default_cache
from controlplane.embedded.postgres import installation
from controlplane.embedded.waiting import file_lock

_LONGEST_S = 300.0
_PASSWORD = "the-password-of-every-stack-of-tests"


def migrate(dsn: str) -> None:
    """Brings an empty database up to date; the first time by the migrations, until the code changes."""
    _restore(dsn, "migrated", _run_migrations)


def prepare(home: Home, dsn: str, environment: Mapping[str, str]) -> None:
    """Brings an empty database up to date, and makes the login of the home, as a stack does before it starts."""
    home.secret("login_password", lambda: _PASSWORD)

    def make(empty: str) -> None:
        migrate(empty)
        apps.prepare_database(home, environment)

    _restore(dsn, "prepared", make)


def _restore(dsn: str, name: str, make: Callable[[str], None]) -> None:
    cache = default_cache()
    cache.mkdir(parents=True, exist_ok=True)
    kept = cache / f"{name}-{_code()}.dump"
    with file_lock(cache / f"{name}.lock", _LONGEST_S, None):
        if not kept.exists():
            for former in cache.glob(f"{name}-*.dump"):
                former.unlink()
            make(dsn)
            _run("pg_dump", "--format=custom", f"--file={kept}.new", dsn)
            os.rename(f"{kept}.new", kept)
            return
    _run("pg_restore", "--exit-on-error", "--single-transaction", f"--dbname={dsn}", str(kept))


def _run_migrations(dsn: str) -> None:
    environment = {**os.environ, "DATABASE_URL": dsn, "HEADGATE_SECRET_KEY": "of no use"}
    command = [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity=0"]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True, timeout=_LONGEST_S)


def _run(program: str, *arguments: str) -> None:
    subprocess.run([installation() / "bin" / program, *arguments], check=True, timeout=_LONGEST_S)


def _code() -> str:
    """A mark of the control plane's code, from which migrations import, and of the packages with their migrations."""
    found = hashlib.sha256((PROJECT / "requirements.txt").read_bytes())
    for path in sorted((PROJECT / "controlplane").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]
