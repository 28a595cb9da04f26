"""Emptying the database after a test that commits, in a few milliseconds.

Django truncates every table and then makes its permissions anew. Here the rows of the tables go and nothing else does,
so a test that wrote little costs little.
"""

from __future__ import annotations

import psycopg
from django.db import connection
from django.test import TransactionTestCase

from tests.support.environment import POSTGRES

# Migrations fill these, and no test changes them.
_KEPT = {"django_content_type", "auth_permission"}
# As a replica: without triggers, which keep the audit trail, and without foreign keys, which prescribe an order.
_EMPTY = """
    DO $$ DECLARE name text; BEGIN
        PERFORM set_config('session_replication_role', 'replica', true);
        FOREACH name IN ARRAY string_to_array('{}', ' ') LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
    END $$
"""


def empty_tables(_: TransactionTestCase) -> None:
    """Takes the place of ``TransactionTestCase._fixture_teardown``."""
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    wanted = " ".join(sorted(set(names) - _KEPT))
    with psycopg.connect(POSTGRES.superuser_dsn, dbname=connection.settings_dict["NAME"]) as superuser:
        superuser.execute(_EMPTY.format(wanted))
