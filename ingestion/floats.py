"""Numbers of Druid's type float. Columns hold them as doubles."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_IN_FULL = 2.0**29  # Java writes all digits of whole floats below


def as_floats(numbers: pa.Array) -> pa.Array:
    """Doubles that have the digits which Java writes of the nearest floats; null beyond a float."""
    near = numbers.cast(pa.float32(), safe=False)
    near = pc.if_else(pc.is_finite(near), near, None)
    wide = near.cast(pa.float64())
    in_full = pc.and_(pc.equal(pc.trunc(wide), wide), pc.less(pc.abs(wide), _IN_FULL))
    return pc.if_else(in_full, wide, near.cast(pa.string()).cast(pa.float64()))
