"""Which intervals are partitioned: recorded where a publish or a replace has dealt out all rows of one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from controlplane.common.database import cursor

_MARK = """
    UPDATE segments_interval i SET partitioned_by = %(by)s, partitioned_revision = revision
    FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[], %(files)s::int8[]) AS w(start, stop, n)
    WHERE i.datasource_id = %(datasource)s AND i.start = w.start AND i."end" = w.stop AND i.segments = w.n
"""


def mark_partitioned(datasource: int, by: str, segments: Mapping[tuple[datetime, datetime], int]) -> None:
    """``segments``: how many new ones each interval has. One that has others too is not partitioned.

    ``by``: how their rows were dealt out; nothing is marked where it is empty. The caller has locked the intervals.
    """
    if not by:
        return
    starts, ends = [start for start, _ in segments], [end for _, end in segments]
    parameters = {"by": by, "datasource": datasource, "starts": starts, "ends": ends, "files": list(segments.values())}
    with cursor() as c:
        c.execute(_MARK, parameters)
