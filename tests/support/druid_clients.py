"""Druid's clients in an environment of their own: pydruid's DB-API, its SQLAlchemy dialect, and pandas through it.

Made with ``uv pip compile --generate-hashes`` of ``pydruid``, ``sqlalchemy<2.1``, ``pandas<3`` and ``setuptools``, by
which pydruid is built.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.own_environment import python_with

VERSION = "0.6.9"
# Connects to the host and port at ``sys.argv`` as ``sys.argv[3]``, and prints what the three clients see as JSON.
_PROGRAM = """
import json, os, sys
import pandas
import sqlalchemy
from pydruid.db import connect
from pydruid.db.exceptions import ProgrammingError

host, port, user = sys.argv[1], int(sys.argv[2]), sys.argv[3]
password = os.environ["HEADGATE_TOKEN"]
seen = {}
cursor = connect(host=host, port=port, path="/druid/v2/sql/", scheme="http", user=user, password=password).cursor()
counts = "SELECT page, COUNT(*) AS n FROM wiki WHERE country = %(c)s GROUP BY page ORDER BY page LIMIT 2"
cursor.execute(counts, {"c": "FR"})
seen["names"] = [column[0] for column in cursor.description]
seen["rows"] = [list(row) for row in cursor.fetchall()]
seen["last"] = cursor.execute("SELECT MAX(__time) AS t FROM wiki").fetchone()[0]
try:
    cursor.execute("SELECT LOOKUP(country, 'x') FROM wiki")
except ProgrammingError as error:
    seen["error"] = str(error)
headed = connect(host=host, port=port, user=user, password=password, header=True).cursor()
headed.execute("SELECT page, added FROM wiki WHERE 1 = 0")
seen["headed"] = [column[0] for column in headed.description]
seen["none"] = headed.fetchall()

engine = sqlalchemy.create_engine(f"druid+http://{user}:{password}@{host}:{port}/druid/v2/sql/")
inspector = sqlalchemy.inspect(engine)
seen["schemas"] = inspector.get_schema_names()
seen["tables"] = inspector.get_table_names(schema="druid")
seen["columns"] = {column["name"]: str(column["type"]) for column in inspector.get_columns("wiki", schema="druid")}
wiki = sqlalchemy.table("wiki", sqlalchemy.column("page"), sqlalchemy.column("added"))
total = sqlalchemy.func.sum(wiki.c.added).label("total")
query = sqlalchemy.select(wiki.c.page, total).group_by(wiki.c.page).order_by(total.desc()).limit(3)
with engine.connect() as connection:
    seen["has"] = [engine.dialect.has_table(connection, name) for name in ("wiki", "nothing")]
    seen["top"] = [list(row) for row in connection.execute(query)]
    frame = pandas.read_sql(sqlalchemy.text("SELECT __time, price FROM wiki ORDER BY __time"), connection)
seen["frame"] = [len(frame), float(frame["price"].sum()), int(frame["price"].isna().sum())]
print(json.dumps(seen))
"""


def druid_clients() -> Path:
    """Their Python."""
    return python_with(f"druid-clients-{VERSION}", Path(__file__).with_suffix(".txt"))


def clients_program(host: str, port: int, user: str) -> list[str]:
    """The command. Its environment has a token as ``HEADGATE_TOKEN``."""
    return [str(druid_clients()), "-c", _PROGRAM, host, str(port), user]
