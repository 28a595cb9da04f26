"""Rows of ``batch_run.a_table`` as files of the formats that have a schema."""

from __future__ import annotations

import io
from collections.abc import Callable

import fastavro
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

_AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "page", "type": ["null", "string"]},
        {"name": "n", "type": "long"},
    ],
}


def in_parquet(rows: pd.DataFrame) -> bytes:
    """Of four groups of rows."""
    made = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), made, row_group_size=len(rows) // 4)
    return made.getvalue()


def _in_orc(rows: pd.DataFrame) -> bytes:
    made = io.BytesIO()
    orc.write_table(pa.Table.from_pandas(rows, preserve_index=False), made)
    return made.getvalue()


def _in_avro(rows: pd.DataFrame) -> bytes:
    made = io.BytesIO()
    fastavro.writer(made, _AVRO, rows.to_dict("records"))
    return made.getvalue()


FORMS: dict[str, Callable[[pd.DataFrame], bytes]] = {"parquet": in_parquet, "orc": _in_orc, "avro_ocf": _in_avro}
