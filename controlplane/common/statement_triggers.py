"""Triggers of whole statements, for migrations."""

from django.db.migrations import RunSQL

# Of each event, its rows as a trigger's function sees them.
_EVENTS = {
    "insert": "NEW TABLE AS added",
    "delete": "OLD TABLE AS taken",
    "update": "OLD TABLE AS taken NEW TABLE AS added",
}


def statement_trigger(table: str, name: str, event: str, body: str) -> RunSQL:
    """After each statement of that event on the table, ``body`` runs with its rows: ``added``, ``taken``.

    Trigger and function are named ``<table>_<name>_on_<event>``.
    """
    function = f"{table}_{name}_on_{event}"
    return RunSQL(
        f"""
        CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $${body}$$;
        CREATE TRIGGER {function} AFTER {event.upper()} ON {table}
        REFERENCING {_EVENTS[event]} FOR EACH STATEMENT EXECUTE FUNCTION {function}();
        """,
        f"DROP TRIGGER {function} ON {table}; DROP FUNCTION {function}();",
    )
