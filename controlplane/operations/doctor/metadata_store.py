"""PostgreSQL: version, rights, migrations, clock, connections, and whether answered commits are safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from controlplane.common.database import ask_directly
from controlplane.operations.doctor.findings import Check, Finding, fail, ok, run_one, warn

NAME = "PostgreSQL"
CONNECT_S = 5
STATEMENT_S = 10
OLDEST_VERSION = 14
TESTED_VERSION = 18
CLOCK_WARN, CLOCK_FAIL = timedelta(seconds=1), timedelta(seconds=5)


def check_metadata_store() -> Iterator[Finding]:
    """Uses Django's connection. The first finding is a failure if the store does not answer; then it is the only one.

    Every statement has a time limit.
    """
    target = connection.settings_dict
    place = f"{target['HOST'] or 'the local socket'}:{target['PORT'] or 5432}/{target['NAME']}"
    try:
        ask_directly(CONNECT_S)
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        yield fail(NAME, f"{place} does not answer: {reason}", "Check DATABASE_URL, the server and the network.")
        return
    for name, check in (
        ("", _version),
        ("recovery", _recovery),
        ("privileges", _privileges),
        ("migrations", _migrations),
        ("clock", _clock),
        ("connections", _connections),
        ("durability", _durability),
    ):
        yield from run_one(Check(f"{NAME} {name}".strip(), _limited(check, f"{NAME} {name}".strip())))


def _limited(check: Callable[[str], Iterator[Finding]], name: str) -> Callable[[], list[Finding]]:
    def run() -> list[Finding]:
        try:
            with transaction.atomic():
                _row(f"SELECT set_config('statement_timeout', '{STATEMENT_S}s', true)")
                return list(check(name))
        except DatabaseError as error:
            reason = " ".join(str(error).split())
            return [fail(name, f"a question failed: {reason}", "See the server's log.")]

    return run


def _row(statement: str, parameters: list[Any] | None = None) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        row: tuple[Any, ...] = cursor.fetchone()
    return row


def _setting(name: str) -> str:
    return str(_row("SELECT current_setting(%s, true)", [name])[0] or "")


def _version(name: str) -> Iterator[Finding]:
    version = _setting("server_version").split()[0]
    major = int(version.split(".")[0])
    if major < OLDEST_VERSION:
        yield fail(name, f"version {version}", f"Upgrade it: {OLDEST_VERSION} is needed, {TESTED_VERSION} is tested.")
    elif major != TESTED_VERSION:
        yield warn(name, f"version {version}", f"Headgate is tested with {TESTED_VERSION}.")
    else:
        yield ok(name, f"version {version}")


def _recovery(name: str) -> Iterator[Finding]:
    if _row("SELECT pg_is_in_recovery()")[0]:
        yield fail(name, "this is a standby, which takes no writes", "Point DATABASE_URL at the primary.")
    elif _setting("default_transaction_read_only") == "on":
        yield fail(name, "transactions are read-only by default", "Turn default_transaction_read_only off.")
    else:
        yield ok(name, "it takes writes")


def _privileges(name: str) -> Iterator[Finding]:
    user, may_create = _row("SELECT current_user, has_schema_privilege(current_schema(), 'CREATE, USAGE')")
    (foreign,) = _row(
        "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')"
        " AND NOT pg_has_role(relowner, 'USAGE')"
    )
    if not may_create:
        yield fail(name, f"{user} may not create tables", f"GRANT CREATE, USAGE ON SCHEMA public TO {user};")
    if foreign:
        found = f"{foreign} tables belong to another role than {user}, which makes and drops partitions"
        yield fail(name, found, f"Make {user} their owner: REASSIGN OWNED.")
    if may_create and not foreign:
        yield ok(name, f"{user} owns the tables and may create others")


def _migrations(name: str) -> Iterator[Finding]:
    executor = MigrationExecutor(connection)
    missing = [str(m) for m, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
    unknown = unknown_migrations(executor)
    if unknown:
        found = f"the tables are of a newer version: {', '.join(unknown)}"
        yield fail(name, found, "Run the newer version, or restore a backup of this one.")
    if missing:
        yield fail(name, f"not applied: {', '.join(missing)}", "Run manage.py migrate.")
    if not missing and not unknown:
        yield ok(name, "all are applied")


def unknown_migrations(executor: MigrationExecutor) -> list[str]:
    """Of the apps that are installed: those that were applied and that this version does not have."""
    known = executor.loader.graph.nodes.keys() | (executor.loader.replacements or {}).keys()
    own = executor.loader.migrated_apps
    return sorted(
        f"{app}.{name}" for app, name in executor.loader.applied_migrations if app in own and (app, name) not in known
    )


def _clock(name: str) -> Iterator[Finding]:
    before = datetime.now(UTC)
    (theirs,) = _row("SELECT clock_timestamp()")
    after = datetime.now(UTC)
    difference = max(before - theirs, theirs - after, timedelta(0))
    found = f"it differs from this machine's by {difference.total_seconds():.1f} s"
    if difference >= CLOCK_WARN:
        make = fail if difference >= CLOCK_FAIL else warn
        yield make(name, found, "Let NTP set the clocks of both: times of tasks and leases are compared.")
    else:
        yield ok(name, found)


def _connections(name: str) -> Iterator[Finding]:
    most = int(_setting("max_connections")) - int(_setting("superuser_reserved_connections"))
    (used,) = _row("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
    pool = settings.DATABASES["default"]["OPTIONS"]["pool"]["max_size"]
    found = f"{used} of {most} are in use; a web process takes up to {pool}, a process of a worker one"
    if most - used < pool:
        yield fail(name, found, "Raise max_connections, or run fewer processes.")
    elif most < 4 * pool:
        yield warn(name, found, "Set max_connections to 200.")
    else:
        yield ok(name, found)


def _durability(name: str) -> Iterator[Finding]:
    off = [s for s in ("fsync", "full_page_writes", "synchronous_commit") if _setting(s) == "off"]
    (standbys,) = _row("SELECT count(*) FROM pg_stat_replication")
    waits = _setting("synchronous_standby_names")
    if off:
        found = f"{' and '.join(off)} off: after a crash, records that Kafka takes for read may be lost"
        yield fail(name, found, "Turn it on.")
    elif standbys and not waits:
        found = f"{standbys} standbys, and no commit waits for them: a failover may lose publishes"
        yield warn(name, found, "Set synchronous_standby_names.")
    elif waits and _setting("synchronous_commit") == "local":
        found = f"synchronous_standby_names is {waits}, but synchronous_commit is local: no commit waits for a standby"
        yield warn(name, found, "Set synchronous_commit to on.")
    elif waits and not standbys:
        yield fail(name, f"commits wait for {waits}, and no standby is connected", "Start the standby.")
    elif waits:
        yield ok(name, f"commits wait for {waits}; {standbys} standbys are connected")
    else:
        yield ok(name, "commits are on disk when they are answered; there is no standby, so take backups")
