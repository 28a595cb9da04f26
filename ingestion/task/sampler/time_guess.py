"""Which fields hold a record's time, and how it is written there.

Formats are proposed by what the values look like, and then tried by the indexers' own reader, so that what is offered
here is what an indexer reads. Nested fields are looked into too; their guess names the way to them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from ingestion.decode.engine import Engine
from ingestion.decode.times import TimeReader
from ingestion.specs.messages.sampling import TimeGuess
from ingestion.specs.schema.data_schema import TimestampSpec
from ingestion.specs.schema.granularity import Granularity

MEMORY_BYTES = 128 * 1024 * 1024
MAX_CANDIDATES = 40  # fields
MAX_SEEN = 2000  # fields of all records: who has more, has those looked at that come first
DEEPEST = 4
LONGEST_TEXT = 60
MIN_SHARE = 0.05
_ISO = re.compile(r"\d{4}-\d\d-\d\d([Tt ]|$)")
_PATTERNS = {
    re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d$"): ("yyyy/MM/dd HH:mm:ss",),
    re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d$"): ("dd/MM/yyyy HH:mm:ss", "MM/dd/yyyy HH:mm:ss"),
    re.compile(r"\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d$"): ("dd.MM.yyyy HH:mm:ss",),
    re.compile(r"\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}$"): ("%d/%b/%Y:%H:%M:%S %z",),
    re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d"): ("%a, %d %b %Y %H:%M:%S %Z",),
    re.compile(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$"): ("%a %b %d %H:%M:%S %Y",),
    re.compile(r"\d{8}T\d{6}Z?$"): ("%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%S"),
    re.compile(r"(19|20)\d{12}$"): ("%Y%m%d%H%M%S",),
}
# Seconds since 1970 lie here from 1980 to 2100; the other units by their powers.
_FIRST_S, _LAST_S = 315_532_800, 4_102_444_800
_UNITS = {"posix": 1, "millis": 1_000, "micro": 1_000_000, "nano": 1_000_000_000}
_A_DAY_MS = 86_400_000


@dataclass
class _Candidate:
    """A field's values by record."""

    path: tuple[str, ...]
    values: dict[int, Any] = field(default_factory=dict)


def time_guesses(fields: Sequence[Any], timestamps_ms: Sequence[int | None]) -> list[TimeGuess]:
    """``fields``: what is read of each record, None where it can't be. The best guess first, each field once."""
    guesses = []
    engine = Engine(MEMORY_BYTES)
    try:
        for candidate in _candidates(fields):
            tried = [
                _try_format(engine, candidate, form, len(fields), timestamps_ms)
                for form in _candidate_formats(candidate)
            ]
            plausible = [guess for guess in tried if guess is not None and guess.share >= MIN_SHARE]
            if plausible:
                guesses.append(min(plausible, key=_rank))
    finally:
        engine.close()
    return sorted(guesses, key=_rank)


def _rank(guess: TimeGuess) -> tuple[float, bool, int, str]:
    """Nearly all of the records first; then what is near to Kafka's time: a far one is more likely something else."""
    is_far = guess.distance_ms is None or guess.distance_ms > 30 * _A_DAY_MS
    return (-round(guess.share, 1), bool(guess.nodes) and is_far, guess.distance_ms or 0, guess.column)


def _candidates(fields: Sequence[Any]) -> list[_Candidate]:
    candidates: dict[tuple[str, ...], _Candidate] = {}
    for index, record in enumerate(fields):
        if isinstance(record, dict):
            for path, value in _leaves(record, ()):
                if path not in candidates:
                    if len(candidates) >= MAX_SEEN:
                        continue
                    candidates[path] = _Candidate(path)
                candidates[path].values[index] = value
    likely = [c for c in candidates.values() if _candidate_formats(c)]
    return sorted(likely, key=lambda c: (-len(c.values), len(c.path)))[:MAX_CANDIDATES]


def _leaves(value: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict) and len(path) + 1 < DEEPEST:
            yield from _leaves(inner, (*path, name))
        elif isinstance(inner, str | int | float) and not isinstance(inner, bool):
            yield (*path, name), inner


def _candidate_formats(candidate: _Candidate) -> list[str]:
    """Those that the first values look like."""
    formats: dict[str, None] = {}
    for value in [*candidate.values.values()][:20]:
        formats |= dict.fromkeys(_looks_like(value))
    return list(formats)


def _looks_like(value: Any) -> tuple[str, ...]:
    text = str(value).strip()
    if len(text) > LONGEST_TEXT:
        return ()
    if _ISO.match(text):
        return ("iso", "auto")  # with a blank for the T only the latter reads it
    for pattern, formats in _PATTERNS.items():
        if pattern.match(text):
            return formats
    try:
        number = float(text)
    except ValueError:
        return ()
    return tuple(unit for unit, per_s in _UNITS.items() if _FIRST_S * per_s <= number < _LAST_S * per_s)


def _try_format(
    engine: Engine, candidate: _Candidate, form: str, records: int, timestamps_ms: Sequence[int | None]
) -> TimeGuess | None:
    index = list(candidate.values)
    texts = pa.array([json.dumps(candidate.values[i], ensure_ascii=False) for i in index], pa.string())
    reader = TimeReader(engine, TimestampSpec(column="t", format=form), Granularity.DAY)
    times = reader.read(texts, np.ones(len(index), np.bool_))
    read = [(i, int(times.ms[row])) for row, i in enumerate(index) if times.readable[row]]
    if not read:
        return None
    distances = [abs(ms - kafka) for i, ms in read if (kafka := timestamps_ms[i]) is not None]
    first, example_ms = read[0]
    return TimeGuess(
        column="_".join(candidate.path) if len(candidate.path) > 1 else candidate.path[0],
        format=form,
        share=len(read) / records,
        distance_ms=int(median(distances)) if distances else None,
        example=str(candidate.values[first])[:LONGEST_TEXT],
        example_ms=example_ms,
        nodes=list(candidate.path) if len(candidate.path) > 1 else [],
    )
