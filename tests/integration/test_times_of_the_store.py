"""Times as they come from the store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import DataError, connection
from psycopg.pq import Format

from controlplane.common.database import TimeLoader


@pytest.mark.parametrize("zone", ["UTC", "America/Sao_Paulo", "Asia/Kolkata"])
@pytest.mark.parametrize(
    "written",
    [
        "2026-11-23 01:02:03+00",
        "2026-11-23 01:02:03.5+00",
        "2026-11-23 01:02:03.000001+00",
        "0044-03-15 12:00:00+00",
        "1850-06-01 00:00:00.25+00",  # zones had seconds then
        "9998-12-31 23:59:59.999999+00",
    ],
)
def test_they_are_in_utc_whatever_the_sessions_zone(db: None, written: str, zone: str) -> None:
    with connection.cursor() as cursor:
        assert issubclass(cursor.adapters.get_loader(1184, Format.TEXT), TimeLoader)
        cursor.execute("SELECT set_config('TimeZone', %s, true)", [zone])
        cursor.execute("SELECT %s::timestamptz", [written])
        (read,) = cursor.fetchone()
    assert read == datetime.fromisoformat(written) and read.tzinfo == UTC


@pytest.mark.parametrize("written", ["infinity", "20000-01-01 00:00:00+00"])
def test_one_that_python_does_not_have_is_an_error(db: None, written: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [written])
        with pytest.raises(DataError):
            cursor.fetchone()
