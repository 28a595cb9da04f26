"""PostgreSQL: version, rights, migrations, clock, connections, and whether answered commits are safe."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from psycopg.rows import namedtuple_row

from controlplane.common.database import OWN_SESSIONS, SHARED_SESSIONS, ask_directly, shares_sessions
from controlplane.operations.doctor.findings import FAIL, OK, WARN, Finding

NAME = "PostgreSQL"
CONNECT_S = 5
STATEMENT_S = 10
OLDEST_VERSION, TESTED_VERSION = 14, 18
CLOCK_WARN, CLOCK_FAIL = timedelta(seconds=1), timedelta(seconds=5)
_FACTS = """
    SELECT split_part(current_setting('server_version'), ' ', 1) AS version, current_user::text AS role,
        pg_is_in_recovery() AS in_recovery, current_setting('default_transaction_read_only')::bool AS read_only,
        has_schema_privilege(current_schema(), 'CREATE, USAGE') AS may_create,
        (SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
            AND NOT pg_has_role(relowner, 'USAGE')) AS foreign_tables,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS most,
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
        (SELECT string_agg(name, ' and ') FROM pg_settings
            WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off') AS off,
        current_setting('synchronous_commit') AS commit, current_setting('synchronous_standby_names') AS waits_for,
        (SELECT count(*) FROM pg_stat_replication) AS standbys
"""


def check_metadata_store() -> Iterator[Finding]:
    """Uses Django's connection; its statements have a time limit. Of a store that does not answer, it says no more."""
    target = connection.settings_dict
    place = f"{target['HOST'] or 'the local socket'}:{target['PORT'] or 5432}/{target['NAME']}"
    try:
        lead = ask_directly(CONNECT_S)
        pooled = Finding(shares_sessions(), FAIL, SHARED_SESSIONS.rstrip("."), OWN_SESSIONS, f"{NAME} sessions")
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SELECT set_config('statement_timeout', '{STATEMENT_S}s', true)")
            facts: Any = psycopg.Cursor(connection.connection, row_factory=namedtuple_row).execute(_FACTS).fetchone()
            rules = [pooled, *judge_server(facts, abs(lead)), *_judge_migrations(MigrationExecutor(connection))]
    except (psycopg.Error, DatabaseError) as error:
        found = f"{place} does not answer: {' '.join(str(error).split())}"
        yield Finding(True, FAIL, found, "Check DATABASE_URL, the server, its log and the network.")
    else:
        yield from rules


def judge_server(facts: Any, difference: timedelta) -> Iterator[Finding]:
    """``facts``: a row of ``_FACTS``. ``difference``: of its clock from this machine's."""
    found, major = f"version {facts.version}", int(facts.version.split(".")[0])
    advice = f"Upgrade it: {OLDEST_VERSION} is needed, {TESTED_VERSION} is tested."
    yield Finding(major < OLDEST_VERSION, FAIL, found, advice)
    is_untested = OLDEST_VERSION <= major != TESTED_VERSION
    yield Finding(is_untested, WARN, found, f"Headgate is tested with {TESTED_VERSION}.")
    yield Finding(True, OK, found)
    name, found = f"{NAME} recovery", "this is a standby, which takes no writes"
    yield Finding(facts.in_recovery, FAIL, found, "Point DATABASE_URL at the primary.", name)
    advice = "Turn default_transaction_read_only off."
    yield Finding(facts.read_only, FAIL, "transactions are read-only by default", advice, name)
    yield Finding(True, OK, "it takes writes", check=name)
    name, role = f"{NAME} privileges", facts.role
    advice = f"GRANT CREATE, USAGE ON SCHEMA public TO {role};"
    yield Finding(not facts.may_create, FAIL, f"{role} may not create tables", advice, name)
    found = f"{facts.foreign_tables} tables belong to another role than {role}, which makes and drops partitions"
    yield Finding(facts.foreign_tables, FAIL, found, f"Make {role} their owner: REASSIGN OWNED.", name)
    yield Finding(True, OK, f"{role} owns the tables and may create others", check=name)
    name, found = f"{NAME} clock", f"it differs from this machine's by {difference.total_seconds():.1f} s"
    advice = "Let NTP set the clocks of both: times of tasks and leases are compared."
    yield Finding(difference >= CLOCK_WARN, FAIL if difference >= CLOCK_FAIL else WARN, found, advice, name)
    yield Finding(True, OK, found, check=name)
    name, pool = f"{NAME} connections", settings.DATABASES["default"]["OPTIONS"]["pool"]["max_size"]
    found = f"{facts.used} of {facts.most} are in use; a web process takes up to {pool}, a process of a worker one"
    is_full = facts.most - facts.used < pool
    yield Finding(is_full, FAIL, found, "Raise max_connections, or run fewer processes.", name)
    yield Finding(not is_full and facts.most < 4 * pool, WARN, found, "Set max_connections to 200.", name)
    yield Finding(True, OK, found, check=name)
    name, waits_for, standbys = f"{NAME} durability", facts.waits_for, facts.standbys
    found = f"{facts.off} off: after a crash, records that Kafka takes for read may be lost"
    yield Finding(facts.off, FAIL, found, "Turn it on.", name)
    found = f"{standbys} standbys, and no commit waits for them: a failover may lose publishes"
    yield Finding(standbys and not waits_for, WARN, found, "Set synchronous_standby_names.", name)
    is_local = waits_for and facts.commit == "local"
    found = f"synchronous_standby_names is {waits_for}, but synchronous_commit is local: no commit waits for a standby"
    yield Finding(is_local, WARN, found, "Set synchronous_commit to on.", name)
    found = f"commits wait for {waits_for}, and no standby is connected"
    yield Finding(waits_for and not is_local and not standbys, FAIL, found, "Start the standby.", name)
    yield Finding(waits_for, OK, f"commits wait for {waits_for}; {standbys} standbys are connected", check=name)
    found = "commits are on disk when they are answered; there is no standby, so take backups"
    yield Finding(True, OK, found, check=name)


def _judge_migrations(executor: MigrationExecutor) -> Iterator[Finding]:
    """Of the apps that are installed: those that are missing, and those that this version does not have."""
    name, loader = f"{NAME} migrations", executor.loader
    missing = ", ".join(str(m) for m, _ in executor.migration_plan(loader.graph.leaf_nodes()))
    newer = loader.applied_migrations.keys() - loader.graph.nodes.keys() - (loader.replacements or {}).keys()
    unknown = ", ".join(sorted(f"{app}.{migration}" for app, migration in newer if app in loader.migrated_apps))
    advice = "Run the newer version, or restore a backup of this one."
    yield Finding(unknown, FAIL, f"the tables are of a newer version: {unknown}", advice, name)
    yield Finding(missing, FAIL, f"not applied: {missing}", "Run manage.py migrate.", name)
    yield Finding(True, OK, "all are applied", check=name)
