"""How an ``indexSpec`` is said in Parquet: a codec for each column, and whether longs have a dictionary.

As in Druid, ``metricCompression`` is also that of the time column, and lists are dimensions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from ingestion.specs.index_spec import Compression, IndexSpec

TIME = "__time"
_ZSTD_LEVEL = 1  # higher levels took longer and saved nothing on small segments
_DEFAULT: dict[str, Any] = {"compression": "zstd", "compression_level": _ZSTD_LEVEL}
# "lz4" is what Parquet calls LZ4_RAW: the other LZ4 of Parquet is deprecated.
_CODECS: dict[Compression | None, str] = {
    None: "zstd",
    "auto": "zstd",
    "zstd": "zstd",
    "lz4": "lz4",
    "lzf": "lz4",
    "uncompressed": "none",
    "none": "none",
}


def parquet_options(spec: IndexSpec, schema: pa.Schema, metrics: Collection[str] = ()) -> dict[str, Any]:
    """The arguments for ``pyarrow.parquet.write_table``. ``metrics``: which columns are not dimensions."""
    if spec == IndexSpec():
        return _DEFAULT
    codecs = {_leaf(field): _codec(spec, field, metrics) for field in schema}
    options: dict[str, Any] = {"compression": codecs}
    levels = {leaf: _ZSTD_LEVEL for leaf, codec in codecs.items() if codec == "zstd"}
    if levels:
        options["compression_level"] = levels
    if spec.longEncoding == "longs":
        options["use_dictionary"] = [_leaf(field) for field in schema if field.type != pa.int64()]
    return options


def _codec(spec: IndexSpec, field: pa.Field, metrics: Collection[str]) -> str:
    if isinstance(field.type, pa.BaseExtensionType):  # json
        return _CODECS[spec.jsonCompression]
    if field.name == TIME or field.name in metrics:
        return _CODECS[spec.metricCompression]
    return _CODECS[spec.dimensionCompression]


def _leaf(field: pa.Field) -> str:
    """What Parquet calls the column that holds the values."""
    return f"{field.name}.list.element" if isinstance(field.type, pa.ListType) else str(field.name)
