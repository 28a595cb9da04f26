"""Reads of what was published: totals, progress, and what became of a record."""
