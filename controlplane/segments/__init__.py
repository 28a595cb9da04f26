"""Segments, progress and the publish transaction with its fence."""
