"""Druid's clients, unchanged and in an environment of their own, over HTTP: they read errors, headers and types."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from controlplane.teams.models import ApiToken
from tests.support.django_cast import Cast
from tests.support.druid_clients import clients_program
from tests.support.druid_sql import rows
from tests.support.sql import druid_rows


def test_pydruid_sqlalchemy_and_pandas_read_rows_columns_and_errors(
    transactional_db: None, live_server: Any, tmp_path: Path, settings: Any, cast: Cast
) -> None:
    druid_rows(cast.alpha, tmp_path, settings)
    _, secret = ApiToken.objects.create(user=cast.users["operator"], name="pydruid")
    address = urlsplit(live_server.url)
    ran = subprocess.run(
        clients_program(str(address.hostname), int(address.port or 80), cast.users["operator"].username),
        env={"HEADGATE_TOKEN": secret, "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert (seen["names"], seen["rows"]) == (["page", "n"], [["Page 0", 5], ["Page 10", 5]])
    assert seen["last"] == "2025-06-03T17:21:53.299Z"
    assert seen["error"] == "druidException (INVALID_INPUT): LOOKUP is not supported."
    assert (seen["headed"], seen["none"]) == (["page", "added"], [])
    assert (seen["schemas"], seen["tables"]) == (["druid", "sys"], ["flights", "wiki"])
    assert seen["has"] == [True, False]
    types = {"__time": "TIMESTAMP", "added": "BIGINT", "price": "FLOAT", "page": "VARCHAR", "tags": "VARCHAR"}
    assert {name: seen["columns"][name] for name in types} == types
    sums: dict[str, int] = {}
    for row in rows():
        sums[row["page"]] = sums.get(row["page"], 0) + (row["added"] or 0)
    assert seen["top"] == [list(item) for item in sorted(sums.items(), key=lambda item: -item[1])[:3]]
    prices = [row["price"] for row in rows() if row["price"] is not None]
    assert seen["frame"] == [300, sum(prices), 300 - len(prices)]
