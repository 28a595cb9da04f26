"""Limits of a spec's lists and texts, because a process that reads a long spec answers nobody else meanwhile.

The request also limits the whole spec: 1 MiB, 64 levels deep.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, Field

MAX_COLUMNS = 2_000  # dimensions and metrics
MAX_FILTERED = 100  # metrics of type filtered, and as many that read an expression
MAX_FIELDS = 10_000  # names of fields in a list
MAX_EXPRESSIONS = 500  # of transforms and of the filter
MAX_FILTERS = 1_000  # in one another and beside one another
DEEPEST_FILTER = 30
MAX_VALUES = 10_000  # of all filters
MAX_FLATTENED = 2_000
MAX_SEARCHES = 100  # wildcards and descents of all JsonPaths
MAX_PROGRAMS = 100  # of jq
MAX_STEPS = 50  # of a JsonPath or of a way by names
MAX_DESCENTS = 1  # of a JsonPath: each further one multiplies its cost by a record's depth
MAX_SCHEMAS = 100
MAX_HEADERS = 100
MAX_INTERVALS = 1_000
MAX_UNREAD = 100  # records that a task's report shows
LONGEST_NAME = 1_000
LONGEST_VALUE = 10_000
LONGEST_EXPRESSION = 10_000
LONGEST_PATTERN = 200
LONGEST_TYPE = 100
LONGEST_PROPERTY = 256 * 1024


def duplicates(names: Iterable[str]) -> list[str]:
    """Those that stand there more than once, sorted. Looks at each name once."""
    seen: set[str] = set()
    twice: set[str] = set()
    for name in names:
        (twice if name in seen else seen).add(name)
    return sorted(twice)


def list_names(names: list[str], most: int = 20) -> str:
    """For a message: the first of them, and how many there are beside."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name[:100] for name in names[:most]) + more


def in_one_line(text: str) -> bool:
    """Whether there is no line break and no other control character in it."""
    return not any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in text)


def one_line(value: str) -> str:
    """A name that the spec gives. Raises ``ValueError``."""
    if not in_one_line(value):
        raise ValueError("must be one line of text, without line breaks and other control characters")
    return value


def short(value: str) -> str:
    """A name, or a text as short as one. Raises ``ValueError``."""
    if len(value) > LONGEST_NAME:
        raise ValueError(f"has {len(value)} characters; {LONGEST_NAME} at most")
    return value


FieldName = Annotated[str, Field(min_length=1), AfterValidator(short)]
"""A field as records have it, whatever it is called."""
ColumnName = Annotated[FieldName, AfterValidator(one_line)]
"""A name that the spec gives to something that is made."""
