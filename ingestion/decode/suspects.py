"""Texts that are read without looking first whether they are JSON."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from ingestion.decode.engine import Engine

_BATCHES = 50


class Suspects:
    """Runs a query that fails on a text that is no JSON, and another one, with the same answer, that looks first.

    To look costs one more parse of every record: that is done for some batches after one with such a text.
    """

    def __init__(self, engine: Engine, source: str) -> None:
        self._engine = engine
        self._source = source
        self._left = 0

    def run(self, sql: str, checking_sql: str, table: pa.Table) -> pa.Table:
        """The answer for all rows of ``table``. Raises ``duckdb.Error``."""
        if not self._left:
            try:
                return self._engine.run(sql, self._source, table)
            except duckdb.InvalidInputException:
                self._left = _BATCHES
        self._left -= 1
        return self._engine.run(checking_sql, self._source, table)
