"""Tasks and indexers: their life cycle, reports, and the launcher of Spark applications."""
