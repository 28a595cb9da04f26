"""Columns of segment files that nobody is shown: what tells the first of the records that became a row from the last.

They are int64, and come after all others. Times are milliseconds since 1970. Orders grow with the records as they came,
whichever segment they are in. No schema has columns of these names, and no field of theirs becomes a column.
"""

from __future__ import annotations

EXTENTS = ("__headgate_first_time", "__headgate_first_order", "__headgate_last_time", "__headgate_last_order")
