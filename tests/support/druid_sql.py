"""Druid SQL held against a real Druid: its rows, and the statements of clients with what Druid answered to them.

``tests/golden/druid_sql.json`` has the statements by client. ``record`` sends them to a Broker and writes its answers
beside them: ``python -m tests.support.druid_sql OVERLORD BROKER``. It makes the datasources first. A third argument,
``new``, records the cases that have no answer yet. Druid needs its extension ``druid-datasketches``.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import datasketches
import pyarrow as pa

GOLDEN = Path(__file__).parent.parent / "golden" / "druid_sql.json"
DATASOURCE = "wiki"
ROLLUP = "wiki_rollup"  # the same rows by day and country, with sketches of their pages and deltas
START = datetime(2025, 6, 1, tzinfo=UTC)
_COUNTRIES = ["FR", "DE", "US", None, "Éire", "DE"]
_TAGS: list[str | list[str] | None] = [None, "solo", ["a", "b"], ["b", "c", "a"], "a"]
_PLAIN = ("country", "page", "day", "added", "delta", "ms", "price")
_DIMENSIONS: list[Any] = ["country", "page", "tags", "day", {"type": "long", "name": "added"}]
_DIMENSIONS += [{"type": "long", "name": "delta"}, {"type": "long", "name": "ms"}, {"type": "double", "name": "price"}]
_DIMENSIONS += [{"type": "json", "name": "props"}]
_SKETCHES: list[Any] = [
    {"type": "count", "name": "n"},
    {"type": "HLLSketchBuild", "name": "pages_hll", "fieldName": "page"},
    {"type": "thetaSketch", "name": "pages_theta", "fieldName": "page"},
    {"type": "quantilesDoublesSketch", "name": "deltas", "fieldName": "delta"},
]


def rows() -> list[dict[str, Any]]:
    """300 rows of three days, with nulls, lists, numbers of two types, texts that hold times, and nested values."""
    return [_row(i) for i in range(300)]


def _row(i: int) -> dict[str, Any]:
    at = START + timedelta(minutes=13 * i, seconds=7 * i, milliseconds=i)
    return {
        "t": _iso(at),
        "country": _COUNTRIES[i % 6],
        "page": f"Page {i % 20}",
        "tags": _TAGS[i % 5],
        "day": f"{at:%Y-%m-%d}",
        "added": None if i % 17 == 0 else i * 37 % 101,
        "delta": i - 150,
        "ms": int(at.timestamp() * 1000),
        "price": None if i % 13 == 0 else i / 4,
        "props": {"a": i % 5, "b": {"c": f"x{i % 3}"}, "l": [i % 2, 7]},
    }


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def cases() -> list[dict[str, Any]]:
    """Each has the ``client`` that sends it, the ``body``, and Druid's ``status``, ``type`` and ``answer``."""
    found: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]
    return found


def on_cluster(case: dict[str, Any]) -> bool:
    """Whether it asks about the cluster, not for rows."""
    query = case["body"]["query"]
    return "INFORMATION_SCHEMA" in query or "sys." in query


def table() -> pa.Table:
    """The rows as a segment has them. Druid sorts the values of a row's list, as Headgate's decoder does."""
    written = rows()
    at = pa.array([row["ms"] * 1000 for row in written]).cast(pa.timestamp("us", "UTC"))
    tags = [sorted(t) if isinstance(t, list) else [t] if t else None for t in (row["tags"] for row in written)]
    columns = {"__time": at} | {name: pa.array([row[name] for row in written]) for name in _PLAIN}
    columns["tags"] = pa.array(tags, pa.list_(pa.string()))
    columns["props"] = pa.array([json.dumps(row["props"], separators=(",", ":")) for row in written])
    return pa.table(columns)


def rollup() -> pa.Table:
    """The rows of ``ROLLUP``, with sketches as the library of DataSketches writes them."""
    groups: dict[tuple[datetime, str | None], list[dict[str, Any]]] = {}
    for row in rows():
        at = datetime.fromisoformat(row["t"]).replace(hour=0, minute=0, second=0, microsecond=0)
        groups.setdefault((at, row["country"]), []).append(row)
    columns: dict[str, Any] = {"__time": pa.array([at for at, _ in groups], pa.timestamp("us", "UTC"))}
    columns |= {"country": [country for _, country in groups], "n": [len(found) for found in groups.values()]}
    made = [_sketches_of(found) for found in groups.values()]
    names = ("pages_hll", "pages_theta", "deltas")
    return pa.table(columns | {name: pa.array([m[place] for m in made]) for place, name in enumerate(names)})


def _sketches_of(found: list[dict[str, Any]]) -> tuple[bytes, bytes, bytes]:
    hll, theta, deltas = (
        datasketches.hll_sketch(12),
        datasketches.update_theta_sketch(14),
        datasketches.quantiles_doubles_sketch(128),
    )
    for row in found:
        hll.update(row["page"])
        theta.update(row["page"])
        deltas.update(float(row["delta"]))
    return hll.serialize_compact(), theta.compact().serialize(), deltas.serialize()


def _post(address: str, body: Any) -> tuple[int, str, str]:
    """Status, content type and text."""
    request = urllib.request.Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers.get("Content-Type", ""), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("Content-Type", ""), error.read().decode()


def _make_datasources(overlord: str, broker: str) -> None:
    plain = {"segmentGranularity": "DAY", "rollup": False}
    _make(overlord, broker, DATASOURCE, 300, {"dimensionsSpec": {"dimensions": _DIMENSIONS}, "granularitySpec": plain})
    by_day = {"segmentGranularity": "DAY", "queryGranularity": "DAY", "rollup": True}
    rolled = {"dimensionsSpec": {"dimensions": ["country"]}, "metricsSpec": _SKETCHES, "granularitySpec": by_day}
    _make(overlord, broker, ROLLUP, 15, rolled)


def _make(overlord: str, broker: str, name: str, count: int, schema: dict[str, Any]) -> None:
    if _has_rows(broker, name, count):
        return
    source = {"type": "inline", "data": "\n".join(json.dumps(row) for row in rows())}
    schema = {"dataSource": name, "timestampSpec": {"column": "t", "format": "iso"}, **schema}
    spec = {
        "dataSchema": schema,
        "ioConfig": {"type": "index_parallel", "inputSource": source, "inputFormat": {"type": "json"}},
    }
    _post(f"{overlord}/druid/indexer/v1/task", {"type": "index_parallel", "spec": spec})
    deadline = time.monotonic() + 900
    while not _has_rows(broker, name, count):
        if time.monotonic() > deadline:
            raise SystemExit(f"the rows of {name} are not there after 15 minutes")
        time.sleep(2)


def _has_rows(broker: str, name: str, count: int) -> bool:
    query = f'SELECT COUNT(*) AS n FROM "{name}"'
    return _post(f"{broker}/druid/v2/sql", {"query": query})[2].strip() == f'[{{"n":{count}}}]'


def answered(body: dict[str, Any], status: int, text: str) -> Any:
    """An answer as it is kept: JSON as such, lines and CSV as text."""
    is_text = status == 200 and body.get("resultFormat", "object") not in ("object", "array")
    return text if is_text or not text.strip() else json.loads(text)


def record(overlord: str, broker: str, which: str = "all") -> None:
    """Write Druid's answer to each case into the golden file."""
    _make_datasources(overlord, broker)
    with urllib.request.urlopen(f"{broker}/status") as answer:
        version = json.load(answer)["version"]
    found = []
    for case in cases():
        if which == "new" and "status" in case:
            found.append(case)
            continue
        status, kind, text = _post(f"{broker}/druid/v2/sql", case["body"])
        found.append({"client": case["client"], "body": case["body"], "status": status, "type": kind})
        found[-1]["answer"] = answered(case["body"], status, text)
        if status != 200 and isinstance(found[-1]["answer"], dict):
            found[-1]["answer"].pop("host", None)
    write(version, found)


def write(version: str, found: list[dict[str, Any]]) -> None:
    """A line for each case."""
    lines = ",\n".join("    " + json.dumps(case, ensure_ascii=False) for case in found)
    GOLDEN.write_text(f'{{\n  "druid": {json.dumps(version)},\n  "cases": [\n{lines}\n  ]\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    record(*(argument.rstrip("/") for argument in sys.argv[1:4]))
