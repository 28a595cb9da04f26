"""Spark: how applications are configured, what executors get, what the master says."""
