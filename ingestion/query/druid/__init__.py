"""Druid's SQL as DuckDB's, by rules that know the kinds of values; and results as Druid writes them."""
